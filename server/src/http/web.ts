/** The console on the same listener: every path that is none of the API goes to Next, which sets the pages' headers. */
import { randomUUID } from 'node:crypto'
import { EventEmitter } from 'node:events'
import { existsSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { createRequire } from 'node:module'
import { join, resolve } from 'node:path'
import type { Duplex } from 'node:stream'
import { VacancyError } from '@vacancy/shared'
import { LIVE } from '@vacancy/shared/contract'
import type { FastifyReply } from 'fastify'
import { problem } from './errors.ts'
import type { App } from './options.ts'
import { endWith } from './problems.ts'
import { ProblemError } from './route.ts'
import { createStaticFiles, type StaticFile } from './static-files.ts'

const WEB = resolve(import.meta.dirname, '../../../web')

/** What is used of Next: it is the console's dependency, not ours, so that there is one of it. */
type Next = (options: { dev: boolean; dir: string; httpServer: EventEmitter }) => {
  prepare(): Promise<void>
  getRequestHandler(): (request: IncomingMessage, response: unknown) => Promise<void>
  close(): Promise<void>
}

const STATIC = '/_next/static/'

/** Paths that are never pages. */
const API_PATHS = /^\/(?:api|cluster)(?:\/|$)/

/**
 * Mounts the console: as it was built, or, without a build, as a development server that compiles each page when it is
 * first asked for.
 *
 * @throws VacancyError failure when it must have been built and is not
 */
export async function mountWeb(app: App, isProduction: boolean): Promise<Web> {
  // `npm run dev` wants each page compiled when it is requested, also beside a build.
  const isBuilt = process.env['VACANCY_CONSOLE'] !== 'development' && existsSync(join(WEB, '.next/BUILD_ID'))
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
  const files = isBuilt ? createStaticFiles(join(WEB, '.next/static')) : undefined
  const plane = randomUUID()
  askable().set(plane, (path, cookie) => ask(app, path, cookie))
  await app.register(async (pages: App) => {
    // The body is left to Next.
    pages.removeAllContentTypeParsers()
    pages.addContentTypeParser('*', (_request, _payload, done) => done(null))
    pages.all('/*', { schema: { hide: true } }, async (request, reply) => {
      if (API_PATHS.test(request.url)) return reply.callNotFound()
      if (files !== undefined && request.url.startsWith(STATIC)) {
        const file = await files(request.url.slice(STATIC.length), String(request.headers['accept-encoding'] ?? ''))
        if (file !== undefined) return sendFile(reply, file)
      }
      for (const [name, value] of Object.entries(reply.getHeaders()))
        if (value !== undefined) reply.raw.setHeader(name, value)
      // Whatever came under this name is overwritten.
      request.raw.headers[PLANE_HEADER] = plane
      reply.hijack()
      await handle(request.raw, reply.raw)
      return undefined
    })
  })
  return {
    upgrade: (request, socket, head) => void upgrades.emit('upgrade', request, socket, head),
    close: async () => {
      askable().delete(plane)
      await web.close()
    },
  }
}

function sendFile(reply: FastifyReply, { type, encoding, body }: StaticFile): FastifyReply {
  if (encoding !== undefined) reply.header('content-encoding', encoding)
  reply.header('vary', 'accept-encoding').header('cache-control', 'public, max-age=31536000, immutable')
  return reply.type(type).send(body)
}

/** What a page shows first is asked on the server (web/src/lib/first-data.ts): the text of an answer, if it is one. */
type Ask = (path: string, cookie: string) => Promise<string | undefined>

/** Names the control plane that a page belongs to. */
const PLANE_HEADER = 'x-control-plane'
const ASKABLE = Symbol.for('vacancy.control-planes')

/** Next bundles the console's code apart from ours: they share the process, and in it this map. */
function askable(): Map<string, Ask> {
  const shared = globalThis as { [ASKABLE]?: Map<string, Ask> }
  shared[ASKABLE] ??= new Map()
  return shared[ASKABLE]
}

/** Through all doors of the API but without a connection: whatever the listener speaks, and under whatever name. */
async function ask(app: App, path: string, cookie: string): Promise<string | undefined> {
  const { statusCode, payload } = await app.inject({ method: 'GET', url: path, headers: { cookie } })
  return statusCode === 200 ? payload : undefined
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
