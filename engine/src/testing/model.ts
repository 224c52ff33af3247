/** A store compared with a model of plain objects under random commands from a seed: every reply must be equal. */

import { formatDay, parseDay } from '@vacancy/shared'
import type { CommandName } from '@vacancy/shared/wire'
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

export const TODAY = parseDay('2026-11-20') as number

/** The reference model: plain objects, scanned row by row. */
type Model = Map<string, { attributes: LooseFields; rooms: Map<string, Map<string, Night>> }>
type Night = { availability: number; price: number; features: Set<string> }

function applyToModel(model: Model, command: CommandName, fields: LooseFields): { error: string; value: number } {
  const id = fields['propertyId'] as string
  const property = model.get(id)
  const room = property?.rooms.get(fields['roomType'] as string)
  const night = room?.get(fields['date'] as string)
  const amount = fields['amount'] as number
  const missing = { error: 'NOT_FOUND', value: 0 }
  const done = { error: '', value: 0 }
  switch (command) {
    case 'SETPROP':
      if (property) property.attributes = fields
      else model.set(id, { attributes: fields, rooms: new Map() })
      return done
    case 'SETROOMPKG': {
      if (!property) return missing
      const rooms = property.rooms.get(fields['roomType'] as string) ?? new Map<string, Night>()
      property.rooms.set(fields['roomType'] as string, rooms)
      const old = rooms.get(fields['date'] as string) ?? { availability: 0, price: 0, features: new Set<string>() }
      rooms.set(fields['date'] as string, {
        availability: (fields['availability'] as number | undefined) ?? old.availability,
        price: (fields['finalPrice'] as number | undefined) ?? old.price,
        features: fields['rateFeatures'] ? new Set(fields['rateFeatures'] as string[]) : old.features,
      })
      return done
    }
    case 'DECROOMAVL':
    case 'INCROOMAVL':
    case 'SETROOMAVL': {
      if (!night) return missing
      const next =
        command === 'SETROOMAVL' ? amount : night.availability + (command === 'INCROOMAVL' ? amount : -amount)
      if (next > 255) return { error: 'OVERFLOW', value: night.availability }
      if (next < 0) return { error: 'UNDERFLOW', value: night.availability }
      night.availability = next
      return { error: '', value: next }
    }
    case 'DELPROP':
      return model.delete(id) ? done : missing
    case 'DELPROPROOM':
      return property?.rooms.delete(fields['roomType'] as string) ? done : missing
    case 'DELROOMDAY':
      return room?.delete(fields['date'] as string) ? done : missing
    case 'DELPROPDAY':
      for (const nights of property?.rooms.values() ?? []) nights.delete(fields['date'] as string)
      return property ? done : missing
    default: {
      const gone = [...model].filter(([, { attributes }]) => attributes['segment'] === fields['segment'])
      for (const [key] of gone) model.delete(key)
      return gone.length > 0 ? done : missing
    }
  }
}

function matches(attributes: LooseFields, query: LooseFields): boolean {
  for (const name of ['segment', 'area', 'propertyType', 'category', 'stars']) {
    if (query[name] !== undefined && attributes[name] !== query[name]) return false
  }
  if ((attributes['stars'] as number) < ((query['minStars'] as number | undefined) ?? 1)) return false
  const wanted = (query['amenities'] as string[] | undefined) ?? []
  if (!wanted.every((amenity) => (attributes['amenities'] as string[]).includes(amenity))) return false
  if (query['latitude'] === undefined) return true
  return haversine(attributes, query) <= ((query['radiusMetres'] as number | undefined) ?? 5000)
}

function haversine(a: LooseFields, b: LooseFields): number {
  const rad = (fields: LooseFields, name: string) => ((fields[name] as number) * Math.PI) / 180
  const dLat = (rad(b, 'latitude') - rad(a, 'latitude')) / 2
  const dLon = (rad(b, 'longitude') - rad(a, 'longitude')) / 2
  const h = Math.sin(dLat) ** 2 + Math.cos(rad(a, 'latitude')) * Math.cos(rad(b, 'latitude')) * Math.sin(dLon) ** 2
  return 2 * 6371008.8 * Math.asin(Math.sqrt(h))
}

function searchModel(model: Model, query: LooseFields): Map<string, string> {
  const found = new Map<string, string>()
  const wanted = (query['rateFeatures'] as string[] | undefined) ?? []
  for (const [id, { attributes, rooms }] of model) {
    if (!matches(attributes, query)) continue
    const dates = query['dates'] as string[] | undefined
    if (!dates) {
      found.set(id, '')
      continue
    }
    if (query['propertyId'] !== undefined && query['propertyId'] !== id) continue
    const nights = [...dates].sort().map((date) => rooms.get(query['roomType'] as string)?.get(date))
    const passes = (night: Night | undefined) =>
      night !== undefined &&
      night.availability >= ((query['availability'] as number | undefined) ?? 1) &&
      night.price <= ((query['finalPrice'] as number | undefined) ?? 4294967295) &&
      night.price >= ((query['minPrice'] as number | undefined) ?? 0) &&
      wanted.every((feature) => night.features.has(feature))
    if (!nights.every(passes)) continue
    found.set(id, nights.map((night) => `${night?.availability}/${night?.price}/${night?.features.size}`).join(' '))
  }
  return found
}

/** A small generator with a seed (mulberry32): the same seed gives the same run. */
function random(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) % below
  }
}

export type Shape = { properties: number; segments: number; rooms: number; areas: number; steps: number }

export function runModel(seed: number, shape: Shape, memoryBytes = 64 << 20): NodeInMemory {
  const next = random(seed)
  const pick = <T>(list: readonly T[]): T => list[next(list.length)] as T
  const names = (prefix: string, count: number) => Array.from({ length: count }, (_, i) => `${prefix}${i}`)
  const ids = names('p', shape.properties)
  const dates = Array.from({ length: 20 }, (_, i) => formatDay(TODAY + i * (i > 15 ? 18 : 1)))
  const segments = names('segment', shape.segments)
  const rooms = names('room', shape.rooms)
  const node = createNodeInMemory(TODAY, memoryBytes)
  const model: Model = new Map()
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
    const expected = applyToModel(model, command, fields)
    const got = ask(node, command, fields)
    expect([got.error, got.value], `seed ${seed}, step ${step}: ${command} ${JSON.stringify(fields)}`).toEqual([
      expected.error,
      expected.value,
    ])
    if (step % 5 !== 0) continue
    const search = stay()
    const stays = ask(node, 'SEARCHAVAIL', search).result.properties ?? []
    const found = new Map(
      stays.map(({ propertyId, days }) => [
        propertyId,
        days.map((day) => `${day.availability}/${day.finalPrice}/${day.rateFeatures.length}`).join(' '),
      ]),
    )
    const where = `seed ${seed}, step ${step}: ${JSON.stringify(search)}`
    expect(new Map([...found].sort()), where).toEqual(new Map([...searchModel(model, search)].sort()))
    const wanted = query()
    const listed = ask(node, 'SEARCHPROP', wanted).result.propertyIds ?? []
    expect([...listed].sort(), `seed ${seed}, step ${step}`).toEqual([...searchModel(model, wanted).keys()].sort())
  }
  const recount = recountDigest(node.store.memory)
  expect(stateDigest(node.store.memory)).toEqual(recount.digest)
  expect(countsOf(node.store.memory)).toMatchObject({ properties: recount.properties, packages: recount.packages })
  expect(node.store.writer.charge.bytes).toBe(recountCharge(node.store.memory))
  const packages = [...model.values()].flatMap(({ rooms: all }) => [...all.values()].map((nights) => nights.size))
  expect(recount.packages).toBe(packages.reduce((sum, size) => sum + size, 0))
  return node
}
