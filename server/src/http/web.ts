/** The console on the same listener: every path outside the API goes to Next, which sets the headers of pages. */
import { randomUUID } from 'node:crypto'
import { EventEmitter } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { createRequire } from 'node:module'
import { join, resolve } from 'node:path'
import type { Duplex } from 'node:stream'
import { VacancyError } from '@vacancy/shared'
import type { App } from '@vacancy/shared/api/options'
import type { FastifyReply } from 'fastify'
import { createStaticFiles, type StaticFile } from './static-files.ts'

const WEB = resolve(import.meta.dirname, '../../../web')

/** The used part of Next. It is a dependency of the console, not of this workspace, so that there is one copy. */
type Next = (options: { dev: boolean; dir: string; httpServer: EventEmitter }) => {
  prepare(): Promise<void>
  getRequestHandler(): (request: IncomingMessage, response: unknown) => Promise<void>
  close(): Promise<void>
}

const STATIC = '/_next/static/'

/** Paths that are never pages. */
const API_PATHS = /^\/(?:api|cluster)(?:\/|$)/

/**
 * Mounts the console: its build, or, without one, a development server that compiles each page on its first request.
 *
 * @throws VacancyError failure when a build is required and missing
 */
export async function mountWeb(app: App, isProduction: boolean): Promise<Web> {
  // `npm run dev` compiles each page on request, even if there is a build.
  const isBuilt = process.env['VACANCY_CONSOLE'] !== 'development' && existsSync(join(WEB, '.next/BUILD_ID'))
  if (isProduction && !isBuilt)
    throw new VacancyError('failure', {
      reason: `the console is not built: run \`npm run build --workspace web\`, or start with --web=false for the API alone`,
    })
  if (isBuilt) useConfigOfBuild()
  const createNext = createRequire(join(WEB, 'package.json'))('next') as Next
  // Next closes every unknown WebSocket of the server it is given. It gets a stand-in that passes on only those of its
  // paths.
  const upgrades = new EventEmitter()
  const web = createNext({ dev: !isBuilt, dir: WEB, httpServer: upgrades })
  await web.prepare()
  const handle = web.getRequestHandler()
  const files = isBuilt ? createStaticFiles(join(WEB, '.next/static')) : undefined
  const plane = randomUUID()
  askable().set(plane, (path, cookie) => ask(app, path, cookie))
  await app.register(async (pages: App) => {
    // Next reads the body.
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
      // Overwrites a header of the client.
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

/** Next reads the configuration as its build did, not `next.config.ts`: an installed package has no sources. */
function useConfigOfBuild(): void {
  const { config } = JSON.parse(readFileSync(join(WEB, '.next/required-server-files.json'), 'utf8')) as {
    config: object
  }
  process.env['__NEXT_PRIVATE_STANDALONE_CONFIG'] = JSON.stringify(config)
}

function sendFile(reply: FastifyReply, { type, encoding, body }: StaticFile): FastifyReply {
  if (encoding !== undefined) reply.header('content-encoding', encoding)
  reply.header('vary', 'accept-encoding').header('cache-control', 'public, max-age=31536000, immutable')
  return reply.type(type).send(body)
}

/** Loads the first data of a page on the server (web/src/lib/first-data.ts): the body of the response if it succeeded. */
type Ask = (path: string, cookie: string) => Promise<string | undefined>

/** Identifies the control plane that a page belongs to. */
const PLANE_HEADER = 'x-control-plane'
const ASKABLE = Symbol.for('vacancy.control-planes')

/** Next bundles the console's code separately. Both share the process and therefore this map. */
function askable(): Map<string, Ask> {
  const shared = globalThis as { [ASKABLE]?: Map<string, Ask> }
  shared[ASKABLE] ??= new Map()
  return shared[ASKABLE]
}

/** Passes all checks of the API without a connection, independent of TLS and host name. */
async function ask(app: App, path: string, cookie: string): Promise<string | undefined> {
  const { statusCode, payload } = await app.inject({ method: 'GET', url: path, headers: { cookie } })
  return statusCode === 200 ? payload : undefined
}

export type Web = {
  /** For hot reload. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void
  close(): Promise<void>
}
