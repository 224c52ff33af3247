/** WebSockets beside the routes: each path has its own way to accept them. */
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { LIVE } from '../../contract/index.ts'
import { problem } from './errors.ts'
import type { App } from './options.ts'
import { endWith } from './problems.ts'
import { ProblemError } from './route.ts'

/** Accepts an upgrade to a WebSocket, or refuses it by writing a response. */
export type Upgrade = (request: IncomingMessage, socket: Duplex, head: Buffer) => Promise<void>

/** Dispatches all upgrades by path; other ones go to Next when the console is mounted. */
export function dispatchUpgrades(
  app: App,
  upgrades: ReadonlyMap<string, Upgrade>,
  web: { upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void } | undefined,
  onError: (error: unknown) => void,
): void {
  app.server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    const pathname = URL.parse(request.url ?? '', 'http://local')?.pathname ?? ''
    if (web !== undefined && pathname.startsWith('/_next/')) return web.upgrade(request, socket, head)
    // A caller that disconnects during identification must not end the process.
    socket.on('error', () => socket.destroy())
    const upgrade = upgrades.get(pathname)
    if (upgrade === undefined) return endWith(socket, NO_SOCKET)
    upgrade(request, socket, head).catch((error: unknown) => {
      if (!(error instanceof ProblemError)) onError(error)
      endWith(socket, error instanceof ProblemError ? error : FAULT)
    })
  })
}

const NO_SOCKET = problem('no-such-path', {
  detail: 'There is no WebSocket here.',
  hint: `The live channel is at ${LIVE.path}.`,
})
const FAULT = problem('internal')
