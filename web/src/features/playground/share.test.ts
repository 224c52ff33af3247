import { afterEach, expect, test, vi } from 'vitest'
import type { Draft } from './request.ts'
import { decodeShare, encodeShare, openShare, SHARE_CHARS_MAX, shareOf } from './share.ts'

afterEach(() => vi.unstubAllGlobals())

const DRAFT: Draft = { shard: 's1', node: 'n1', command: 'SEARCHPROP', fields: { segment: 'Vienna' } }
/** Texts that do not get shorter. */
const noise = (characters: number) => {
  let [state, text] = [1, '']
  while (text.length < characters) {
    state = (state * 48_271) % 2_147_483_647
    text += state.toString(36)
  }
  return text.slice(0, characters)
}

function serve(answer: (path: string) => Response) {
  const sent: string[] = []
  vi.stubGlobal('fetch', async (path: string, { method = 'GET', body }: RequestInit) => {
    sent.push(`${method} ${path}${typeof body === 'string' ? ` ${body}` : ''}`)
    return answer(path)
  })
  return sent
}

test('a short request is the link itself', async () => {
  const sent = serve(() => Response.json({}))
  const q = await shareOf(DRAFT)

  expect(q).toMatch(/^[\w-]+$/)
  expect(await openShare(q)).toEqual({ ok: true, draft: DRAFT })
  expect(sent).toEqual([])
})

test('a long request is kept by the control plane under a short id', async () => {
  const long = { ...DRAFT, node: '', fields: { segment: noise(4_000) } }
  const sent = serve((path) =>
    Response.json(
      path.endsWith('/id1') ? { shard: 's1', node: null, command: long.command, fields: long.fields } : { id: 'id1' },
    ),
  )
  expect((await encodeShare(long)).length).toBeGreaterThan(SHARE_CHARS_MAX)

  expect(await shareOf(long)).toBe('~id1')
  expect(await openShare('~id1')).toEqual({ ok: true, draft: long })

  const body = { shard: 's1', node: null, command: 'SEARCHPROP', fields: long.fields }
  expect(sent).toEqual([`POST /api/v1/shared-requests ${JSON.stringify(body)}`, 'GET /api/v1/shared-requests/id1'])
})

test('a request of up to 256 KiB is read', async () => {
  const of = (bytes: number) => ({ ...DRAFT, node: '', fields: { segment: 'a'.repeat(bytes - 46) } })
  expect(JSON.stringify({ s: 's1', c: 'SEARCHPROP', f: of(262_144).fields })).toHaveLength(262_144)
  expect(await decodeShare(await encodeShare(of(262_144)))).toMatchObject({ ok: true })
  expect(await decodeShare(await encodeShare(of(262_145)))).toEqual({ ok: false, reason: 'its request is too long' })
})
