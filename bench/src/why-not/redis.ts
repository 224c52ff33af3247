/**
 * Redis on a port of its own: bitmaps over the properties of a segment, and a script that combines them.
 *
 *   t:<segment>:<trait>:<value>         properties with this type, category, number of stars, area or amenity
 *   n:<segment>:<room type>:<day>:c     rooms left, one byte per property
 *   …:f                                 properties with rooms left
 *   …:r<feature>                        properties whose package has the rate feature
 *   …:p<bit>, …:n<bit>                  bit planes of the price and their complements
 *   …:m                                 prices, two bytes per property
 *
 * A price below a bound is an AND of few planes for each bit that is set in the bound (a bit-sliced index). So a search
 * is about 20 BITOPs over half a kilobyte, without a loop over properties. Temporary results are not replicated and not
 * logged. The reply is a bitmap; clients know the id of each bit.
 */

import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from '@vacancy/testkit/free-port'
import { findOrInstall } from '@vacancy/testkit/installed'
import type { Dataset } from '../dataset.ts'
import { failure } from '../failure.ts'
import { processSeconds } from '../process-time.ts'
import { PAGE_STAYS } from '../queries.ts'
import { NotMeasured } from '../verdict.ts'
import { type NumberedSearch, nights, numbered } from './numbers.ts'
import { encodeCommand, openResp, type RespConnection } from './resp.ts'
import type { Connect, RunningSystem, Source } from './system.ts'

/** Prices of the data sets are below 2^14. */
const PRICE_BITS = 14
const POLL_MS = 20
/** Commands on their way while data are loaded. */
const LOAD_BATCH = 1_000

/** KEYS: bitmaps that all must match. ARGV: bits of a price, first price that is too high, prefix of each night. */
const SEARCH = `
redis.set_repl(redis.REPL_NONE)
redis.call('BITOP', 'AND', 'tmp', unpack(KEYS))
local bits, bound = tonumber(ARGV[1]), tonumber(ARGV[2])
for night = 3, #ARGV do
  local prefix, equal, below = ARGV[night], {}, {}
  for bit = bits - 1, 0, -1 do
    if math.floor(bound / 2 ^ bit) % 2 == 1 then
      below[#below + 1] = 'tmp' .. bit
      redis.call('BITOP', 'AND', 'tmp' .. bit, 'tmp', prefix .. 'n' .. bit, unpack(equal))
      equal[#equal + 1] = prefix .. 'p' .. bit
    else
      equal[#equal + 1] = prefix .. 'n' .. bit
    end
  end
  redis.call('BITOP', 'OR', 'tmp', unpack(below))
end
local found = redis.call('GET', 'tmp')`
const IDS = `${SEARCH}
return found`
/** The number of matches, then property and total of the cheapest. The order of properties is that of their ids. */
const PAGE = `${SEARCH}
local prices = {}
for night = 3, #ARGV do prices[#prices + 1] = redis.call('GET', ARGV[night] .. 'm') end
local stays = {}
for at = 1, #found do
  local byte = string.byte(found, at)
  if byte ~= 0 then
    for place = 0, 7 do
      if bit.band(byte, bit.rshift(128, place)) ~= 0 then
        local property, total = (at - 1) * 8 + place, 0
        for night = 1, #prices do
          local high, low = string.byte(prices[night], property * 2 + 1, property * 2 + 2)
          total = total + high * 256 + low
        end
        stays[#stays + 1] = { total, property }
      end
    end
  end
end
table.sort(stays, function(a, b) return a[1] < b[1] or (a[1] == b[1] and a[2] < b[2]) end)
local page = { #stays }
for n = 1, math.min(${PAGE_STAYS}, #stays) do
  page[#page + 1] = stays[n][2]
  page[#page + 1] = stays[n][1]
end
return page`

/** KEYS: rooms left, bitmap of rooms left. ARGV: property, change. */
const WRITE = `
local left = redis.call('BITFIELD', KEYS[1], 'OVERFLOW', 'FAIL', 'INCRBY', 'u8', '#' .. ARGV[1], ARGV[2])[1]
if not left then return -1 end
local change = tonumber(ARGV[2])
if left == 0 then redis.call('SETBIT', KEYS[2], ARGV[1], 0)
elseif left == change then redis.call('SETBIT', KEYS[2], ARGV[1], 1) end
return left`

const sha = (script: string) => createHash('sha1').update(script).digest('hex')

export async function startRedis({ dataset, dir }: Source): Promise<RunningSystem> {
  const folder = findOrInstall({ programs: ['redis-server'], aptPackage: 'redis-server' })
  if (folder === undefined) throw new NotMeasured('Redis is not installed: redis-server is on no path')
  mkdirSync(dir, { recursive: true })
  const port = await freePort()
  const settings = { port, dir, bind: '127.0.0.1', save: '', appendonly: 'yes', appendfsync: 'always' }
  const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)])
  const server = spawn(join(folder, 'redis-server'), args, { stdio: 'ignore' })
  const end = () => server.kill('SIGKILL')
  process.once('exit', end)
  const connection = await answering(port, () => server.exitCode)
  const begun = performance.now()
  await load(connection, dataset)
  const loadSeconds = (performance.now() - begun) / 1000
  const info = async (section: string, field: string) => {
    const text = String(await connection.send(encodeCommand(['INFO', section])))
    return new RegExp(`^${field}:(.*)$`, 'm').exec(text)?.[1]?.trim() ?? ''
  }
  return {
    name: 'redis',
    version: await info('server', 'redis_version'),
    target: { port, file: '' },
    loadSeconds,
    bytes: async () => Number(await info('memory', 'used_memory_dataset')),
    cpuSeconds: () => processSeconds(server.pid ?? 0),
    stop: async () => {
      connection.close()
      const ended = new Promise((resolve) => server.once('exit', resolve))
      server.kill('SIGTERM')
      await ended
      process.off('exit', end)
    },
  }
}

async function answering(port: number, exitCode: () => number | null): Promise<RespConnection> {
  for (;;) {
    if (exitCode() !== null) throw failure(`redis-server ended with exit code ${exitCode()}`)
    try {
      const connection = await openResp(port)
      await connection.send(encodeCommand(['PING']))
      return connection
    } catch {
      // It is starting.
      await sleep(POLL_MS)
    }
  }
}

const nightKey = (segment: number, roomType: number, day: number) => `n:${segment}:${roomType}:${day}:`
const traitKey = (segment: number, trait: string, value: number) => `t:${segment}:${trait}:${value}`
const bitsOf = (mask: number) => Array.from({ length: 32 }, (_, bit) => bit).filter((bit) => (mask >>> bit) & 1)
const ALL_BITS = Array.from({ length: PRICE_BITS }, (_, bit) => bit)

async function load(connection: RespConnection, dataset: Dataset): Promise<void> {
  const sent: Promise<unknown>[] = []
  for (const command of [...bitmapsOf(dataset)].map(([key, bytes]) => encodeCommand(['SET', key, bytes]))) {
    sent.push(connection.send(command))
    if (sent.length === LOAD_BATCH) await Promise.all(sent.splice(0))
  }
  await Promise.all(sent)
  for (const script of [IDS, PAGE, WRITE]) await connection.send(encodeCommand(['SCRIPT', 'LOAD', script]))
}

/** All bitmaps have one length, which lets BITOP work on whole words. */
function bitmapsOf(dataset: Dataset): Map<string, Uint8Array> {
  const { properties } = dataset
  const count = properties.ids.length
  const found = new Map<string, Uint8Array>()
  const bitmap = (key: string, bytes: number) => {
    const known = found.get(key)
    if (known) return known
    const made = new Uint8Array(bytes)
    found.set(key, made)
    return made
  }
  const set = (bytes: Uint8Array, property: number) => {
    bytes[property >>> 3] = (bytes[property >>> 3] ?? 0) | (0x80 >>> (property & 7))
  }
  const bits = (key: string) => bitmap(key, bytesOf(count))
  for (let property = 0; property < count; property++) {
    const trait = (name: string, value: number) =>
      set(bits(traitKey(properties.segment[property] ?? 0, name, value)), property)
    trait('type', properties.type[property] ?? 0)
    trait('category', properties.category[property] ?? 0)
    trait('stars', properties.stars[property] ?? 0)
    trait('area', properties.area[property] ?? 0)
    for (const bit of bitsOf(properties.amenities[property] ?? 0)) trait('amenity', bit)
  }
  const planesOf = (prefix: string) => ({
    rooms: bitmap(`${prefix}c`, count),
    free: bits(`${prefix}f`),
    features: dataset.names.rateFeatures.map((_, feature) => bits(`${prefix}r${feature}`)),
    ones: ALL_BITS.map((bit) => bits(`${prefix}p${bit}`)),
    zeros: ALL_BITS.map((bit) => bits(`${prefix}n${bit}`)),
    prices: bitmap(`${prefix}m`, 2 * count),
  })
  let last = { prefix: '', planes: undefined as ReturnType<typeof planesOf> | undefined }
  for (const { segment, roomType, day, property, rooms, price, features } of nights(dataset)) {
    const prefix = nightKey(segment, roomType, day)
    if (last.prefix !== prefix) last = { prefix, planes: planesOf(prefix) }
    const { planes } = last
    if (!planes) continue
    planes.rooms[property] = rooms
    planes.prices.set([price >>> 8, price & 0xff], 2 * property)
    if (rooms > 0) set(planes.free, property)
    planes.features.forEach((plane, feature) => {
      if ((features >>> feature) & 1) set(plane, property)
    })
    for (const bit of ALL_BITS) {
      const plane = (price >>> bit) & 1 ? planes.ones[bit] : planes.zeros[bit]
      if (plane) set(plane, property)
    }
  }
  return found
}

/** Whole words of the processor. */
const bytesOf = (properties: number) => Math.ceil(properties / 64) * 8

export const connectRedis: Connect = async ({ port }, dataset) => {
  const connection = await openResp(port)
  const { ids, segment } = dataset.properties
  const [search, page, write] = [sha(IDS), sha(PAGE), sha(WRITE)]
  const commandOf = (script: string, wanted: NumberedSearch) => {
    const keys = keysOf(wanted)
    const prefixes = wanted.days.map((day) => nightKey(wanted.segment, wanted.roomType, day))
    const bound = Math.min(wanted.price + 1, 2 ** PRICE_BITS - 1)
    return encodeCommand(['EVALSHA', script, keys.length, ...keys, PRICE_BITS, bound, ...prefixes])
  }
  return {
    search(fields) {
      const wanted = numbered(dataset, fields)
      const command = commandOf(search, wanted)
      return async () => idsOf((await connection.send(command)) as Buffer, ids, wanted.limit)
    },
    page(fields) {
      const command = commandOf(page, numbered(dataset, fields))
      return async () => {
        const [matches = 0, ...rest] = (await connection.send(command)) as number[]
        const stays = Array.from({ length: rest.length / 2 }, (_, n) => ({
          id: ids[rest[2 * n] ?? -1] ?? '',
          total: rest[2 * n + 1] ?? 0,
        }))
        return { stays, matches }
      }
    },
    write({ property, roomType, day }, rooms) {
      const prefix = nightKey(segment[property] ?? 0, roomType, day)
      const command = encodeCommand(['EVALSHA', write, 2, `${prefix}c`, `${prefix}f`, property, rooms])
      return async () => {
        const left = await connection.send(command)
        if (typeof left !== 'number' || left < 0) throw failure('Redis refused a change')
      }
    },
    close: () => connection.close(),
  }
}

function keysOf({
  segment,
  roomType,
  type,
  category,
  stars,
  area,
  amenities,
  features,
  days,
}: NumberedSearch): string[] {
  const traits = Object.entries({ type, category, stars, area })
  return [
    ...traits.flatMap(([trait, value]) => (value === undefined ? [] : [traitKey(segment, trait, value)])),
    ...bitsOf(amenities).map((bit) => traitKey(segment, 'amenity', bit)),
    ...days.flatMap((day) => {
      const prefix = nightKey(segment, roomType, day)
      return [`${prefix}f`, ...bitsOf(features).map((feature) => `${prefix}r${feature}`)]
    }),
  ]
}

function idsOf(bitmap: Buffer, ids: readonly string[], limit: number): string[] {
  const found: string[] = []
  for (let at = 0; at < bitmap.length; at++) {
    const byte = bitmap[at] ?? 0
    if (byte === 0) continue
    for (let bit = 0; bit < 8; bit++) {
      if ((byte & (0x80 >>> bit)) === 0) continue
      found.push(ids[at * 8 + bit] ?? '')
      if (found.length === limit) return found
    }
  }
  return found
}
