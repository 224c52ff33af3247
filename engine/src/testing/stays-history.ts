/**
 * Random histories of stays on several replicas, compared with the model after every step (docs/design/stays.md#tests):
 * S1 never oversold, S2 all or none, S3 one fate, S4 repeatable, S6 equal replicas. The second replica is replaced by
 * a copy that loaded a snapshot now and then.
 */

import { formatDay, lastVisibleDay, packPropertyId, parseDay, unpackPropertyId } from '@vacancy/shared'
import type { StayLine } from '@vacancy/shared/wire'
import { between, chance, createRandom, pick, type Random } from '@vacancy/testkit/random'
import { KIND, writeU8, writeU32 } from '../store/command.ts'
import { findName, NAMES, nameText } from '../store/dictionary.ts'
import { STAY_NIGHT, STAY_PROPERTY } from '../store/layout.ts'
import { debtOn as debtOfNight, forEachNight, heldOn as heldOfNight } from '../store/nights.ts'
import { readNight } from '../store/read.ts'
import { recountCharge } from '../store/recount.ts'
import { stateDigest } from '../store/store.ts'
import { field } from '../store/table-fields.ts'
import { copyOf } from './copied-node.ts'
import { TODAY } from './model.ts'
import {
  type Answer,
  applyOwn,
  ask,
  createNodeInMemory,
  type LooseFields,
  type NodeInMemory,
  raiseFeatureLevel,
  SAMPLE_CODECS,
} from './node-in-memory.ts'
import {
  baseAsOf,
  changeRooms,
  confirmStay,
  createStaysModel,
  debtOn,
  deleteProperty,
  dropBefore,
  heldOn,
  type ModelAnswer,
  passTime,
  releaseStay,
  type StaysModel,
  sellableOn,
  setPackage,
  setProperty,
  type Taking,
  takeStay,
} from './stays-model.ts'

const DAY_MS = 86_400_000
const PROPERTIES = ['p0', 'p1', 'p2']
const ROOMS = ['r0', 'r1']
const DAYS = 6
/** A fault stays visible for some steps. */
const COMPARE_EVERY = 3
/** Most commands name one of the newest ids. */
const NEWEST = 12
const place = { segment: 's', area: 'a', propertyType: 'hotel', category: 'c', stars: 3, latitude: 1, longitude: 1 }

type History = {
  readonly random: Random
  readonly model: StaysModel
  /** The first applies the log from its beginning; the others are copies of it. */
  readonly replicas: NodeInMemory[]
  /** A request sent earlier, for repeats. */
  last: { command: Command; fields: LooseFields } | undefined
  day: number
  timeMs: number
  readonly ids: string[]
}
type Command = Parameters<typeof ask>[1]

/** @returns '' or what differs, with the step */
export function runStays(seed: number, steps: number): string {
  const history: History = {
    random: createRandom(seed),
    model: createStaysModel(TODAY),
    replicas: [createNodeInMemory(TODAY)],
    last: undefined,
    day: TODAY,
    timeMs: TODAY * DAY_MS + 3_600_000,
    ids: ['stay-0', 'stay-1'],
  }
  const [first] = history.replicas as [NodeInMemory]
  raiseFeatureLevel(first)
  for (const id of PROPERTIES) {
    step(history, 'SETPROP', { ...place, propertyId: id, amenities: [] })
    setProperty(history.model, id)
    fillRooms(history, id)
  }
  for (let n = 0; n < steps; n++) {
    const fault = takeStep(history) || (n % COMPARE_EVERY === 0 ? compare(history) : '')
    if (fault !== '') return `step ${n}: ${fault}`
    if (n % 40 === 20) history.replicas[1] = copyOf(first)
  }
  return endAll(history)
}

/** All replicas apply it; their answers must be equal. */
function step(history: History, command: Command, fields: LooseFields): Answer {
  const answers = history.replicas.map((node) => {
    node.day = history.day
    node.timeMs = history.timeMs
    return ask(node, command, fields)
  })
  const texts = new Set(answers.map((answer) => JSON.stringify(answer)))
  if (texts.size > 1) throw new Error(`replicas answer differently: ${[...texts].join(' / ')}`)
  return answers[0] as Answer
}

/** Packages on all nights, so that most stays find rooms. */
function fillRooms(history: History, propertyId: string): void {
  const { model, day, random } = history
  for (const roomType of ROOMS) {
    for (let n = 0; n < DAYS + 3; n++) {
      const given = { availability: 2 + random.below(6), finalPrice: random.below(1000), rateFeatures: SAMPLE_CODECS }
      passTime(model, history.timeMs, indexOf(history) + 1)
      step(history, 'SETROOMPKG', { propertyId, roomType, date: formatDay(day + n), ...given })
      setPackage(model, propertyId, roomType, formatDay(day + n), given)
    }
  }
}

function indexOf({ replicas }: History): number {
  return (replicas[0] as NodeInMemory).index
}

function takeStep(history: History): string {
  const { random, model } = history
  history.timeMs += random.below(40_000)
  if (chance(random, 0.02)) history.timeMs += 4 * 3_600_000
  if (chance(random, 0.02)) nextDay(history)
  // Changes come after days and weeks, too.
  if (chance(random, 0.005)) for (let n = random.below(9); n >= 0; n--) nextDay(history)
  passTime(model, history.timeMs, indexOf(history) + 1)
  const roll = random.below(100)
  if (roll < 22) return changeInventory(history)
  if (roll < 24) return deleteSomething(history)
  if (roll < 34 && history.last) return send(history, history.last.command, history.last.fields)
  return send(history, ...someStay(history))
}

function nextDay(history: History): void {
  history.day++
  history.timeMs = history.day * DAY_MS + 3_600_000
  const { model } = history
  model.today = formatDay(history.day)
  model.lastDate = formatDay(lastVisibleDay(history.day))
  passTime(model, history.timeMs, indexOf(history) + 1)
  for (const node of history.replicas) {
    node.day = history.day
    node.timeMs = history.timeMs
    applyOwn(node, KIND.dropBefore, (writer) => {
      writeU32(writer, history.day)
      writeU8(writer, 0)
    })
  }
  dropBefore(model, formatDay(history.day))
}

function somewhere({ random, day }: History) {
  const date = formatDay(day + random.below(DAYS))
  return { propertyId: pick(random, PROPERTIES), roomType: pick(random, ROOMS), date }
}

function changeInventory(history: History): string {
  const { random, model } = history
  const night = somewhere(history)
  const { propertyId, roomType, date } = night
  const isNew = !model.properties.has(propertyId)
  if (isNew) {
    setProperty(model, propertyId)
    step(history, 'SETPROP', { ...place, propertyId, amenities: [] })
    fillRooms(history, propertyId)
    passTime(model, history.timeMs, indexOf(history) + 1)
  }
  if (chance(random, 0.6)) {
    const given = {
      ...(chance(random, 0.8) && { availability: random.below(chance(random, 0.1) ? 256 : 7) }),
      ...(chance(random, 0.5) && { finalPrice: random.below(1000) }),
      ...(chance(random, 0.5) && { rateFeatures: SAMPLE_CODECS.filter(() => chance(random, 0.5)) }),
    }
    const { error } = step(history, 'SETROOMPKG', { ...night, ...given })
    if (error !== '') return `SETROOMPKG: ${error}`
    setPackage(model, propertyId, roomType, date, given)
    return ''
  }
  if (chance(random, 0.3)) return setAsOf(history, night)
  const command = pick(random, ['SETROOMAVL', 'INCROOMAVL', 'DECROOMAVL'] as const)
  const amount = 1 + random.below(chance(random, 0.1) ? 255 : 5)
  const wanted = changeRooms(model, command, propertyId, roomType, date, amount)
  const { error, value } = step(history, command, { ...night, amount })
  if (error !== wanted.replace('_HELD', '')) return `${command}: ${error}, expected ${wanted}`
  const left = sellableOn(model, propertyId, roomType, date)
  return error !== '' || value === left ? '' : `${command} returns ${value}, expected ${left}`
}

/** An absolute value of a source that knows the bookings up to an index. */
function setAsOf(history: History, night: ReturnType<typeof somewhere>): string {
  const { random, model } = history
  const { propertyId, roomType, date } = night
  const value = random.below(chance(random, 0.1) ? 256 : 9)
  const asOf = Math.max(0, indexOf(history) - random.below(chance(random, 0.2) ? 2_000 : 60))
  const isPackage = chance(random, 0.5)
  const isMissing = !isPackage && sellableOn(model, propertyId, roomType, date) === undefined
  const wanted = isMissing ? 'NOT_FOUND' : asOf < model.knownFrom ? 'TOO_OLD' : ''
  const given = isPackage ? { availability: value } : { amount: value }
  const { error } = step(history, isPackage ? 'SETROOMPKG' : 'SETROOMAVL', { ...night, ...given, asOf })
  if (error !== wanted) return `${value} as of ${asOf}: ${error}, expected ${wanted}`
  if (error === '') setPackage(model, propertyId, roomType, date, { availability: baseAsOf(model, night, value, asOf) })
  return ''
}

function deleteSomething(history: History): string {
  const { random, model } = history
  const { propertyId, roomType, date } = somewhere(history)
  const rooms = model.properties.get(propertyId)?.rooms
  switch (random.below(6)) {
    case 0:
      step(history, 'DELROOMDAY', { propertyId, roomType, date })
      rooms?.get(roomType)?.delete(date)
      return ''
    case 1:
      step(history, 'DELPROPDAY', { propertyId, date })
      for (const nights of rooms?.values() ?? []) nights.delete(date)
      return ''
    case 2:
      step(history, 'DELPROPROOM', { propertyId, roomType })
      rooms?.delete(roomType)
      return ''
    case 3:
      step(history, 'DELPROP', { propertyId })
      deleteProperty(model, propertyId)
      return ''
    case 4:
      step(history, 'DELSEGMENT', { segment: 's2' })
      for (const [id, property] of model.properties) if (property.rooms.has('moved')) deleteProperty(model, id)
      return ''
    default:
      // Its packages and holds move along.
      if (model.properties.has(propertyId)) {
        step(history, 'SETPROP', { ...place, segment: pick(random, ['s', 's3']), propertyId, amenities: [] })
      }
      return ''
  }
}

function someStay(history: History): [Command, LooseFields] {
  const { random, day, ids, model } = history
  if (chance(random, 0.3)) ids.push(`stay-${ids.length}`)
  const newest = ids.slice(-NEWEST)
  const draw = random.below(10)
  const held = newest.filter((id) => model.stays.get(id)?.state === 'held')
  const isConfirmed = (draw === 6 || draw === 7) && held.length > 0 && chance(random, 0.7)
  const stayId = isConfirmed ? pick(random, held) : pick(random, newest)
  const known = model.stays.get(stayId)?.lines ?? []
  const fresh = Array.from({ length: 1 + random.below(3) }, (): StayLine => {
    const arrival = formatDay(day + random.below(DAYS))
    const line = { propertyId: pick(random, PROPERTIES), roomType: pick(random, ROOMS), arrival }
    return {
      ...line,
      nights: 1 + random.below(3),
      rooms: 1 + random.below(2),
      ...(chance(random, 0.2) && { uncounted: true }),
    }
  })
  const others = (chance(random, 0.5) && held.length > 1 ? held : newest).filter((id) => id !== stayId)
  const replaces = pick(random, others)
  const replaced = model.stays.get(replaces)
  const shorter = (replaced?.lines ?? []).map((line) => ({ ...line, nights: between(random, 1, line.nights + 1) }))
  const changed = shorter.length > 0 && chance(random, 0.2) ? shorter : fresh
  const lines = known.length > 0 && chance(random, 0.6) ? known : changed
  const conditions = {
    ...(chance(random, 0.2) && { maxTotal: random.below(6_000) }),
    ...(chance(random, 0.2) && { rateFeatures: [pick(random, SAMPLE_CODECS)] }),
    ...(chance(random, 0.4) && { replaces }),
    ...(chance(random, 0.1) && {
      reinstate: 1,
      ...(chance(random, 0.5) && { releasedAt: someIndexOf(history, stayId) }),
    }),
  }
  switch (draw) {
    case 0:
    case 1:
    case 2:
    case 3:
      return [
        'HOLDSTAY',
        { stayId, lines, seconds: 10 + random.below(chance(random, 0.2) ? 86_391 : 600), ...conditions },
      ]
    case 4:
    case 5:
      return ['BOOKSTAY', { stayId, lines, ...conditions }]
    case 6:
    case 7: {
      const retake = { retake: 1, ...(chance(random, 0.2) && { maxTotal: random.below(6_000) }) }
      return ['CONFIRMSTAY', { stayId, ...(chance(random, 0.5) && retake) }]
    }
    default: {
      const way = random.below(10)
      const given = way < 5 ? { lines, ...(way < 4 && { unrecorded: 1 }) } : {}
      const named = chance(random, 0.3) ? { bookedAt: someIndexOf(history, stayId) } : {}
      return ['RELEASESTAY', { stayId, ...(way < 2 ? { void: 1 } : { ...given, ...named }) }]
    }
  }
}

/** The index at which the stay reached its state, or another one. */
function someIndexOf({ model, random }: History, stayId: string): number {
  return Math.max(2, (model.stays.get(stayId)?.index ?? 2) - (chance(random, 0.2) ? 1 : 0))
}

/** Sends a stay command to all replicas and the model. */
function send(history: History, command: Command, fields: LooseFields): string {
  history.last = { command, fields }
  const answer = step(history, command, fields)
  const wanted = expected(history, command, fields)
  const [error, shown] = [
    answer.error,
    answer.result as { state?: string; total?: number; deadlineMs?: number; index?: number },
  ]
  const words = `${command} ${JSON.stringify(fields)}`
  if (error !== wanted.error) return `${words}: ${error} (${answer.text}), expected ${wanted.error}`
  if (!wanted.stay) return ''
  const { state, total, deadlineMs, index } = wanted.stay
  const isEqual = shown.state === state && shown.total === total && (shown.deadlineMs ?? 0) === deadlineMs
  if (isEqual && shown.index === index) return ''
  return `${words}: ${JSON.stringify(shown)}, expected ${JSON.stringify(wanted.stay)}`
}

function expected(history: History, command: Command, fields: LooseFields): ModelAnswer {
  const { model, timeMs } = history
  const index = indexOf(history)
  switch (command) {
    case 'BOOKSTAY':
    case 'HOLDSTAY': {
      const reinstate = fields['reinstate'] === 1 ? ((fields['releasedAt'] as number | undefined) ?? 1) : 0
      return takeStay(model, { ...(fields as Taking), reinstate }, timeMs, index)
    }
    case 'CONFIRMSTAY':
      return confirmStay(model, { ...(fields as { stayId: string }), retake: fields['retake'] === 1 }, timeMs, index)
    default: {
      const flags = { isVoid: fields['void'] === 1, isUnrecorded: fields['unrecorded'] === 1 }
      return releaseStay(model, { ...(fields as { stayId: string; bookedAt?: number }), ...flags }, timeMs, index)
    }
  }
}

/** Compares all nights with the model, and the replicas with each other. */
function compare(history: History): string {
  const [first, copy] = history.replicas as [NodeInMemory, NodeInMemory?]
  const fault = compareNights(history, first) || compareLedger(history, first)
  if (fault !== '') return fault
  for (const { store } of history.replicas) {
    const recounted = recountCharge(store.memory)
    if (recounted !== store.writer.charge.bytes) return `charged ${store.writer.charge.bytes}, counted ${recounted}`
  }
  if (!copy) return ''
  const [a, b] = [stateDigest(first.store.memory), stateDigest(copy.store.memory)]
  return a.lo === b.lo && a.hi === b.hi ? compareNights(history, copy) : 'the digests of the replicas differ'
}

function compareNights(history: History, node: NodeInMemory): string {
  const { model, day } = history
  for (const propertyId of PROPERTIES) {
    for (const roomType of ROOMS) {
      for (let n = 0; n < DAYS + 3; n++) {
        const date = formatDay(day + n)
        const wanted = sellableOn(model, propertyId, roomType, date)
        const left = leftOn(node, propertyId, roomType, day + n)
        if (left !== wanted) return `${propertyId} ${roomType} ${date}: ${left} left, expected ${wanted}`
      }
    }
  }
  return ''
}

function leftOn({ store }: NodeInMemory, propertyId: string, roomType: string, day: number): number | undefined {
  const name = encoder.encode(roomType)
  const number = findName(store.memory, NAMES.roomType, name, 0, name.length)
  const view = { memory: store.memory, reader: 0 }
  const night = readNight(view, packPropertyId(propertyId) as Uint8Array, number, day)
  return typeof night === 'string' ? undefined : night.availability
}
const encoder = new TextEncoder()

/** Holds and debts of all nights, and every stay. */
function compareLedger({ model }: History, { store }: NodeInMemory): string {
  const { memory } = store
  let fault = ''
  let oversold = 0
  forEachNight(memory, (night, day) => {
    const property = field(memory, night)
    const id = unpackPropertyId(memory.u8, property + STAY_PROPERTY.id)
    const roomType = nameText(memory, NAMES.roomType, field(memory, night + STAY_NIGHT.roomType))
    const [held, debt] = [heldOfNight(memory, night), debtOfNight(memory, night)]
    const date = formatDay(day)
    if (debt > 0) oversold++
    if (held !== heldOn(model, id, roomType, date)) fault ||= `${id} ${roomType} ${date}: ${held} held`
    if (debt !== debtOn(model, id, roomType, date)) fault ||= `${id} ${roomType} ${date}: debt ${debt}`
  })
  const owed = new Set<string>()
  for (const { state, lines } of model.stays.values()) {
    if (state !== 'held') continue
    for (const { propertyId, roomType, arrival, nights } of lines) {
      for (let n = 0; n < nights; n++) {
        const date = formatDay((parseDay(arrival) as number) + n)
        if (date >= model.droppedBefore && debtOn(model, propertyId, roomType, date) > 0)
          owed.add(`${propertyId}/${roomType}/${date}`)
      }
    }
  }
  if (oversold !== owed.size) fault ||= `${oversold} oversold nights, expected ${owed.size}`
  if (oversold !== store.writer.ledger.oversold.size)
    fault ||= `${oversold} oversold nights, counted ${store.writer.ledger.oversold.size}`
  if (store.writer.ledger.stays.count !== model.stays.size) {
    fault ||= `${store.writer.ledger.stays.count} stays, expected ${model.stays.size}`
  }
  return fault
}

/** S5: after the longest deadline nothing is held, and no rooms are missing. */
function endAll(history: History): string {
  const { model } = history
  history.timeMs += 25 * 3_600_000
  history.day = Math.floor(history.timeMs / DAY_MS)
  model.today = formatDay(history.day)
  model.lastDate = formatDay(lastVisibleDay(history.day))
  passTime(model, history.timeMs, indexOf(history) + 1)
  step(history, 'DELROOMDAY', { propertyId: 'none', roomType: 'r0', date: formatDay(history.day) })
  const [{ store }] = history.replicas as [NodeInMemory]
  if (store.writer.ledger.heldCount > 0) return `${store.writer.ledger.heldCount} holds remain`
  const fault = compare(history)
  return fault === '' ? '' : `at the end: ${fault}`
}
