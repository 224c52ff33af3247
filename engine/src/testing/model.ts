/** A store compared with a model (structure-model.ts) under random commands from a seed: every reply must be equal. */

import { formatDay, parseDay } from '@vacancy/shared'
import type { CommandName } from '@vacancy/shared/wire'
import { createRandom } from '@vacancy/testkit/random'
import { expect } from 'vitest'
import { recountDigest } from '../store/apply.ts'
import { recountCharge } from '../store/recount.ts'
import { countsOf, stateDigest } from '../store/store.ts'
import {
  ask,
  createNodeInMemory,
  type LooseFields,
  type NodeInMemory,
  orderRows,
  raiseFeatureLevel,
  SAMPLE_CODECS,
} from './node-in-memory.ts'
import { applyToModel, createStructureModel, faultOf } from './structure-model.ts'

export const TODAY = parseDay('2026-11-20') as number

export type Shape = { properties: number; segments: number; rooms: number; areas: number; steps: number }

export function runModel(seed: number, shape: Shape, memoryBytes = 64 << 20): NodeInMemory {
  const { below: next } = createRandom(seed)
  const pick = <T>(list: readonly T[]): T => list[next(list.length)] as T
  const names = (prefix: string, count: number) => Array.from({ length: count }, (_, i) => `${prefix}${i}`)
  const ids = names('p', shape.properties)
  const dates = Array.from({ length: 20 }, (_, i) => formatDay(TODAY + i * (i > 15 ? 18 : 1)))
  const segments = names('segment', shape.segments)
  const rooms = names('room', shape.rooms)
  const node = createNodeInMemory(TODAY, memoryBytes)
  const model = createStructureModel(dates, rooms)
  const some = (list: readonly string[]) => list.filter(() => next(3) === 0)
  const property = (): LooseFields => ({
    segment: pick(segments),
    area: pick(names('area', shape.areas)),
    propertyId: pick(ids),
    propertyType: pick(['hotel', 'hostel']),
    category: pick(['budget', 'luxury', 'großzügig']),
    stars: 1 + next(5),
    latitude: 47 + next(1000) / 10_000,
    longitude: 8 + next(1000) / 10_000,
    amenities: some(['pool', 'bar', 'spa', 'gym']),
  })
  const night = () => ({ propertyId: pick(ids), roomType: pick(rooms), date: pick(dates) })
  const write = (): [CommandName, LooseFields] => {
    const what = next(100)
    if (what < 15) return ['SETPROP', property()]
    if (what < 60) {
      return [
        'SETROOMPKG',
        {
          ...night(),
          ...(next(4) > 0 ? { availability: next(4) * next(80) } : {}),
          ...(next(4) > 0 ? { finalPrice: next(300) } : {}),
          ...(next(2) > 0 ? { rateFeatures: some(SAMPLE_CODECS) } : {}),
        },
      ]
    }
    if (what < 90)
      return [pick(['DECROOMAVL', 'INCROOMAVL', 'SETROOMAVL'] as const), { ...night(), amount: 1 + next(60) }]
    if (what < 94) return ['DELROOMDAY', night()]
    if (what < 96) return ['DELPROPDAY', { propertyId: pick(ids), date: pick(dates) }]
    if (what < 98) return ['DELPROPROOM', { propertyId: pick(ids), roomType: pick(rooms) }]
    if (what < 99 || next(8) > 0) return ['DELPROP', { propertyId: pick(ids) }]
    return ['DELSEGMENT', { segment: pick(segments) }]
  }
  const query = (): LooseFields => ({
    segment: pick(segments),
    ...(next(4) === 0 ? { area: pick(names('area', shape.areas)) } : {}),
    ...(next(4) === 0 ? { propertyType: 'hotel' } : {}),
    ...(next(6) === 0 ? { category: pick(['luxury', 'absent']) } : {}),
    ...(next(6) === 0 ? { stars: 1 + next(5) } : {}),
    ...(next(6) === 0 ? { minStars: 1 + next(5) } : {}),
    ...(next(5) === 0 ? { amenities: some(['pool', 'bar', 'spa']) } : {}),
    ...(next(6) === 0 ? { latitude: 47.05, longitude: 8.05, radiusMetres: 500 + next(4000) } : {}),
  })
  const stay = (): LooseFields => {
    const first = next(15)
    return {
      ...query(),
      roomType: pick(rooms),
      dates: dates.slice(first, first + 1 + next(7)),
      ...(next(3) === 0 ? { availability: next(4) } : {}),
      ...(next(3) === 0 ? { finalPrice: next(300) } : {}),
      ...(next(5) === 0 ? { minPrice: next(200) } : {}),
      ...(next(3) === 0 ? { rateFeatures: [pick(SAMPLE_CODECS)] } : {}),
      ...(next(8) === 0 ? { propertyId: pick(ids) } : {}),
    }
  }
  // Most of the run uses the newest rules; its start uses those of older logs.
  const raisedAt = next(shape.steps / 4)
  for (let step = 0; step < shape.steps; step++) {
    if (step === raisedAt) raiseFeatureLevel(node)
    // Sorted at first, then unsorted: the ranges of bitmaps are narrow first.
    if (next(200) === 0) orderRows(node, pick(segments), next(2) === 0 ? pick(rooms) : undefined)
    const [command, fields] = write()
    const index = step + 1
    const expected = applyToModel(model, index, command, fields)
    const got = ask(node, command, fields)
    expect([got.error, got.value], `seed ${seed}, step ${step}: ${command} ${JSON.stringify(fields)}`).toEqual([
      expected.error,
      expected.value,
    ])
    if (step % 5 !== 0) continue
    for (const [asked, search] of [
      ['SEARCHAVAIL', stay()],
      ['SEARCHPROP', query()],
    ] as const) {
      const { error, result } = ask(node, asked, search)
      const answer = { command: asked, fields: search, from: index, to: index, error, result, slices: 1 }
      expect(faultOf(model, answer), `seed ${seed}, step ${step}: ${asked} ${JSON.stringify(search)}`).toBe('')
    }
  }
  const recount = recountDigest(node.store.memory)
  expect(stateDigest(node.store.memory)).toEqual(recount.digest)
  expect(countsOf(node.store.memory)).toMatchObject({ properties: recount.properties, packages: recount.packages })
  expect(node.store.writer.charge.bytes).toBe(recountCharge(node.store.memory))
  const words = [...model.words.values()].filter((history) => history.at(-1)?.value !== undefined)
  expect(recount.packages).toBe(words.length)
  return node
}
