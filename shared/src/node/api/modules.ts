/** The API as Fastify plugins: shared hooks, the reference at /docs, and the routes of each module. */
import { promisify } from 'node:util'
import { gzip, type ZlibOptions } from 'node:zlib'
import rateLimit from '@fastify/rate-limit'
import swagger, { type StaticDocumentSpec } from '@fastify/swagger'
import swaggerUi from '@fastify/swagger-ui'
import type { FastifyReply, FastifyRequest } from 'fastify'
import * as contract from '../../contract/index.ts'
import { controlOperations, openApiOf } from '../../contract/openapi.ts'
import { assert } from '../../index.ts'
import { VERSION } from '../index.ts'
import { admit } from './admission.ts'
import { accepts } from './encodings.ts'
import { problem } from './errors.ts'
import { type App, HTTP_LIMITS, type HttpOptions } from './options.ts'
import type { ControlModule } from './route.ts'
import { type AnyHandler, registerRoute } from './routes.ts'

/** Adds the paths of modules, and `/docs`, which lists them. */
export async function registerModules(
  app: App,
  modules: readonly ControlModule[],
  options: HttpOptions,
): Promise<void> {
  await app.register(async (api: App) => {
    addVisitor(api, options)
    addCompression(api)
    await addRateLimit(api, options)
    await api.register(docsPlugin, { modules, http: options })
    for (const module of modules) await api.register(modulePlugin, { module, http: options })
  })
}

/** Identifies the principal of each request before any other hook. */
function addVisitor(api: App, options: HttpOptions): void {
  api.addHook('onRequest', async (request: FastifyRequest, reply: FastifyReply) => {
    reply.header('content-security-policy', "default-src 'none'; frame-ancestors 'none'")
    reply.header('cache-control', 'no-store')
    // Open paths may use tokens of their own, as snapshot downloads of nodes do. They do not count as failed API
    // tokens.
    const { cookie } = request.headers
    const isOpen = request.routeOptions.config?.isOpen === true
    const shown = isOpen ? (cookie === undefined ? {} : { cookie }) : request.headers
    request.visitor = await options.identify(shown, request.ip)
  })
}

function addCompression(api: App): void {
  api.addHook('onSend', async (request: FastifyRequest, reply: FastifyReply, payload: unknown) => {
    if (typeof payload !== 'string' || payload.length < COMPRESSED_FROM || !takesGzip(request)) return payload
    reply.header('content-encoding', 'gzip').header('vary', 'accept-encoding')
    return await compress(payload, { level: 1 })
  })
}

async function addRateLimit(api: App, options: HttpOptions): Promise<void> {
  await api.register(rateLimit, {
    max: (request) => (isKnown(request) ? HTTP_LIMITS.requestsKnown : HTTP_LIMITS.requestsUnknown),
    timeWindow: 60_000,
    keyGenerator: (request) => (isKnown(request) ? request.visitor.principal.id : request.ip),
    errorResponseBuilder: (_request, { ttl }) => {
      options.onRefusal('too-many')
      const seconds = Math.ceil(ttl / 1000)
      return problem('too-many-requests', {
        detail: `Too many requests. Try again in ${seconds} s.`,
        more: { retryAfterSeconds: seconds },
      })
    },
  })
}

/** The reference of all paths, for principals that may read. */
async function docsPlugin(
  docs: App,
  { modules, http }: { readonly modules: readonly ControlModule[]; readonly http: HttpOptions },
): Promise<void> {
  const operations = controlOperations(Object.assign({}, ...modules.map(({ routes }) => routes)))
  const document = openApiOf({ title: 'Vacancy control plane', version: VERSION }, operations, contract, true)
  // The plugin's types know OpenAPI 3.0 only, its pages read 3.1.
  const specification = { document: document as object as StaticDocumentSpec['document'] }
  await docs.register(swagger, { mode: 'static', specification })
  await docs.register(swaggerUi, {
    routePrefix: '/docs',
    staticCSP: DOCS_POLICY,
    uiHooks: { onRequest: async (request) => admit(request as FastifyRequest, 'GET /docs', 'viewer', http) },
  })
}

/** The routes of one module. */
async function modulePlugin(
  api: App,
  { module, http }: { readonly module: ControlModule; readonly http: HttpOptions },
): Promise<void> {
  for (const [name, row] of Object.entries(module.routes)) {
    const handler = module.handlers[name]
    assert(handler !== undefined, 'every route of a module has its handler')
    await registerRoute(api, name, row, handler as AnyHandler, http)
  }
}

/**
 * The overview of a thousand nodes is 0.3 MB of JSON and a tenth of that compressed; small responses fit into a packet
 * anyway.
 */
const COMPRESSED_FROM = 1_024

const compress = promisify<string, ZlibOptions, Buffer>(gzip)

function takesGzip({ headers }: FastifyRequest): boolean {
  return accepts(String(headers['accept-encoding'] ?? ''), 'gzip')
}

/** The reference page of the library has inline styles; it loads nothing from other origins. */
const DOCS_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; frame-ancestors 'none'"

function isKnown(request: FastifyRequest): boolean {
  return request.visitor.principal.kind !== 'anonymous'
}
