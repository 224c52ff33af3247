/** Stays over steps of the feature level: logs of earlier levels keep their rules, and what they left behind is kept. */

import { createHash } from 'node:crypto'
import { formatDay } from '@vacancy/shared'
import { chance, createRandom, pick } from '@vacancy/testkit/random'
import { beforeEach, describe, expect, test } from 'vitest'
import { encodeLedger } from '../snapshot/ledger.ts'
import { copyOf } from '../testing/copied-node.ts'
import { TODAY } from '../testing/model.ts'
import {
  type Answer,
  applyOwn,
  ask,
  createNodeInMemory,
  type LooseFields,
  type NodeInMemory,
  raiseFeatureLevel,
} from '../testing/node-in-memory.ts'
import { KIND, writeU8, writeU32 } from './command.ts'
import { recountCharge } from './recount.ts'
import { stateDigest } from './store.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const PLACE = { segment: 's', area: 'a', propertyType: 'hotel', category: 'c', stars: 3, latitude: 1, longitude: 1 }
const HOTELS = ['p', 'q']
const STAYS = Array.from({ length: 40 }, (_, n) => `stay-${n}`)

let node: NodeInMemory
const line = (propertyId: string, n: number, nights = 2, rooms = 1) => ({
  ...{ propertyId, roomType: 'double', arrival: formatDay(TODAY + n), nights, rooms },
})
const digestOf = ({ store }: NodeInMemory) => {
  const { lo, hi } = stateDigest(store.memory)
  return `${lo.toString(16)} ${hi.toString(16)}`
}
const stateOf = (answer: Answer) => (answer.result as { state?: string }).state
const getState = (stayId: string) => stateOf(ask(node, 'GETSTAY', { stayId }))
const left = (n: number, propertyId = 'p') => {
  const { result } = ask(node, 'GETPROPROOMDAY', { propertyId, roomType: 'double', date: formatDay(TODAY + n) })
  return (result as { availability?: number }).availability
}

function fill(propertyId: string, rooms = 5): void {
  ask(node, 'SETPROP', { ...PLACE, propertyId, amenities: [] })
  for (let n = 0; n < 12; n++) {
    const night = { propertyId, roomType: 'double', date: formatDay(TODAY + n) }
    ask(node, 'SETROOMPKG', { ...night, availability: rooms, finalPrice: 10 })
  }
}

beforeEach(() => {
  node = createNodeInMemory(TODAY, 48 << 20)
  raiseFeatureLevel(node, 3)
  node.timeMs = TODAY * DAY_MS + HOUR_MS
  for (const hotel of HOTELS) fill(hotel)
})

/** A week of stays under the rules of the level of the node. */
function sellForAWeek(): void {
  const random = createRandom(7)
  for (let n = 0; n < 2_000; n++) {
    node.timeMs += random.below(1_000_000)
    node.day = Math.floor(node.timeMs / DAY_MS)
    const stayId = pick(random, STAYS)
    const ahead = node.day - TODAY
    const fields = { stayId, lines: [line(pick(random, HOTELS), ahead + random.below(4), 1 + random.below(3))] }
    const replaces = chance(random, 0.3)
      ? {
          replaces: pick(
            random,
            STAYS.filter((id) => id !== stayId),
          ),
        }
      : {}
    const night = { propertyId: pick(random, HOTELS), roomType: 'double', date: formatDay(node.day + random.below(5)) }
    const commands: (() => unknown)[] = [
      () => ask(node, 'BOOKSTAY', { ...fields, ...replaces }),
      () => ask(node, 'HOLDSTAY', { ...fields, ...replaces, seconds: 60 + random.below(9_000) }),
      () => ask(node, 'CONFIRMSTAY', { stayId, ...(chance(random, 0.5) && { retake: 1 }) } as LooseFields),
      () => ask(node, 'RELEASESTAY', { stayId }),
      () => ask(node, 'RELEASESTAY', chance(random, 0.5) ? fields : { stayId, void: 1 }),
      () =>
        ask(node, 'SETROOMAVL', {
          ...night,
          amount: random.below(9),
          asOf: Math.max(0, node.index - random.below(40)),
        }),
      () => ask(node, 'INCROOMAVL', { ...night, amount: random.below(255) }),
      () => ask(node, 'SETROOMPKG', { ...night, availability: random.below(9) }),
    ]
    if (n % 150 === 149) ask(node, 'DELPROP', { propertyId: night.propertyId })
    if (n % 150 === 99) for (const hotel of HOTELS) fill(hotel)
    if (n % 200 === 0) {
      applyOwn(node, KIND.dropBefore, (writer) => {
        writeU32(writer, node.day)
        writeU8(writer, 0)
      })
    }
    pick(random, commands)()
  }
}

test('a log of feature level 3 gives the state that it gave before, and older members the same snapshot', () => {
  sellForAWeek()

  expect(createHash('sha256').update(encodeLedger(node.store.memory)).digest('hex').slice(0, 16)).toBe(
    '18d86f2fbe620852',
  )

  expect(digestOf(node)).toBe('864f3603 2ba70589')
})

describe('the step to feature level 4', () => {
  test('keeps stays and rooms, on replicas of both kinds', () => {
    sellForAWeek()
    const copy = copyOf(node)
    const before = STAYS.map(getState)

    for (const each of [node, copy]) raiseFeatureLevel(each)

    expect(digestOf(copy)).toBe(digestOf(node))
    expect(digestOf(copyOf(node))).toBe(digestOf(node))
    expect(STAYS.map(getState)).toEqual(before)
    expect(node.store.writer.charge.bytes).toBe(recountCharge(node.store.memory))
  })

  test('bookings that are remembered stay so until after their last night', () => {
    ask(node, 'BOOKSTAY', { stayId: 'x', lines: [line('p', 9)] })
    node.timeMs += 71 * HOUR_MS
    raiseFeatureLevel(node)
    node.timeMs += 48 * HOUR_MS
    expect(getState('x')).toBe('booked')

    node.timeMs = (TODAY + 11) * DAY_MS + 72 * HOUR_MS
    ask(node, 'DELPROP', { propertyId: 'q' })

    expect(getState('x')).toBeUndefined()
  })

  test('what is on hold without a package is counted as missing from then on', () => {
    ask(node, 'HOLDSTAY', { stayId: 'x', seconds: 900, lines: [line('p', 2)] })
    ask(node, 'DELROOMDAY', { propertyId: 'p', roomType: 'double', date: formatDay(TODAY + 2) })
    expect(node.store.writer.ledger.oversold.size).toBe(0)

    raiseFeatureLevel(node)

    expect(node.store.writer.ledger.oversold.size).toBe(1)
  })

  test('a property that was deleted before has none of the stays of then', () => {
    ask(node, 'BOOKSTAY', { stayId: 'x', lines: [line('p', 2)] })
    ask(node, 'DELPROP', { propertyId: 'p' })
    raiseFeatureLevel(node)
    fill('p')

    ask(node, 'RELEASESTAY', { stayId: 'x' })

    expect(left(2)).toBe(5)
  })
})

test.each([
  [4, 'BOOKSTAY', { reinstate: 1 }],
  [4, 'HOLDSTAY', { reinstate: 1, releasedAt: 9 }],
  [4, 'RELEASESTAY', { unrecorded: 1 }],
  [6, 'RELEASESTAY', { unrecorded: 1, bookedAt: 9 }],
] as const)('from feature level %i on, %s has fields that it refuses before', (level, command, given) => {
  const fields = { stayId: 'x', lines: [line('p', 2)], ...given }
  raiseFeatureLevel(node, level - 1)
  expect(ask(node, command, fields).error).toBe('VALIDATION_ERROR')
  raiseFeatureLevel(node, level)

  expect(ask(node, command, fields).error).toBe('')
})
