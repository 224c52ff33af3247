/** The console on the same listener: every path that is none of the API goes to Next, which sets the pages' headers. */
import { EventEmitter } from 'node:events'
import { existsSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { createRequire } from 'node:module'
import { join, resolve } from 'node:path'
import type { Duplex } from 'node:stream'
import { VacancyError } from '@vacancy/shared'
import type { App } from './http.ts'
import { ProblemError } from './route.ts'

const WEB = resolve(import.meta.dirname, '../../web')

/** What is used of Next: it is the console's dependency, not ours, so that there is one of it. */
type Next = (options: { dev: boolean; dir: string; httpServer: EventEmitter }) => {
  prepare(): Promise<void>
  getRequestHandler(): (request: IncomingMessage, response: unknown) => Promise<void>
  close(): Promise<void>
}

/** Paths that are never pages. */
const API_PATHS = /^\/(?:api|cluster)(?:\/|$)/

/**
 * Mounts the console: as it was built, or, without a build, as a development server that compiles each page when it is
 * first asked for.
 *
 * @throws VacancyError failure when it must have been built and is not
 */
export async function mountWeb(app: App, isProduction: boolean): Promise<Web> {
  const isBuilt = existsSync(join(WEB, '.next/BUILD_ID'))
  if (isProduction && !isBuilt)
    throw new VacancyError('failure', {
      reason: `the console is not built: run \`npm run build --workspace web\`, or start with --web=false for the API alone`,
    })
  const createNext = createRequire(join(WEB, 'package.json'))('next') as Next
  // Next closes every WebSocket of the server it is given that it does not know. It gets those of its own paths only,
  // from what it takes for the server.
  const upgrades = new EventEmitter()
  const web = createNext({ dev: !isBuilt, dir: WEB, httpServer: upgrades })
  await web.prepare()
  const handle = web.getRequestHandler()
  await app.register(async (pages: App) => {
    // The body is left to Next.
    pages.removeAllContentTypeParsers()
    pages.addContentTypeParser('*', (_request, _payload, done) => done(null))
    pages.all('/*', { schema: { hide: true } }, async (request, reply) => {
      if (API_PATHS.test(request.url)) return reply.callNotFound()
      for (const [name, value] of Object.entries(reply.getHeaders()))
        if (value !== undefined) reply.raw.setHeader(name, value)
      reply.hijack()
      await handle(request.raw, reply.raw)
      return undefined
    })
  })
  return {
    upgrade: (request, socket, head) => void upgrades.emit('upgrade', request, socket, head),
    close: () => web.close(),
  }
}

export type Web = {
  /** For hot reload. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void
  close(): Promise<void>
}

/** Takes an upgrade to a WebSocket, or refuses it by writing an answer. */
export type Upgrade = (request: IncomingMessage, socket: Duplex, head: Buffer) => Promise<void>

/** The one place that hands out upgrades, by path; those of Next's own go to it when it is there. */
export function dispatchUpgrades(
  app: App,
  upgrades: ReadonlyMap<string, Upgrade>,
  web: Web | undefined,
  onError: (error: unknown) => void,
): void {
  app.server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    const pathname = URL.parse(request.url ?? '', 'http://local')?.pathname ?? ''
    if (web !== undefined && pathname.startsWith('/_next/')) return web.upgrade(request, socket, head)
    // A caller that goes away while it is looked up who it is must not end the program.
    socket.on('error', () => socket.destroy())
    const upgrade = upgrades.get(pathname)
    if (upgrade === undefined) return refuseUpgrade(socket, 404, 'There is no WebSocket here.')
    upgrade(request, socket, head).catch((error: unknown) => {
      if (error instanceof ProblemError) return refuseUpgrade(socket, error.status, error.message)
      onError(error)
      refuseUpgrade(socket, 500, 'A fault in the control plane; it is in its log.')
    })
  })
}

function refuseUpgrade(socket: Duplex, status: number, says: string): void {
  socket.end(
    `HTTP/1.1 ${status} Refused\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: ${Buffer.byteLength(says)}\r\nconnection: close\r\n\r\n${says}`,
  )
}
