/** All URLs of the console: of each page by its name (lib/pages.ts), and of the few that say more than a page. */
import { PAGES } from './pages.ts'

type Query = { readonly [name: string]: string | undefined }

/** One argument for each path parameter. */
type Parts<Path> = Path extends `${string}/:${string}/${infer Rest}`
  ? [part: string, ...Parts<`/${Rest}`>]
  : Path extends `${string}/:${string}`
    ? [part: string]
    : []
type PageRoutes = {
  readonly [name in keyof typeof PAGES]: (...to: [...Parts<(typeof PAGES)[name]['path']>, query?: Query]) => string
}

/** Appends query parameters to a path, without empty ones. */
function withQuery(path: string, query: Query): string {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) if (value) search.set(name, value)
  return search.size === 0 ? path : `${path}?${search}`
}

function routeOf(path: string, to: readonly (string | Query | undefined)[]): string {
  const parts = to.filter((part) => typeof part === 'string').values()
  const query = to.find((part) => typeof part === 'object') ?? {}
  return withQuery(
    path.replaceAll(/:\w+/g, () => encodeURIComponent(parts.next().value ?? '')),
    query,
  )
}

export const routes = {
  ...(Object.fromEntries(
    Object.entries(PAGES).map(([name, { path }]) => [name, (...to: (string | Query)[]) => routeOf(path, to)]),
  ) as PageRoutes),
  /** Opens a plan; opening it never runs it. */
  plan: (kind: string, shard: string, node?: string): string =>
    routes.shard(shard, { plan: [kind, shard, ...(node ? [node] : [])].join(':') }),
  signIn: (next?: string) => withQuery('/sign-in', { next }),
}
