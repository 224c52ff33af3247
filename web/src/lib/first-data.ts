/** What every page needs before it can be drawn, asked on the server: then it stands in the HTML that comes first. */
import { headers } from 'next/headers'

export type FirstData = {
  /** When it was asked, by the clock of the server: what ages count to until the browser's own clock takes over. */
  readonly at: number
  /** A phone, as far as its browser says so. */
  readonly isNarrow: boolean
  /** Answers of `GET /api/v1/me` and `GET /api/v1/summary`, as they came: a text is the cheapest thing to hand on. */
  readonly me: string
  readonly summary: string
}

/** The other end is server/src/http/web.ts: the text of an answer, undefined for a refusal. */
type Ask = (path: string, cookie: string) => Promise<string | undefined>
const ASKABLE = Symbol.for('vacancy.control-planes')

/** Undefined for who is not signed in, and when it is refused: the browser then asks itself, and says what is wrong. */
export async function firstData(): Promise<FirstData | undefined> {
  const asked = await headers()
  const { [ASKABLE]: planes } = globalThis as { [ASKABLE]?: ReadonlyMap<string, Ask> }
  const ask = planes?.get(asked.get('x-control-plane') ?? '')
  const cookie = asked.get('cookie')
  if (!ask || !cookie) return undefined
  const at = Date.now()
  const [me, summary] = await Promise.all([ask('/api/v1/me', cookie), ask('/api/v1/summary', cookie)])
  if (me === undefined || summary === undefined) return undefined
  return { at, isNarrow: /\bMobile\b/.test(asked.get('user-agent') ?? ''), me, summary }
}
