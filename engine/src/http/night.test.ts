import { formatDay, packPropertyId } from '@vacancy/shared'
import { NIGHT_LIMITS, type NodeNight, nightBody } from '@vacancy/shared/contract'
import { createRandom, type Random } from '@vacancy/testkit/random'
import { beforeEach, describe, expect, test } from 'vitest'
import { nightRead } from '../cluster/nights.ts'
import { ENTRY_KIND, encodeEntry } from '../raft/entry.ts'
import { encodeBulkLoad, KIND, writeU8, writeU32 } from '../store/command.ts'
import { nightNow } from '../store/night-now.ts'
import { fakeHandle } from '../testing/fake-handle.ts'
import { IDENTITY, SMALL } from '../testing/log-fixture.ts'
import { TODAY } from '../testing/model.ts'
import {
  type Answer,
  applyCommandOf,
  applyOwn,
  ask,
  createNodeInMemory,
  type LooseFields,
  type NodeInMemory,
  raiseFeatureLevel,
} from '../testing/node-in-memory.ts'
import { createSimulation } from '../testing/simulation.ts'
import { searchNight } from '../wal/night-log.ts'
import { createWal } from '../wal/open.ts'
import { checksumSeed } from '../wal/record.ts'
import { appendGroup, compactWal, type Wal } from '../wal/wal.ts'
import { createNightAnswer } from './night.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const DIRECTORY = '/wal'
const DAY = TODAY + 3
const DATE = formatDay(DAY)
const place = { segment: 's', area: 'a', propertyType: 'hotel', category: 'c', stars: 3, latitude: 1, longitude: 1 }

let node: NodeInMemory
let wal: Wal
let answer: ReturnType<typeof createNightAnswer>

type Limits = Partial<{ [name in keyof typeof NIGHT_LIMITS]: number }>

function begin(limits: Limits = {}): void {
  const { env, disk } = createSimulation()
  disk.makeDirectory(DIRECTORY)
  wal = createWal(env, DIRECTORY, IDENTITY, { index: 0, term: 0 }, SMALL)
  node = createNodeInMemory(TODAY)
  node.timeMs = TODAY * DAY_MS + HOUR_MS
  node.onEntry = (index, bytes) => {
    const batches = [{ firstIndex: index, count: 1, bytes: encodeEntry(1, ENTRY_KIND.command, bytes) }]
    appendGroup(wal, { hardState: { term: 1, vote: 0, commit: index - 1 }, batches })
  }
  raiseFeatureLevel(node)
  const handle = fakeHandle({
    memory: () => node.store.memory,
    night: async (about, from) => {
      const now = nightNow(node.store, node.index, about.property, about.day)
      const stays = now.stays.map(({ stay }) => stay)
      const seed = checksumSeed(IDENTITY)
      return nightRead(
        node.store,
        now,
        searchNight(disk, DIRECTORY, seed, about, from ?? { below: now.index + 1 }, stays),
      )
    },
  })
  answer = createNightAnswer(handle, { ...NIGHT_LIMITS, ...limits })
}

async function page(fields: { readonly [name: string]: string } = {}): Promise<NodeNight> {
  const query = { property: 'p', room_type: 'double', date: DATE, ...fields }
  const parameters = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== ''))
  return nightBody.parse(JSON.parse(String((await answer({ parameters })).body)))
}

async function allPages(fields: { readonly [name: string]: string } = {}): Promise<NodeNight[]> {
  const pages = [await page(fields)]
  for (let next = pages[0]?.next ?? ''; next !== ''; next = pages.at(-1)?.next ?? '') {
    pages.push(await page({ ...fields, cursor: next }))
  }
  return pages
}

/** Kind, outcome, rooms before and after. */
async function story(fields: { readonly [name: string]: string } = {}): Promise<string[]> {
  const found = (await allPages(fields)).flatMap(({ changes }) => changes)
  return found.reverse().map(({ kind, outcome, before, after, stay, source, price }) => {
    const rooms = (state: typeof before) => (state.package === false ? 'none' : (state.rooms ?? '?'))
    const words = [kind, ...(outcome === 'done' ? [] : [outcome]), `${rooms(before)}→${rooms(after)}`]
    return [
      ...words,
      ...(stay ? [stay] : []),
      ...(source ? [source] : []),
      ...(price === null ? [] : [`${price}`]),
    ].join(' ')
  })
}

const set = (rest: LooseFields = {}) =>
  ask(node, 'SETROOMPKG', {
    ...{ propertyId: 'p', roomType: 'double', date: DATE, availability: 5, finalPrice: 10 },
    ...rest,
  })
const amount = (command: 'SETROOMAVL' | 'INCROOMAVL' | 'DECROOMAVL', rooms: number, rest: LooseFields = {}) =>
  ask(node, command, { propertyId: 'p', roomType: 'double', date: DATE, amount: rooms, ...rest })
const line = (rest: object = {}) => ({
  ...{ propertyId: 'p', roomType: 'double', arrival: formatDay(DAY - 1), nights: 3, rooms: 1 },
  ...rest,
})
const property = (rest: LooseFields = {}) => ask(node, 'SETPROP', { ...place, propertyId: 'p', amenities: [], ...rest })

beforeEach(() => {
  begin()
  property()
  // Stays of several nights need the others.
  for (const day of [DAY - 1, DAY + 1]) set({ date: formatDay(day), availability: 200 })
})

describe('what the log has of a night', () => {
  test('every kind of change is found, with its index, and none of another night, room type or property', async () => {
    property({ propertyId: 'q' })
    set()
    set({ propertyId: 'q' })
    set({ roomType: 'suite' })
    set({ date: formatDay(DAY + 1), availability: 99 })
    amount('INCROOMAVL', 2)
    amount('DECROOMAVL', 1)
    amount('SETROOMAVL', 4)
    ask(node, 'BOOKSTAY', { stayId: 'b1', source: 'shop', lines: [line({ rooms: 2 })] })
    ask(node, 'BOOKSTAY', { stayId: 'b2', lines: [line({ roomType: 'suite', arrival: DATE, nights: 1 })] })
    ask(node, 'HOLDSTAY', { stayId: 'h1', seconds: 900, source: 'ota', lines: [line()] })
    ask(node, 'CONFIRMSTAY', { stayId: 'h1' })
    ask(node, 'HOLDSTAY', { stayId: 'h2', seconds: 900, lines: [line()] })
    ask(node, 'RELEASESTAY', { stayId: 'h2' })
    ask(node, 'RELEASESTAY', { stayId: 'b1' })
    ask(node, 'DELROOMDAY', { propertyId: 'p', roomType: 'double', date: DATE })
    set({ finalPrice: 20 })
    ask(node, 'DELPROPDAY', { propertyId: 'p', date: DATE })
    ask(node, 'DELPROPROOM', { propertyId: 'p', roomType: 'double' })
    ask(node, 'DELPROP', { propertyId: 'p' })

    expect(await story()).toEqual([
      'package ?→5 10',
      'increase 5→7',
      'decrease 7→6',
      'rooms 6→4',
      'book 4→2 b1 shop',
      'hold 2→1 h1 ota',
      'confirm 1→1 h1',
      'hold 1→0 h2',
      'release 0→1 h2',
      'release 1→3 b1',
      'delete-package 3→none',
      'package none→5 20',
      'delete-day 5→none',
      'delete-room unchanged none→none',
      'delete-property unchanged none→none',
    ])
    const { changes, searched, retained_from, next } = await page()
    expect(new Set(changes.map(({ index }) => index)).size).toBe(15)
    expect([searched, retained_from, next]).toEqual([
      { from_index: 1, to_index: node.index, from_time: expect.any(String) },
      1,
      '',
    ])
  })

  test('who took the last room: the booking and its source, and who came too late', async () => {
    set({ availability: 1 })
    ask(node, 'BOOKSTAY', { stayId: 'first', source: 'website', lines: [line()] })
    ask(node, 'BOOKSTAY', { stayId: 'second', source: 'ota-17', lines: [line()] })
    amount('DECROOMAVL', 1)
    // The same call again.
    ask(node, 'BOOKSTAY', { stayId: 'first', source: 'website', lines: [line()] })

    expect((await story()).slice(1)).toEqual([
      'book 1→0 first website',
      'book refused 0→0 second ota-17',
      'decrease refused 0→0',
      'book unchanged 0→0 first website',
    ])
  })

  test('a hold that expires, one that is prolonged, and a stay that takes the place of another one', async () => {
    set()
    ask(node, 'HOLDSTAY', { stayId: 'cart', seconds: 60, lines: [line({ rooms: 2 })] })
    node.timeMs += 30_000
    ask(node, 'HOLDSTAY', { stayId: 'cart', seconds: 60, lines: [line({ rooms: 2 })] })
    node.timeMs += 61_000
    ask(node, 'BOOKSTAY', { stayId: 'b1', lines: [line()] })
    ask(node, 'BOOKSTAY', { stayId: 'b2', replaces: 'b1', lines: [line({ rooms: 3 })] })

    expect((await story()).slice(1)).toEqual([
      'hold 5→3 cart',
      'hold unchanged 3→3 cart',
      'expire 3→5 cart',
      'book 5→4 b1',
      'replaced 4→5 b1',
      'book 5→2 b2',
    ])
    const { changes } = await page()
    expect(changes[0]).toMatchObject({ kind: 'book', stay: 'b2', replaces: 'b1' })
    expect(changes[0]?.index).toBe(changes[1]?.index)
  })

  test('an import, a deleted segment and the passing of the night are listed, and nothing is guessed across an import', async () => {
    set()
    // As if its data were those from before.
    node.context.loaded = '07'.repeat(32)
    applyCommandOf(node, KIND.bulkLoad, encodeBulkLoad(new Uint8Array(32).fill(7), TODAY))
    amount('DECROOMAVL', 1)
    ask(node, 'DELSEGMENT', { segment: 's' })
    property()
    set()
    applyOwn(node, KIND.dropBefore, (writer) => {
      writeU32(writer, DAY + 1)
      writeU8(writer, 1)
    })

    const { changes } = await page()
    expect(changes.map(({ kind }) => kind)).toEqual([
      ...['past', 'package', 'delete-segment', 'decrease', 'import', 'package'],
    ])
    expect(changes[4]).toMatchObject({
      ...{ kind: 'import', snapshot: '07'.repeat(32), room_type: null },
      after: { package: null, rooms: null, price: null },
    })
    expect(changes[3]).toMatchObject({ outcome: 'unknown', before: { rooms: null } })
  })

  test('all room types of a property on a night', async () => {
    set()
    set({ roomType: 'suite', availability: 2 })
    amount('DECROOMAVL', 1, { roomType: 'suite' })
    ask(node, 'DELPROPDAY', { propertyId: 'p', date: DATE })

    const { changes, room_type } = await page({ room_type: '' })
    expect(room_type).toBeNull()
    expect(changes.map(({ kind, room_type: room }) => [kind, room])).toEqual([
      ['delete-day', null],
      ['decrease', 'suite'],
      ['package', 'suite'],
      ['package', 'double'],
    ])
  })
})

describe('pages', () => {
  test('a search is continued by its cursor, and what was compacted is said to be older than the log', async () => {
    begin({ nightChangesMax: 1 })
    property()
    for (let n = 1; n <= 60; n++) {
      set({ availability: n, finalPrice: 100 + n })
      amount('DECROOMAVL', 1)
      // Entries of other nights in between, some of them alone in a file.
      for (let other = 0; other < 5; other++) set({ date: formatDay(DAY + 1 + other) })
    }
    expect(wal.files.length).toBeGreaterThan(3)
    const pages = await allPages()
    const changes = pages.flatMap((each) => each.changes)

    expect(pages.length).toBeGreaterThan(3)
    expect(changes.map(({ kind, before, after }) => `${kind} ${before.rooms}→${after.rooms}`).slice(-4)).toEqual([
      'decrease 2→1',
      'package 0→2',
      'decrease 1→0',
      'package null→1',
    ])
    expect(changes).toHaveLength(120)
    for (const [n, { searched }] of pages.entries()) {
      const newer = pages[n - 1]?.searched?.from_index ?? node.index + 1
      expect(searched?.to_index).toBe(newer - 1)
    }
    expect(pages.at(-1)?.searched?.from_index).toBe(1)

    compactWal(wal, wal.files[3]?.firstIndex as number)
    const floor = wal.files[0]?.firstIndex as number
    expect(floor).toBeGreaterThan(1)
    const rest = await allPages()
    expect(rest.at(-1)).toMatchObject({ next: '', retained_from: floor, searched: { from_index: floor } })
    expect(rest.flatMap((each) => each.changes).every(({ index }) => index >= floor)).toBe(true)
    // A cursor into files that are gone.
    expect(await page({ cursor: pages.at(-2)?.next ?? '' })).toMatchObject({ changes: [], next: '', searched: null })
  })

  test('a night of many changes is read in pages of bounded size, and each change is listed once', async () => {
    set()
    for (let n = 0; n < 1_500; n++) amount('SETROOMAVL', n % 200)
    const pages = await allPages()

    expect(Math.max(...pages.map(({ changes }) => changes.length))).toBeLessThan(800)
    const indexes = pages.flatMap(({ changes }) => changes.map(({ index }) => index))
    expect(indexes).toEqual(Array.from({ length: 1_501 }, (_, n) => node.index - n))
  })
})

test('parameters that are none are refused by name', async () => {
  const refusal = (fields: { readonly [name: string]: string }) =>
    page(fields).then(String, (error: Error) => error.message)

  expect(await refusal({ property: 'ä'.repeat(9) })).toContain('property: ')
  expect(await refusal({ property: '' })).toContain('property: "" is not a property id')
  expect(await refusal({ date: '2026-02-30' })).toContain('date: "2026-02-30" is not a date')
  expect(await refusal({ room_type: 'x'.repeat(256) })).toContain('room_type must have 1 to 255 bytes')
  for (const cursor of [
    'x',
    '1.2',
    '1.2.0.....',
    '1.2.3.2....',
    '1.2.3...9999..',
    '1.2.3.1.1.1.1.1.1',
    '-1.2.3.....',
  ]) {
    expect(await refusal({ cursor })).toContain('cursor')
  }
  // Places that no page had find what is there, or nothing.
  for (const cursor of ['9999999999.1.5.....', '0.0.3.....', '1.77777777777.3.....', '1.4099.999999999999999.....']) {
    expect((await page({ cursor })).changes.every(({ kind }) => kind === 'package')).toBe(true)
  }
})

/** What a night really was before and after an entry. */
type Truth = { readonly before: string; readonly after: string; readonly code: number }

function present(): string {
  const [double] = nightNow(node.store, node.index, packPropertyId('p') as Uint8Array, DAY).rooms.filter(
    ({ room }) => room === 'double',
  )
  return double?.price === undefined ? 'none' : `${Math.max(0, double.left)} for ${double.price}`
}

/**
 * One random command. With few ids, stays are repeated, reinstated, replaced and taken again. Where a history is read in
 * small pages, each stay has an id of its own: an earlier use of an id would be in a page that follows.
 */
function step(random: Random, isOnce: boolean): Answer {
  node.timeMs += random.below(3) * random.below(1_000)
  const rooms = 1 + random.below(3)
  const command = random.below(20)
  const isTaking = command >= 6 && command <= 10
  const stayId =
    isOnce && isTaking
      ? `n${node.index}`
      : `${isOnce ? 'n' : 's'}${Math.max(0, isOnce ? node.index - random.below(12) : random.below(12))}`
  const lines = [line({ rooms, nights: 1 + random.below(3) })]
  const replaces = random.below(4) === 0 && !isOnce ? { replaces: `s${random.below(12)}` } : {}
  const write = (command: 'BOOKSTAY' | 'HOLDSTAY' | 'CONFIRMSTAY' | 'RELEASESTAY', fields: LooseFields) =>
    ask(node, command, { stayId, ...fields })
  switch (command) {
    case 0:
      return set({ availability: random.below(9), finalPrice: 10 + random.below(5) })
    case 1:
      return ask(node, 'SETROOMPKG', {
        propertyId: 'p',
        roomType: 'double',
        date: DATE,
        finalPrice: 30 + random.below(9),
      })
    case 2:
      return amount('SETROOMAVL', random.below(9))
    case 3:
      return amount('INCROOMAVL', random.below(40) === 0 ? 250 : rooms)
    case 4:
    case 5:
      return amount('DECROOMAVL', rooms)
    case 6:
    case 7:
      return write('BOOKSTAY', { lines, source: 'a', ...replaces })
    case 8:
    case 9:
    case 10:
      return write('HOLDSTAY', { seconds: 60 + random.below(600), lines, ...replaces })
    case 11:
    case 12:
      return write('CONFIRMSTAY', !isOnce && random.below(3) === 0 ? { retake: 1 } : {})
    case 13:
    case 14:
      return write('RELEASESTAY', random.below(5) === 0 ? { void: 1 } : {})
    case 15:
      return isOnce ? property() : write('BOOKSTAY', { lines, reinstate: 1 })
    case 16:
      return random.below(4) === 0
        ? ask(node, 'DELROOMDAY', { propertyId: 'p', roomType: 'double', date: DATE })
        : property()
    case 17:
      return random.below(12) === 0 ? ask(node, 'DELPROP', { propertyId: 'p' }) : property()
    case 18:
      return set({ date: formatDay(DAY + 1), availability: 200 })
    default:
      node.timeMs += random.below(900_000)
      return set({ date: formatDay(DAY - 1), availability: 200 })
  }
}

test('nothing is invented: random histories are as they were, and every change is found', async () => {
  let told = 0
  let all = 0
  for (let seed = 1; seed <= 12; seed++) {
    begin(seed % 2 === 0 ? { nightChangesMax: 3 } : {})
    const random = createRandom(seed)
    property()
    const truths: Truth[] = []
    for (let n = 0; n < 120; n++) {
      const [before, index] = [present(), node.index]
      const { code } = step(random, seed % 2 === 0)
      // Some are refused before they are logged.
      if (node.index > index) truths[node.index] = { before, after: present(), code }
    }
    const pages = await allPages()
    const events = pages.flatMap(({ changes }) => changes)
    for (const [index, truth] of truths.entries()) {
      if (!truth) continue
      const here = events.filter((event) => event.index === index)
      const where = `seed ${seed}, entry ${index}: ${truth.before} → ${truth.after}, code ${truth.code}, ${JSON.stringify(here)}`
      // A hold that expired before its id was used again has left no trace of that.
      if (truth.before !== truth.after && seed % 2 === 0) expect(here.length, where).toBeGreaterThan(0)
      const [last, first] = [here[0], here.at(-1)]
      if (!last || !first) continue
      for (const [state, real] of [
        [first.before, truth.before],
        [last.after, truth.after],
      ] as const) {
        all += 2
        told += Number(state.package !== null) + Number(state.package === false || state.rooms !== null)
        if (state.package === false) expect(real, where).toBe('none')
        if (state.package === true) expect(real, where).not.toBe('none')
        if (state.rooms !== null) expect(real.split(' for ')[0], where).toBe(`${state.rooms}`)
        if (state.price !== null) expect(real.split(' for ')[1], where).toBe(`${state.price}`)
      }
      const command = here.find(({ kind }) => kind !== 'expire' && kind !== 'replaced')
      if (command?.outcome === 'done') expect(truth.code, where).toBe(0)
      if (command?.outcome === 'refused') expect(truth.code, where).not.toBe(0)
    }
  }
  // Ids are used again all the time, and packages deleted: even so, much of it is known.
  expect(told / all).toBeGreaterThan(0.4)
})
