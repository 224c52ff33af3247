/** `vacancy health`: whether a running program is ready, as an exit code, for health checks of containers and scripts. */

import { EXIT, VacancyError } from '@vacancy/shared'
import { choice, defineCommand, named, runCommand, whole } from '@vacancy/shared/node'
import { readAuthorities, schemeOf, send } from '@vacancy/shared/node-api'

export const HEALTH_COMMAND = defineCommand({
  name: 'vacancy health',
  component: 'HEALTH',
  summary: 'Asks a running program whether it is ready. The exit code is 0 if it is, else 1 with its reasons.',
  flags: {
    address: { ...named('HOST:PORT'), default: '127.0.0.1:8080', summary: 'HTTP address of the program.' },
    path: {
      ...choice(['/ready', '/health'], '/ready'),
      summary: '/ready: it does its work; /health: its process lives.',
    },
    'tls-ca': { ...named('FILE'), summary: 'CA certificates for the program, PEM. Selects TLS.' },
    'timeout-ms': { ...whole(5_000, 1, 600_000, 'ms'), summary: 'An answer that takes longer is none.' },
  },
  run: async ({ flags: { address, path, tlsCa, timeoutMs } }) => {
    const access = { nodes: [address], token: undefined, ca: readAuthorities(tlsCa), answerMs: timeoutMs }
    const { status, body } = await send(access, 'GET', `${schemeOf(access)}//${address}${path}`)
    if (status !== 200) throw new VacancyError('failure', { reason: `${address} answered ${status}: ${body.trim()}` })
    process.stdout.write(`${body.trim()}\n`)
    return EXIT.ok
  },
})

/** Runs the command; sets the exit code. */
export async function healthMain(args: readonly string[]): Promise<void> {
  await runCommand(HEALTH_COMMAND, args)
}
