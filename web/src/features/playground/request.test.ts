import { COMMAND_LIST, encodeRequest, type JsonFields } from '@vacancy/shared/wire'
import fc from 'fast-check'
import { afterEach, describe, expect, test, vi } from 'vitest'
import type { QueryCommand } from './catalogue.ts'
import {
  compile,
  compileFor,
  type Draft,
  differencesOf,
  faultAt,
  fillParameters,
  hexOf,
  jsonOf,
  parametersOf,
  parseRequest,
  requestOfFrame,
  withBox,
  withCommand,
  withField,
  without,
} from './request.ts'
import { decodeShare, encodeShare, openShare, SHARE_CHARS_MAX, shareOf } from './share.ts'

const options = { numRuns: 300 }

const entry = fc
  .string({ minLength: 1, maxLength: 12 })
  .filter((text) => !text.includes(',') && text.trim() === text && text !== '')
const values = {
  text: fc.string({ minLength: 1, maxLength: 40, unit: 'grapheme' }),
  list: fc.uniqueArray(entry, { minLength: 1, maxLength: 4 }),
  names: fc.uniqueArray(entry, { minLength: 1, maxLength: 4 }),
  u8s: fc.array(fc.integer({ min: 0, max: 255 }), { minLength: 1, maxLength: 4 }),
  u64s: fc.array(fc.maxSafeNat(), { minLength: 1, maxLength: 32 }),
  u8: fc.integer({ min: 0, max: 255 }),
  u32: fc.integer({ min: 0, max: 0xffff_ffff }),
  u64: fc.oneof(fc.maxSafeNat(), fc.bigInt({ min: 1n << 53n, max: (1n << 64n) - 1n }).map(String)),
  f64: fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => value + 0),
  lines: fc.array(
    fc.record({
      propertyId: fc.string({ minLength: 1, maxLength: 14 }),
      roomType: fc.string({ minLength: 1, maxLength: 14, unit: 'grapheme' }),
      arrival: fc.constantFrom('2026-12-24', '2028-02-29'),
      nights: fc.integer({ min: 1, max: 30 }),
      rooms: fc.integer({ min: 1, max: 255 }),
    }),
    { minLength: 1, maxLength: 16 },
  ),
}

/** Requests of every command but LOGIN, as the form has them. */
const anyDraft: fc.Arbitrary<Draft> = fc
  .constantFrom(...COMMAND_LIST.filter(({ name }) => name !== 'LOGIN'))
  .chain((spec) => {
    const fields = Object.fromEntries(spec.fields.map(({ name, width }) => [name, values[width]]))
    const requiredKeys = spec.fields.filter(({ required }) => required).map(({ name }) => name)
    return fc.record({
      shard: fc.string({ maxLength: 10 }),
      node: fc.string({ maxLength: 10 }),
      command: fc.constant(spec.name as QueryCommand),
      fields: fc.record(fields, { requiredKeys }) as fc.Arbitrary<JsonFields>,
    })
  })

test('form, JSON, wire and link are one request, for every command of the table', async () => {
  await fc.assert(
    fc.asyncProperty(anyDraft, async (draft) => {
      // Typed into the form, field by field.
      const empty: Draft = { ...draft, fields: {} }
      const formed = Object.entries(draft.fields).reduce((form, [name, value]) => withField(form, name, value), empty)
      const compiled = compile(formed)
      if (!compiled.ok) throw new Error(compiled.reason)

      const parsed = parseRequest(jsonOf(formed))
      const pasted = requestOfFrame(hexOf(compiled.frame))
      const shared = await decodeShare(await encodeShare(formed))

      const same = { command: formed.command, fields: JSON.parse(JSON.stringify(formed.fields)) }
      expect(parsed).toEqual({ ok: true, draft: same })
      expect(pasted).toEqual({ ok: true, draft: same })
      expect(shared).toEqual({ ok: true, draft: { shard: draft.shard, node: draft.node, ...same } })
    }),
    options,
  )
})

test('a request with an invalid night, or with more than the shard accepts, cannot be sent', () => {
  const bounds = { window: null, datesMax: 2, shard: 's3' }
  const search = (dates: readonly string[]) =>
    compileFor({ command: 'SEARCHAVAIL', fields: { segment: 'alpine', roomType: 'double', dates } }, bounds)
  expect(search(['2026-12-01', '2026-12-02'])).toMatchObject({ ok: true })
  expect(search(['2026-13-45'])).toMatchObject({ ok: false, field: 'dates' })
  expect(search(['2026-12-01', '2026-12-02', '2026-12-03'])).toMatchObject({
    ...{ ok: false, field: 'dates', reason: '3 nights; s3 accepts at most 2.' },
  })
})

describe('invalid JSON', () => {
  const at = (text: string) => {
    const parsed = parseRequest(text)
    return parsed.ok ? 'ok' : `${parsed.line}:${parsed.column} ${parsed.reason}`
  }

  test('names line and column', () => {
    expect(at('{\n  "command": "GETSEGMENTS"\n  "fields": {}\n}')).toMatch(/^3:3 /)
    expect(at('{ "command": "GETSEGMENTS", }')).toMatch(/^1:29 /)
    expect(at('')).toMatch(/^1:1 /)
    expect(at('[1]')).toMatch(/^1:1 The request must be an object/)
    expect(at('{\n  "command": "DROP"\n}')).toBe('2:3 Unknown command: DROP')
    expect(at('{ "command": "LOGIN", "fields": { "token": "x" } }')).toMatch(/Unknown command: LOGIN/)
    expect(at('{ "command": "SEARCHPROP",\n "fields": {\n  "segment": "s",\n  "stars": "four" } }')).toBe(
      '4:3 stars must be a whole number, 0 to 255',
    )
    expect(at('{ "command": "SEARCHPROP",\n "fields": { "segment": "s", "colour": 1 } }')).toMatch(
      /^2:30 .*no field colour/,
    )
    expect(at('{ "command": "SEARCHPROP", "fields": {}, "shard": 1 }')).toMatch(/^1:42 Unknown key "shard"/)
  })

  test('is located at the first character that cannot continue it', () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 3 }), fc.nat(), (text, n) => {
        expect(faultAt(text)).toBe(text.length)
        const cut = text.slice(0, n % (text.length + 1))
        expect(faultAt(`${cut}\u0001`)).toBeLessThanOrEqual(cut.length)
      }),
      options,
    )
  })

  test('never throws', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json()), (text) => {
        parseRequest(text)
        requestOfFrame(text)
      }),
      options,
    )
  })
})

test('a truncated frame and a login are rejected', () => {
  expect(requestOfFrame('zz')).toMatchObject({ ok: false })
  expect(requestOfFrame('ff 00')).toMatchObject({ ok: false })
  expect(requestOfFrame('ff0000000012000000054c4f47494e010001000101000000 78'.replace('12', '10'))).toMatchObject({
    ok: false,
  })
})

test('a frame pasted with the envelope of a router reads as without it', () => {
  const fields = { segment: 'Vienna' }
  const envelope = { segment: 'Vienna', write: false }
  const frame = encodeRequest({ command: 'SEARCHPROP', correlationId: 7, fields, envelope })

  expect(requestOfFrame(hexOf(frame))).toEqual({ ok: true, draft: { command: 'SEARCHPROP', fields } })
})

test('truncated, modified and oversized links are rejected', async () => {
  const link = await encodeShare({ shard: 's1', node: '', command: 'SEARCHPROP', fields: { segment: 'Vienna' } })
  expect(await decodeShare(link.slice(0, -4))).toMatchObject({ ok: false })
  expect(await decodeShare('<script>')).toMatchObject({ ok: false })
  expect(await decodeShare('')).toMatchObject({ ok: false })
  const unfinished: Draft = { shard: '', node: 'n1', command: 'SEARCHAVAIL', fields: { segment: '', dates: [] } }
  expect(await decodeShare(await encodeShare(unfinished))).toEqual({ ok: true, draft: unfinished })
  for (const fields of [
    { colour: 'red' },
    { segment: { a: 1 } },
    { dates: [1] },
    [],
    null,
    JSON.parse('{"__proto__":"x"}'),
  ]) {
    const foreign = await encodeShare({ ...unfinished, fields: fields as never })
    expect(await decodeShare(foreign)).toMatchObject({ ok: false })
  }
  expect(await decodeShare(await encodeShare({ ...unfinished, command: 'LOGIN' as never }))).toMatchObject({
    ok: false,
  })
  const bomb = await encodeShare({
    shard: 's1',
    node: '',
    command: 'SEARCHPROP',
    fields: { segment: 'a'.repeat(2_000_000) },
  })
  expect(bomb.length).toBeLessThan(5_000)
  expect(await decodeShare(bomb)).toEqual({ ok: false, reason: 'its request is too long' })
})

test('changing the command keeps common fields', () => {
  const draft: Draft = {
    shard: 's',
    node: '',
    command: 'SEARCHAVAIL',
    fields: { segment: 'v', roomType: 'double', limit: 3 },
  }

  expect(withCommand(draft, 'SEARCHPROP').fields).toEqual({ segment: 'v', limit: 3 })
  expect(withCommand(draft, 'SETPROP').fields).toEqual({ segment: 'v', amenities: [] })
})

test('parameters of a saved query are filled in', () => {
  const fields = {
    segment: '{{where}}',
    stars: '{{stars}}',
    dates: ['{{from}}', '2026-12-01'],
    area: '{{area}}',
    limit: 5,
  }

  expect(parametersOf(fields)).toEqual(['where', 'stars', 'from', 'area'])
  expect(
    fillParameters('SEARCHAVAIL', fields, { where: 'Vienna {{stars}}', stars: ' 4 ', from: '2026-11-30, 2026-12-02' }),
  ).toEqual({ segment: 'Vienna {{stars}}', stars: 4, dates: ['2026-11-30', '2026-12-02', '2026-12-01'], limit: 5 })
})

test('differences of two requests', () => {
  const draft: Draft = { shard: 's', node: '', command: 'SEARCHPROP', fields: { segment: 'v', amenities: ['a', 'b'] } }

  expect(differencesOf(draft, { ...draft, node: 'n1', fields: { segment: 'v', stars: 3 } })).toEqual([
    { what: 'node', from: 'auto', to: 'n1' },
    { what: 'amenities', from: 'a, b', to: '–' },
    { what: 'stars', from: '–', to: '3' },
  ])
})

test('removes a field, a list entry, or fields that belong together', () => {
  const fields = { latitude: 1, longitude: 2, radiusMetres: 3, amenities: ['a', 'b'], availability: 4, dates: ['d'] }
  const draft: Draft = { shard: '', node: '', command: 'SEARCHAVAIL', fields }

  expect(without(draft, 'longitude', null).fields).toEqual({ amenities: ['a', 'b'], availability: 4, dates: ['d'] })
  expect(without(draft, 'amenities', 'a').fields['amenities']).toEqual(['b'])
  expect(without(draft, 'dates', 'd').fields['dates']).toBeUndefined()
  // Without the field a search requires one room.
  expect(without(draft, 'availability', null).fields['availability']).toBe(0)
})

describe('share', () => {
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
})

test('a box starts at the first page, and is removed with all of its sides', () => {
  const draft: Draft = { ...{ shard: '', node: '' }, command: 'SEARCHPROP', fields: { segment: 's', cursor: 'c' } }
  const box = { south: 1, west: 170, north: 2, east: -170 }

  const boxed = withBox(draft, box)

  expect(boxed.fields).toEqual({ segment: 's', ...box })
  expect(compile(boxed)).toMatchObject({ ok: true })
  for (const removed of [withBox(boxed, undefined), without(boxed, 'south', null)])
    expect(removed.fields).toEqual({ segment: 's' })
})
