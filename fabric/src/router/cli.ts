/** `vacancy router`. */

import { systemClock, VacancyError } from '@vacancy/shared'
import { defineCommand } from '@vacancy/shared/node'
import { systemSchedule } from '@vacancy/shared/schedule'
import { COMPONENTS } from '../config.ts'
import { checkedId, runService } from '../forward/program.ts'
import { ROUTER_DEADLINE_MS, ROUTER_FLAGS } from './config.ts'
import { openTables } from './refresh.ts'
import { startRouter } from './router.ts'

export const routerCommand = defineCommand({
  name: 'vacancy router',
  component: COMPONENTS.router,
  logsWarnings: true,
  summary: 'Starts a router: the entry of clients (edge mode), or the way to the shards of a zone (zone mode).',
  flags: ROUTER_FLAGS,
  run: async ({ flags, view, warnings }) => {
    const { mode } = flags
    const needed = (flag: 'zone-id' | 'router-id', value: string | undefined): string => {
      if (value === undefined) throw new VacancyError('usage_error', { reason: `--${flag} is required in zone mode` })
      return checkedId(flag, value)
    }
    const identity =
      mode === 'zone' ? { zone: needed('zone-id', flags.zoneId), id: needed('router-id', flags.routerId) } : undefined
    if (flags.maxFrameSize > flags.maxBufferSize) {
      throw new VacancyError('usage_error', { reason: '--max-frame-size must not exceed --max-buffer-size' })
    }
    await runService(
      {
        component: 'router',
        flags,
        view,
        warnings,
        listenHost: flags.listenHost,
        listenPort: flags.tcpPort,
        deadlineMs: flags.requestTimeoutMs ?? ROUTER_DEADLINE_MS[mode],
        identity,
        heartbeatMs: flags.heartbeatIntervalSecs * 1000,
      },
      ({ service, registry, resolver, registration, log }) =>
        startRouter({
          ...service,
          mode,
          zone: identity?.zone,
          id: identity?.id ?? flags.routerId,
          tables: openTables({
            mode,
            zone: identity?.zone,
            registry,
            refreshMs: flags.refreshIntervalSecs * 1000,
            cacheDir: flags.cacheDir,
            clock: systemClock,
            schedule: systemSchedule,
            random: Math.random,
            log,
          }),
          registry,
          resolver,
          registration,
          hopPort: flags.hopTcpPort,
          linksPerHop: flags.connPerHop,
          keepaliveMs: flags.appKeepaliveSecs * 1000,
          responseBytesMax: flags.maxResponseSize,
          queuedBytesMax: flags.maxBufferSize,
        }),
    )
    return undefined
  },
})
