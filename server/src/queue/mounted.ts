/** The job queue inside the control plane: on its listener, with its tokens, audit log, readiness and metrics. */
import { hostname } from 'node:os'
import { join } from 'node:path'
import { allTopicStats, type QueueNode, queueModule, startQueue, stopQueue, unavailability } from '@vacancy/queue'
import { queueConfigOf } from '@vacancy/queue/config'
import type { Clock } from '@vacancy/shared'
import type { ControlModule } from '@vacancy/shared/api/route'
import type { TopicStats } from '@vacancy/shared/contract'
import type { Tracing } from '@vacancy/shared/node'
import type { Logger } from 'pino'
import type { Access } from '../access/access.ts'
import { noteOf } from '../access/accounts.ts'
import type { Audit } from '../access/audit.ts'
import type { TokensOfFile } from '../access/tokens.ts'
import type { ControlConfig } from '../config.ts'
import { findConsoleToken, followConsoleTokens, isConsoleTokenGood, stopFollowing } from './console-tokens.ts'

export type MountedQueue = {
  readonly node: QueueNode
  readonly module: ControlModule
  /** Why it is not available; '' when it is. */
  readonly fault: () => string
  readonly topics: () => readonly TopicStats[]
  /** The tokens in its auth file; undefined without one. */
  readonly fileTokens: () => TokensOfFile | undefined
  readonly stop: () => Promise<void>
}

type MountOptions = {
  readonly config: ControlConfig
  readonly clock: Clock
  readonly log: Logger
  readonly access: Access
  readonly audit: Audit
  readonly tracing: Tracing | undefined
  /** Where clients reach this process; '' until it is known. */
  readonly address: () => string
}

/** @throws VacancyError when the auth file or the journal cannot be used */
export async function mountQueue(options: MountOptions): Promise<MountedQueue> {
  const { config, clock, log, access, audit, tracing, address } = options
  const tokens = followConsoleTokens(access, log)
  let node: QueueNode
  try {
    node = await startQueue({
      config: queueConfigOf(config),
      databaseUrl: config.databaseUrl,
      address,
      dataDir: config.queueDataDir === '' ? join(config.dataDir, 'queue') : config.queueDataDir,
      clock,
      log,
      tracing,
      isAlone: false,
      others: (token, address) => findConsoleToken(tokens, token, address),
      trustProxy: config.trustProxy,
      isOtherGood: (token) => isConsoleTokenGood(tokens, token),
    })
  } catch (error) {
    stopFollowing(tokens)
    throw error
  }
  let stopped: Promise<void> | undefined
  return {
    node,
    module: queueModule({
      server: node.server,
      consumers: node.consumers,
      audit: (request, action, target, detail) => audit.write(noteOf(request, action, target, detail)),
      dataDir: node.dataDir,
      node: hostname(),
      isSynced: node.isSynced,
    }),
    fault: () => unavailability(node),
    topics: () => allTopicStats(node.server),
    fileTokens: () => node.tokens && { path: node.config.authFile, tokens: node.tokens.tokens() },
    stop: () => {
      stopped ??= stopQueue(node).finally(() => stopFollowing(tokens))
      return stopped
    },
  }
}
