/** Data that every page needs, fetched on the server so that the first HTML contains it. */
import { headers } from 'next/headers'

export type FirstData = {
  /** Time of the fetch by the server's clock. Ages count to it until the browser's clock takes over. */
  readonly at: number
  /** A phone, according to the user agent. */
  readonly isNarrow: boolean
  /** Response texts of `GET /api/v1/me` and `GET /api/v1/summary`: a text is the cheapest thing to pass on. */
  readonly me: string
  readonly summary: string
}

/** Implemented in server/src/http/web.ts: the text of a response, undefined for an error. */
type Fetch = (path: string, cookie: string) => Promise<string | undefined>
const CONTROL_PLANES = Symbol.for('vacancy.control-planes')

/** Undefined without a session or on an error: the browser then fetches the data and shows what is wrong. */
export async function firstData(): Promise<FirstData | undefined> {
  const request = await headers()
  const { [CONTROL_PLANES]: planes } = globalThis as { [CONTROL_PLANES]?: ReadonlyMap<string, Fetch> }
  const fetchText = planes?.get(request.get('x-control-plane') ?? '')
  const cookie = request.get('cookie')
  if (!fetchText || !cookie) return undefined
  const at = Date.now()
  const [me, summary] = await Promise.all([fetchText('/api/v1/me', cookie), fetchText('/api/v1/summary', cookie)])
  if (me === undefined || summary === undefined) return undefined
  return { at, isNarrow: /\bMobile\b/.test(request.get('user-agent') ?? ''), me, summary }
}
