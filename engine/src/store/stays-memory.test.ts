/** Records of the ledger without commands: lists, counts, memory, digest, and the words that a snapshot copies first. */
import { STAY_STATE } from '@vacancy/shared/wire'
import { createRandom } from '@vacancy/testkit/random'
import { beforeEach, describe, expect, test, vi } from 'vitest'
import { unannounced } from '../testing/unannounced.ts'
import type * as CopyOnWrite from './cow.ts'
import { internText, NAMES } from './dictionary.ts'
import { CONTROL, STATE, STAY, STAY_LINE, STAY_PROPERTY } from './layout.ts'
import {
  changeStay,
  clampHolds,
  createStay,
  findStay,
  findStayProperty,
  forEachStay,
  generationOf,
  HOLD_MS_MAX,
  isCurrent,
  lineCount,
  lineOf,
  moment,
  nextGeneration,
  recordOf,
  removeStay,
  type StayRecord,
  setGeneration,
  setLineGenerations,
  stateOf,
  stayBytes,
  stayPropertyOf,
} from './stays.ts'
import { createStore, publish, type Store, setState, state } from './store.ts'
import { field } from './table-fields.ts'

const watch = vi.hoisted(() => ({ touched: (_address: number, _bytes: number): void => undefined }))
vi.mock('./cow.ts', async (load) => {
  const cow = await load<typeof CopyOnWrite>()
  const touch: typeof cow.touch = (store, address, bytes) => {
    watch.touched(address, bytes)
    cow.touch(store, address, bytes)
  }
  return { ...cow, touch }
})

const SEED = Number(process.env['VACANCY_SEED'] ?? 1)
const START_MS = 1_700_000_000_000
const RECORD: StayRecord = {
  ...{ state: STAY_STATE.held, deadlineMs: START_MS + 9, total: 2 ** 40 + 7, index: 2 ** 33 + 5 },
  ...{ timeMs: START_MS, bookedIndex: 0, heldSinceMs: START_MS },
}
const SETTLED = { ...RECORD, state: STAY_STATE.booked, deadlineMs: 0, bookedIndex: 3 }

let store: Store
beforeEach(() => {
  store = createStore({ memoryBytes: 6 << 20, readers: 1, scratchBytes: 8192, sessionBytesMax: 0 })
  setState(store, STATE.featureLevel, 3)
  for (const name of ['double', 'suite']) internText(store, NAMES.roomType, name)
})

/** A packed id after four other bytes. */
const idOf = (n: number, kind = 0xa0) => Uint8Array.from({ length: 20 }, (_, at) => (at < 4 ? 255 : kind + n * at))
type Line = { readonly of?: number; readonly roomType?: number; readonly arrival?: number }
const lineRecord = ({ of = 1, roomType = 0, arrival = 20_000 }: Line) => ({
  ...{ id: idOf(of, 1), idStart: 4, roomType, arrival, nights: 3, rooms: 2, flags: 1 },
})
const create = (n: number, record: Partial<StayRecord> = {}, lines: Line[] = [{}], source = '') =>
  createStay(store, idOf(n), 4, { ...RECORD, ...record }, Buffer.from(source), lines.map(lineRecord))

const digest = () => [state(store.memory, STATE.digestLow), state(store.memory, STATE.digestHigh)]
const propertyOf = (n: number) => findStayProperty(store, idOf(n, 1), 4)
const listed = (head: number) => {
  const found: number[] = []
  forEachStay(store.memory, head, (stay) => found.push(stay))
  return found
}
/** The same list from its end. */
const backwards = (head: number) => {
  const found: number[] = []
  for (let stay = state(store.memory, head + 1); stay !== 0; stay = field(store.memory, stay + STAY.previous)) {
    found.push(stay)
  }
  return found.reverse()
}
const used = () => {
  for (let n = 0; n < 2; n++) publish(store, 1)
  return store.writer.records.usedBytes
}

describe('a stay', () => {
  test('has its record, its lines and its source', () => {
    const lines = [{ of: 1 }, { of: 2, roomType: 1, arrival: 20_005 }]
    const stay = create(5, { bookedIndex: 12 }, lines, 'ota')
    const { memory } = store
    expect([findStay(store, idOf(5), 4), findStay(store, idOf(6), 4)]).toEqual([stay, 0])
    expect(recordOf(memory, stay)).toEqual({ ...RECORD, bookedIndex: 12 })
    expect([stateOf(memory, stay), lineCount(memory, stay)]).toEqual([STAY_STATE.held, 2])
    expect(moment(memory, stay, STAY.total)).toBe(2 ** 40 + 7)
    expect(Buffer.from(memory.u8.slice(stay + STAY.source, stay + STAY.source + 3)).toString()).toBe('ota')
    expect(memory.u8[stay + STAY.sourceBytes]).toBe(3)
    const found = [0, 1].map((n) => {
      const line = lineOf(stay, n)
      const cells = [0, STAY_LINE.roomType, STAY_LINE.arrival, STAY_LINE.stay].map((at) => field(memory, line + at))
      return [...cells, ...[STAY_LINE.nights, STAY_LINE.rooms, STAY_LINE.flags].map((at) => memory.u8[line + at])]
    })
    expect(found).toEqual([
      [propertyOf(1), 0, 20_000, stay, 3, 2, 1],
      [propertyOf(2), 1, 20_005, stay, 3, 2, 1],
    ])
    expect([lineOf(stay, 0) - stay, lineOf(stay, 1) - stay]).toEqual([STAY.bytes, STAY.bytes + STAY_LINE.bytes])
    expect([stayBytes(0), stayBytes(2)]).toEqual([112, 112 + 64])
  })

  test('is counted with its bytes, which are free again when it is removed', () => {
    const [before, charge] = [used(), store.writer.charge.bytes]
    const first = create(1, {}, [{ of: 1 }, { of: 2 }])
    const second = create(2, SETTLED, [{ of: 2 }])
    const bytes = stayBytes(2) + stayBytes(1) + 2 * STAY_PROPERTY.bytes
    expect([store.writer.ledger.bytes, store.writer.charge.bytes - charge, used() - before]).toEqual([
      bytes,
      bytes,
      bytes,
    ])
    expect([state(store.memory, STATE.stayCount), store.writer.ledger.stays.size]).toEqual([2, 2])
    removeStay(store, first)
    expect([propertyOf(1), propertyOf(2) !== 0, findStay(store, idOf(1), 4)]).toEqual([0, true, 0])
    removeStay(store, second)
    expect([store.writer.ledger.bytes, store.writer.charge.bytes - charge, used() - before]).toEqual([0, 0, 0])
    expect([state(store.memory, STATE.stayCount), state(store.memory, STATE.stayPropertyHead)]).toEqual([0, 0])
  })
})

describe('the lists', () => {
  test('of held and settled stays are in the order in which the stays reached their state', () => {
    const random = createRandom(SEED)
    const model: { [head: number]: number[] } = { [STATE.heldHead]: [], [STATE.settledHead]: [] }
    const drop = (stay: number) => {
      for (const list of Object.values(model)) if (list.includes(stay)) list.splice(list.indexOf(stay), 1)
    }
    for (let n = 0; n < 300; n++) {
      const all = Object.values(model).flat()
      const stay = all[random.below(all.length)] ?? 0
      const isHeld = random.below(2) === 0
      const head = isHeld ? STATE.heldHead : STATE.settledHead
      const record = isHeld ? RECORD : SETTLED
      const roll = random.below(4)
      if (all.length < 3 || roll === 0) model[head]?.push(create(n % 100, record, [{ of: random.below(3) }]))
      else {
        drop(stay)
        if (roll === 1) removeStay(store, stay)
        else {
          changeStay(store, stay, record)
          model[head]?.push(stay)
        }
      }
      for (const each of [STATE.heldHead, STATE.settledHead]) {
        expect([listed(each), backwards(each)], `VACANCY_SEED=${SEED}, ${n}`).toEqual([model[each], model[each]])
      }
      expect(store.writer.ledger.heldCount).toBe(model[STATE.heldHead]?.length)
      if (n % 100 === 99)
        for (const each of Object.values(model).flat()) {
          drop(each)
          removeStay(store, each)
        }
    }
    expect(digest()).toEqual([0, 0])
  })

  test('of lines and of properties lose any of theirs', () => {
    const { memory } = store
    const stays = [1, 2, 3, 4].map((n) => create(n, {}, [{ of: 7 }, { of: n + 10 }]))
    const lines = () => {
      const found: number[] = []
      for (let line = field(memory, propertyOf(7) + STAY_PROPERTY.firstLine); line !== 0; ) {
        found.push(field(memory, line + STAY_LINE.stay))
        const next = field(memory, line + STAY_LINE.next)
        if (next !== 0) expect(field(memory, next + STAY_LINE.previous)).toBe(line)
        line = next
      }
      return found
    }
    const properties = () => {
      const found: number[] = []
      for (let at = state(memory, STATE.stayPropertyHead); at !== 0; ) {
        found.push(at)
        const next = field(memory, at + STAY_PROPERTY.next)
        if (next !== 0) expect(field(memory, next + STAY_PROPERTY.previous)).toBe(at)
        at = next
      }
      return found
    }
    const known = [14, 13, 12, 11, 7].map(propertyOf)
    const control = memory.u32.slice(0, CONTROL.today + 1)
    expect([lines(), properties()]).toEqual([stays.toReversed(), known])
    expect(field(memory, propertyOf(7) + STAY_PROPERTY.references)).toBe(4)
    for (const n of [2, 4, 1, 3]) {
      const property = propertyOf(n + 10)
      removeStay(store, stays[n - 1] as number)
      stays[n - 1] = 0
      known.splice(known.indexOf(property), 1)
      if (n === 3) known.length = 0
      expect([lines(), properties()]).toEqual([stays.filter((stay) => stay !== 0).reverse(), known])
    }
    expect(store.writer.ledger.properties.size).toBe(0)
    // The ends of the lists are not taken for addresses.
    expect(memory.u32.slice(0, CONTROL.today + 1)).toEqual(control)
  })
})

test('held stays are counted by source while they are held', () => {
  const { ledger } = store.writer
  const [first, second] = [create(1, {}, [], 'ota'), create(2, {}, [], 'ota')]
  create(3, {}, [], 'é')
  create(4, SETTLED, [], 'other')
  expect([...ledger.heldBySource]).toEqual([
    ['ota', 2],
    ['\u00c3\u00a9', 1],
  ])
  changeStay(store, first, SETTLED)
  expect([ledger.heldBySource.get('ota'), ledger.heldCount]).toEqual([1, 2])
  removeStay(store, second)
  expect([ledger.heldBySource.has('ota'), ledger.heldCount, ledger.heldBySource.size]).toEqual([false, 1, 1])
})

test('deadlines of earlier extensions go once there are 1,024 more than twice the holds', () => {
  const { ledger } = store.writer
  const stay = create(1, {}, [])
  create(2, { deadlineMs: START_MS + 1 }, [])
  for (let n = 0; n < 1_026; n++) changeStay(store, stay, { deadlineMs: START_MS + 100 + n })
  expect(ledger.deadlines).toHaveLength(1_028)
  changeStay(store, stay, { deadlineMs: START_MS + 5_000 })
  expect(ledger.deadlines.map(({ deadlineMs }) => deadlineMs)).toEqual([START_MS + 1, START_MS + 5_000])
})

test('when time is set back, a hold ends a day after the new time at the latest', () => {
  const ends = [HOLD_MS_MAX, HOLD_MS_MAX + 1, HOLD_MS_MAX - 1, HOLD_MS_MAX + 99]
  const stays = ends.map((ms, n) => create(n, { deadlineMs: START_MS - 500 + ms }, []))
  const settled = create(9, { ...SETTLED, deadlineMs: START_MS + 2 * HOLD_MS_MAX }, [])
  clampHolds(store, START_MS - 500)
  const found = stays.map((stay) => recordOf(store.memory, stay))
  expect(found.map(({ deadlineMs }) => deadlineMs - START_MS + 500)).toEqual([
    ...[HOLD_MS_MAX, HOLD_MS_MAX, HOLD_MS_MAX - 1, HOLD_MS_MAX],
  ])
  expect(found.map(({ heldSinceMs }) => heldSinceMs - START_MS)).toEqual([0, -500, 0, -500])
  expect(recordOf(store.memory, settled).deadlineMs).toBe(START_MS + 2 * HOLD_MS_MAX)
  expect(HOLD_MS_MAX).toBe(86_400_000)
})

describe('a generation of a property', () => {
  test('makes lines of the one before no longer current', () => {
    const stay = create(1)
    const current = (of: number) => isCurrent(store.memory, lineOf(of, 0))
    expect([generationOf(store.memory, propertyOf(1)), current(stay)]).toEqual([0, true])
    nextGeneration(store, propertyOf(1))
    const later = create(2)
    expect([generationOf(store.memory, propertyOf(1)), current(stay), current(later)]).toEqual([1, false, true])
    nextGeneration(store, propertyOf(1))
    expect([current(stay), current(later)]).toEqual([false, false])
    setLineGenerations(store, stay, [2])
    expect([current(stay), current(later)]).toEqual([true, false])
    for (const each of [stay, later]) removeStay(store, each)
    expect([digest(), stayPropertyOf(store, idOf(1, 1), 4) !== 0]).toEqual([[0, 0], true])
    expect(generationOf(store.memory, propertyOf(1))).toBe(0)
  })

  test('is in the digest in the same way when it is loaded', () => {
    create(1)
    nextGeneration(store, propertyOf(1))
    nextGeneration(store, propertyOf(1))
    const expected = digest()
    const [first] = listed(STATE.heldHead)
    removeStay(store, first as number)
    expect(digest()).toEqual([0, 0])
    const stay = create(1)
    setGeneration(store, idOf(1, 1), 4, 2)
    setGeneration(store, idOf(8, 1), 4, 2)
    setLineGenerations(store, stay, [0])
    expect(digest()).toEqual(expected)
  })
})

describe('the digest of a stay', () => {
  test('is the same in every version', () => {
    create(1, {}, [{}, { of: 2, roomType: 1 }], 'ota')
    const hex = () => digest().map((lane) => lane.toString(16).padStart(8, '0'))
    expect(hex().join(' ')).toBe('e04097c4 0a29c775')
    nextGeneration(store, propertyOf(2))
    expect(hex().join(' ')).toBe('75c90787 8729788e')
  })

  test.each<[string, () => unknown]>([
    ['id', () => create(2)],
    ...(['deadlineMs', 'total', 'index', 'timeMs', 'bookedIndex', 'heldSinceMs'] as const).flatMap(
      (name): [string, () => unknown][] => [
        [name, () => create(1, { [name]: RECORD[name] + 1 })],
        [`${name}, upper half`, () => create(1, { [name]: RECORD[name] + 2 ** 41 })],
      ],
    ),
    ['state', () => create(1, { state: STAY_STATE.booked })],
    ['property of a line', () => create(1, {}, [{ of: 2 }])],
    ['room type', () => create(1, {}, [{ roomType: 1 }])],
    ['arrival', () => create(1, {}, [{ arrival: 20_001 }])],
    ['number of lines', () => create(1, {}, [{}, {}])],
    ['source', () => create(1, {}, [{}], 'o')],
  ])('depends on its %s', (_, other) => {
    const first = create(1)
    const [low, high] = digest()
    removeStay(store, first)
    other()
    expect(digest()[0]).not.toBe(low)
    expect(digest()[1]).not.toBe(high)
  })
})

describe('a snapshot in progress has a copy of each word before it changes', () => {
  test.each<[string, (stay: number) => void]>([
    ['a new stay', () => create(9, {}, [{}, { of: 5 }], 'ota')],
    [
      'a stay that changes all of its record',
      (stay) => changeStay(store, stay, { ...SETTLED, total: 1, index: 1, timeMs: 1 }),
    ],
    ['a stay that is held since later', (stay) => changeStay(store, stay, { heldSinceMs: START_MS + 1 })],
    ['a stay that is removed', (stay) => removeStay(store, stay)],
    ['another generation', () => nextGeneration(store, propertyOf(1))],
    ['loaded generations', (stay) => setLineGenerations(store, stay, [4])],
  ])('%s', (_, operation) => {
    const stays = [1, 2, 3].map((n) => create(n, {}, [{ of: 1 }, { of: n }]))
    expect(unannounced(store, watch, () => operation(stays[1] as number))).toEqual([])
  })
})
