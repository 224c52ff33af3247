import { formatDay, parseDay } from '@vacancy/shared'
import { between, createRandom } from '@vacancy/testkit/random'
import { expect, test } from 'vitest'
import {
  applyCommandOf,
  ask,
  createNodeInMemory,
  type NodeInMemory,
  orderRows,
  raiseFeatureLevel,
} from '../testing/node-in-memory.ts'
import { recountDigest } from './apply.ts'
import { KIND } from './command.ts'
import { type OrderCommand, orderTables, unorderedTables } from './row-order.ts'
import { stateDigest } from './store.ts'

const TODAY = parseDay('2026-11-20') as number
const SEED = Number(process.env['VACANCY_SEED'] ?? Math.floor(Math.random() * 2 ** 24))
const PROPERTIES = 700
const NIGHTS = 20

const idOf = (n: number) => `p${String(n).padStart(4, '0')}`

function addProperty(node: NodeInMemory, n: number, seed: number): void {
  const random = createRandom(seed + n)
  const fields = {
    segment: 's',
    area: `a${between(random, 0, 5)}`,
    propertyType: `t${between(random, 0, 3)}`,
    category: `c${between(random, 0, 2)}`,
    stars: between(random, 1, 5),
  }
  ask(node, 'SETPROP', { ...fields, propertyId: idOf(n), latitude: 1, longitude: 1, amenities: [] })
  for (let night = 0; night < NIGHTS; night++) {
    if (between(random, 0, 3) === 0) continue
    const place = { propertyId: idOf(n), roomType: 'r', date: formatDay(TODAY + night) }
    ask(node, 'SETROOMPKG', { ...place, availability: between(random, 0, 2), finalPrice: n * 100 + night })
  }
}

function filled(seed: number): NodeInMemory {
  const node = createNodeInMemory(TODAY)
  raiseFeatureLevel(node)
  for (let n = 0; n < PROPERTIES; n++) addProperty(node, n, seed)
  const random = createRandom(seed)
  // Dead rows keep their positions.
  for (let n = 0; n < 60; n++) ask(node, 'DELPROP', { propertyId: idOf(between(random, 0, PROPERTIES - 1)) })
  return node
}

/** Everything that a search finds on each night, in row order. */
function answers(node: NodeInMemory): string[] {
  return Array.from({ length: NIGHTS }, (_, night) => {
    const dates = [formatDay(TODAY + night)]
    return JSON.stringify(
      ['t1', undefined].map((propertyType) =>
        ask(node, 'SEARCHAVAIL', { segment: 's', roomType: 'r', dates, limit: 1000, propertyType }),
      ),
    )
  })
}

test(`rows are sorted by commands of bounded size; it used to be one long pause (VACANCY_SEED=${SEED})`, () => {
  const atOnce = filled(SEED)
  const inSteps = filled(SEED)
  expect(unorderedTables(inSteps.store.memory)).toHaveLength(2)

  orderRows(atOnce, 's', 'r')
  orderRows(atOnce, 's')
  const commands: OrderCommand[] = []
  for (const command of orderTables(inSteps.store.memory)) {
    if (command) {
      commands.push(command)
      applyCommandOf(inSteps, command.kind, command.body)
    }
  }

  expect(commands.length).toBeGreaterThan(PROPERTIES / 256)
  for (const { kind, body } of commands) {
    expect(kind).toBe(KIND.swapRows)
    // At most 128 pairs of ids, where a row has few nights.
    expect(body.length).toBeLessThan(128 * 32 + 64)
  }
  expect(unorderedTables(inSteps.store.memory)).toHaveLength(0)
  expect(answers(inSteps)).toEqual(answers(atOnce))
  expect(recountDigest(inSteps.store.memory).digest).toEqual(stateDigest(inSteps.store.memory))
})

test(`properties may change, disappear and appear between two of these commands (VACANCY_SEED=${SEED})`, () => {
  const node = filled(SEED)
  const random = createRandom(SEED)
  let applied = 0
  let next = PROPERTIES
  for (const command of orderTables(node.store.memory)) {
    if (command === undefined) continue
    applyCommandOf(node, command.kind, command.body)
    applied++
    const propertyId = idOf(between(random, 0, PROPERTIES - 1))
    if (applied % 3 === 0) ask(node, 'DELPROP', { propertyId })
    else if (applied % 3 === 1) addProperty(node, next++, SEED)
    else {
      const fields = { segment: 'elsewhere', area: 'a', propertyType: 't', category: 'c', stars: 1 }
      ask(node, 'SETPROP', { ...fields, propertyId, latitude: 1, longitude: 1, amenities: [] })
    }
    expect(recountDigest(node.store.memory).digest).toEqual(stateDigest(node.store.memory))
  }

  expect(applied).toBeGreaterThan(3)
  const dates = [formatDay(TODAY)]
  for (const segment of ['s', 'elsewhere']) {
    // `ask` compares the kernel with its reference over rows, bits and words.
    const found = ask(node, 'SEARCHAVAIL', { segment, roomType: 'r', dates, limit: 1000 }).result.properties ?? []
    expect(new Set(found.map(({ propertyId }) => propertyId)).size).toBe(found.length)
    for (const { propertyId, days } of found) expect(days[0]?.finalPrice).toBe(Number(propertyId.slice(1)) * 100)
  }
})
