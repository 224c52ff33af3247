/** Requests of every kind that go on while programs are replaced, and what the data must be after them. */
import { setTimeout as wait } from 'node:timers/promises'
import type { VacancyClient } from '@vacancy/client'
import { dateIn, somewhere } from '@vacancy/testkit/node'
import { expect } from 'vitest'

const ROOMS = 200
const NIGHTS = 40
const FIRST_NIGHT = 20
const EVERY_MS = 25
const STAY_EVERY_MS = 50
const HOLD_SECONDS = 3_600
const SEGMENT = 'alpine'
const ROOM_TYPE = 'double'

const nightOf = (n: number) => dateIn(FIRST_NIGHT + (n % NIGHTS))

/** Has no room, all the time. */
export const FULL_NIGHT = { propertyId: 'full', roomType: ROOM_TYPE, date: nightOf(0) }

export type Workload = {
  /** Requests of each kind that were answered so far. */
  readonly answered: () => Readonly<Record<string, number>>
  /** Rejects with the first request that fails. */
  readonly ended: Promise<unknown>
  /** Ends it. Every request must have been answered, and the data must be what the answers say. */
  readonly finish: () => Promise<void>
}

/** @param hasStays whether the program that runs at first knows them */
export async function startWorkload(client: VacancyClient, hasStays: boolean): Promise<Workload> {
  for (const propertyId of ['set', 'counted', 'sold', 'full']) {
    await client.setProperty(somewhere(propertyId, SEGMENT) as Parameters<VacancyClient['setProperty']>[0])
    const availability = propertyId === 'full' ? 0 : ROOMS
    const nights = Array.from({ length: NIGHTS }, (_, n) => ({ propertyId, roomType: ROOM_TYPE, date: nightOf(n) }))
    await Promise.all(nights.map((night) => client.setPackage({ ...night, availability, finalPrice: 100 })))
  }
  const answered: Record<string, number> = {}
  let isOver = false
  const loop = async (name: string, everyMs: number, turn: (n: number) => Promise<void>) => {
    answered[name] = 0
    for (let n = 0; !isOver; n++) {
      await turn(n)
      answered[name] = n + 1
      await wait(everyMs)
    }
  }
  const [sets, counts, stays] = [setting(client), counting(client), staying(client)]
  const loops = [
    loop('values set', EVERY_MS, sets.turn),
    loop('rooms counted', EVERY_MS, counts.turn),
    loop('searches', EVERY_MS, searching(client)),
    ...(hasStays ? [loop('stays', STAY_EVERY_MS, stays.turn)] : []),
  ]
  const ended = Promise.all(loops)
  // Reported to whoever awaits it, at the latest in the end.
  ended.catch(() => {})
  return {
    answered: () => ({ ...answered }),
    ended,
    async finish() {
      isOver = true
      await ended
      await sets.check()
      await counts.check()
      await stays.check()
    },
  }
}

/** Rooms left on each night of a property, as every acknowledged write left them. */
async function roomsOf(client: VacancyClient, propertyId: string): Promise<number[]> {
  const nights = Array.from({ length: NIGHTS }, (_, n) => ({ propertyId, roomType: ROOM_TYPE, date: nightOf(n) }))
  const found = await Promise.all(nights.map((night) => client.getPackage(night, { linearizable: true })))
  return found.map(({ availability }) => availability)
}

function setting(client: VacancyClient) {
  const expected = new Array<number>(NIGHTS).fill(ROOMS)
  return {
    async turn(n: number) {
      const amount = (n * 7) % 256
      await client.setAvailability({ propertyId: 'set', roomType: ROOM_TYPE, date: nightOf(n), amount })
      expected[n % NIGHTS] = amount
    },
    check: async () => expect(await roomsOf(client, 'set')).toEqual(expected),
  }
}

/** A write that took effect twice, or not at all, shows in the next answer. */
function counting(client: VacancyClient) {
  const expected = new Array<number>(NIGHTS).fill(ROOMS)
  return {
    async turn(n: number) {
      const night = { propertyId: 'counted', roomType: ROOM_TYPE, date: nightOf(n), amount: 1 + (n % 3) }
      // Down in one round over the nights, up in the next one.
      const isTaken = Math.floor(n / NIGHTS) % 2 === 0
      const rooms = (expected[n % NIGHTS] ?? 0) + (isTaken ? -night.amount : night.amount)
      expect(await (isTaken ? client.decreaseAvailability(night) : client.increaseAvailability(night))).toBe(rooms)
      expected[n % NIGHTS] = rooms
    },
    check: async () => expect(await roomsOf(client, 'counted')).toEqual(expected),
  }
}

/** Finds what always has rooms, and never what has none. */
function searching(client: VacancyClient) {
  return async (n: number) => {
    const dates = [nightOf(n % (NIGHTS - 1)), nightOf((n % (NIGHTS - 1)) + 1)]
    const found = await client.searchAvailability({ segment: SEGMENT, roomType: ROOM_TYPE, dates })
    const ids = found.map(({ propertyId }) => propertyId)
    expect(ids).toEqual(expect.arrayContaining(['counted', 'sold']))
    expect(ids).not.toContain('full')
  }
}

/** Stays that are booked, held and confirmed, booked and released, held and given back, held and left. */
function staying(client: VacancyClient) {
  const expected = new Map<string, string>()
  const rooms = new Array<number>(NIGHTS).fill(ROOMS)
  return {
    async turn(n: number) {
      const stayId = `stay-${n}`
      const [first, nights] = [n % (NIGHTS - 3), 1 + (n % 3)]
      const lines = [{ propertyId: 'sold', roomType: ROOM_TYPE, arrival: nightOf(first), nights, rooms: 1 }]
      const kind = n % 5
      const isHeld = kind === 1 || kind >= 3
      let { state } = await (isHeld
        ? client.holdStay({ stayId, seconds: HOLD_SECONDS, lines })
        : client.bookStay({ stayId, lines }))
      if (kind === 1) ({ state } = await client.confirmStay(stayId))
      if (kind === 2 || kind === 3) ({ state } = await client.releaseStay(stayId))
      expected.set(stayId, state)
      if (state === 'released') return
      for (let night = first; night < first + nights; night++) rooms[night] = (rooms[night] ?? 0) - 1
    },
    async check() {
      expect(await roomsOf(client, 'sold')).toEqual(rooms)
      const ids = [...expected.keys()]
      const found = await Promise.all(ids.map((id) => client.stay(id, { linearizable: true })))
      expect(found.map(({ state }) => state)).toEqual([...expected.values()])
      if (ids.length > 0) expect(new Set(expected.values())).toEqual(new Set(['booked', 'released', 'held']))
    },
  }
}
