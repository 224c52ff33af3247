/** Structural changes of a store under readers in other threads, whose replies a model judges. */
import { Worker } from 'node:worker_threads'
import { assert, formatDay, parseDay } from '@vacancy/shared'
import { seeded, type Uniform } from '@vacancy/testkit/random'
import { recountDigest } from '../store/apply.ts'
import { KIND, OUTCOME, writeU8, writeU32 } from '../store/command.ts'
import { orderTable, unorderedTables } from '../store/row-order.ts'
import { createStore, publish, stateDigest } from '../store/store.ts'
import { GAP_REASON, sweepOne } from '../store/window.ts'
import {
  applyCommandOf,
  applyOwn,
  ask,
  type NodeInMemory,
  nodeOver,
  orderRows,
  raiseFeatureLevel,
} from './node-in-memory.ts'
import {
  createStructureModel,
  faultOf,
  isBesideMark,
  type ModelProperty,
  type ModelWord,
  noteDeletedDay,
  noteDeletedProperty,
  noteDeletedRoom,
  noteDeletedSegment,
  noteDropped,
  noteProperty,
  noteWord,
  type StructureModel,
} from './structure-model.ts'
import { CLOCK, type FromReader, type ReaderOptions, type SeenAnswer, SHAPE, someId } from './structure-reader.ts'

const TODAY = parseDay('2026-11-20') as number
const READERS = 2
const FIRST_READER = 2
/** Commands applied between lookups, so that readers encounter as many changes as possible. */
const BURST = 200
const COMMANDS_MAX = 200_000
const DROPS_MAX = 6
const WORD_DRAW = 300

/** How much a run does at least. */
export type StructureDraw = {
  readonly commands: number
  /** Replies that commands overlapped. */
  readonly overlapped: number
  /** Of them, searches whose table was marked during the search. */
  readonly besideMarks: number
}

type Run = {
  readonly seed: number
  readonly workers: Worker[]
  readonly node: NodeInMemory
  readonly model: StructureModel
  readonly random: Uniform
  readonly clock: Int32Array
  /** Words of days before this one are dropped. */
  floor: number
  readonly done: Map<string, number>
}

function createRun(seed: number): Run {
  const memoryBytes = 128 << 20
  const scratchBytes = 4 << 20
  const readers = FIRST_READER + READERS
  const node = nodeOver(createStore({ memoryBytes, readers, scratchBytes, sessionBytesMax: 1 << 20 }), TODAY)
  raiseFeatureLevel(node)
  const dates = Array.from({ length: SHAPE.days }, (_, i) => formatDay(TODAY + i))
  return {
    seed,
    workers: [],
    node,
    model: createStructureModel(dates, SHAPE.roomTypes),
    random: seeded(seed),
    clock: new Int32Array(new SharedArrayBuffer(CLOCK.cells * 4)),
    floor: TODAY,
    done: new Map(),
  }
}

const pick = <T>(list: readonly T[], random: Uniform) => list[Math.floor(random() * list.length)] as T
const below = (random: Uniform, n: number) => Math.floor(random() * n)

/** Runs one command. The clock tells readers which commands they may have seen. */
function apply(run: Run, name: string, command: () => boolean, note: (index: number) => void): void {
  const { node, clock, done } = run
  const index = node.index + 1
  Atomics.store(clock, CLOCK.begun, index)
  const succeeded = command()
  assert(node.index === index, 'a command is one index')
  Atomics.store(clock, CLOCK.ended, index)
  if (!succeeded) return
  note(index)
  done.set(name, (done.get(name) ?? 0) + 1)
}

function someProperty(random: Uniform): ModelProperty {
  return {
    // Most are in one segment, so that its tables are large enough for bitmaps.
    segment: random() < 0.75 ? SHAPE.segments[0] : pick(SHAPE.segments, random),
    propertyType: pick(SHAPE.types, random),
    stars: 1 + below(random, 5),
    area: pick(SHAPE.areas, random),
    amenities: SHAPE.amenities.filter(() => random() < 0.5),
    ...{ category: 'standard', latitude: 1, longitude: 1 },
  }
}

function setProperty(run: Run, id: string): void {
  const property = someProperty(run.random)
  const fields = { ...property, propertyId: id }
  apply(
    run,
    'SETPROP',
    () => ask(run.node, 'SETPROP', fields).error === '',
    (index) => noteProperty(run.model, index, id, property),
  )
}

function setPackage(run: Run, id: string): void {
  const { node, model, random } = run
  const day = run.floor + below(random, TODAY + SHAPE.days - run.floor)
  const place = { propertyId: id, roomType: pick(SHAPE.roomTypes, random), date: formatDay(day) }
  // A unique price identifies each package.
  const word: ModelWord = {
    availability: below(random, 5),
    finalPrice: node.index + 1,
    rateFeatures: random() < 0.5 ? ['wifi'] : [],
  }
  apply(
    run,
    'SETROOMPKG',
    () => ask(node, 'SETROOMPKG', { ...place, ...word }).error === '',
    (index) => noteWord(model, index, id, place.roomType, place.date, word),
  )
}

function deletePackage(run: Run, id: string): void {
  const { node, model, random } = run
  const place = {
    propertyId: id,
    roomType: pick(SHAPE.roomTypes, random),
    date: formatDay(run.floor + below(random, TODAY + SHAPE.days - run.floor)),
  }
  apply(
    run,
    'DELROOMDAY',
    () => ask(node, 'DELROOMDAY', place).error === '',
    (index) => noteWord(model, index, id, place.roomType, place.date),
  )
}

function dropDays(run: Run): void {
  const day = run.floor + 1
  const command = () =>
    applyOwn(run.node, KIND.dropBefore, (writer) => {
      writeU32(writer, day)
      writeU8(writer, GAP_REASON.operator)
    }) === OUTCOME.done
  apply(run, 'dropBefore', command, (index) => {
    run.floor = day
    noteDropped(run.model, index, day)
  })
}

function orderSome(run: Run): void {
  const segment = pick(SHAPE.segments, run.random)
  const roomType = pick([undefined, ...SHAPE.roomTypes], run.random)
  apply(
    run,
    'orderRows',
    () => orderRows(run.node, segment, roomType) === OUTCOME.done,
    () => undefined,
  )
}

/** Swaps a few rows, as a step towards a random order. */
function swapSome(run: Run): void {
  const { memory } = run.node.store
  const tables = unorderedTables(memory)
  if (tables.length === 0) return
  for (const command of orderTable(memory, pick(tables, run.random))) {
    if (command === undefined) continue
    apply(
      run,
      'swapRows',
      () => applyCommandOf(run.node, command.kind, command.body) === OUTCOME.done,
      () => undefined,
    )
    // The other rows stay; the next step starts with other swaps.
    if (run.random() < 0.3) return
  }
}

/** One random command; in a calm, structural changes leave searches time to end. */
function step(run: Run, isCalm: boolean): void {
  const { node, model, random } = run
  const propertyId = someId(random)
  const roomType = pick(SHAPE.roomTypes, random)
  const draw = isCalm && random() < 0.9 ? WORD_DRAW : below(random, 1000)
  if (draw < 250) setProperty(run, propertyId)
  else if (draw < 780) setPackage(run, propertyId)
  else if (draw < 830) deletePackage(run, propertyId)
  else if (draw < 870) {
    const date = formatDay(run.floor + below(random, TODAY + SHAPE.days - run.floor))
    const command = () => ask(node, 'DELPROPDAY', { propertyId, date }).error === ''
    apply(run, 'DELPROPDAY', command, (index) => noteDeletedDay(model, index, propertyId, date))
  } else if (draw < 890) {
    const command = () => ask(node, 'DELPROPROOM', { propertyId, roomType }).error === ''
    apply(run, 'DELPROPROOM', command, (index) => noteDeletedRoom(model, index, propertyId, roomType))
  } else if (draw < 930) {
    const command = () => ask(node, 'DELPROP', { propertyId }).error === ''
    apply(run, 'DELPROP', command, (index) => noteDeletedProperty(model, index, propertyId))
  } else if (draw < 932) {
    const segment = pick(SHAPE.segments, random)
    const command = () => ask(node, 'DELSEGMENT', { segment }).error === ''
    apply(run, 'DELSEGMENT', command, (index) => noteDeletedSegment(model, index, segment))
  } else if (draw < 940) orderSome(run)
  else if (draw < 970) swapSome(run)
  else if (draw < 995) {
    sweepOne(node.store)
    publish(node.store, node.index)
  } else if (run.floor < TODAY + DROPS_MAX) dropDays(run)
}

/** Starts the readers. `answers` fills while the caller awaits. */
function startReaders(run: Run) {
  const answers: SeenAnswer[] = []
  const failures: Error[] = []
  const ended = Array.from({ length: READERS }, (_, n) => {
    const workerData: ReaderOptions = {
      memory: run.node.store.memory.wasm,
      reader: FIRST_READER + n,
      seed: run.seed + n,
      today: TODAY,
      isReference: n % 2 === 1,
      clock: run.clock.buffer as SharedArrayBuffer,
    }
    const worker = new Worker(new URL('./structure-reader.ts', import.meta.url), { workerData })
    run.workers.push(worker)
    return new Promise<void>((resolve) => {
      worker.on('message', (message: FromReader) => {
        answers.push(...message.answers)
        if (message.isLast) resolve()
      })
      worker.on('error', (error) => {
        failures.push(error instanceof Error ? error : new Error(String(error)))
        resolve()
      })
    })
  })
  return { answers, failures, ended }
}

const turn = () => new Promise((resolve) => setImmediate(resolve))

/** Applies commands under readers. @returns the first error in their replies, or nothing */
/** Changes that a run makes, each at least once. */
const KINDS = [
  ...['SETPROP', 'SETROOMPKG', 'DELROOMDAY', 'DELPROPDAY', 'DELPROPROOM', 'DELPROP', 'DELSEGMENT'],
  ...['orderRows', 'swapRows', 'dropBefore'],
]

async function runUnderReaders(run: Run, draw: StructureDraw) {
  for (let n = 0; n < SHAPE.properties; n++) setProperty(run, `p${n}`)
  for (let n = 0; n < SHAPE.properties * 8; n++) setPackage(run, `p${below(run.random, SHAPE.properties)}`)
  const { answers, failures, ended } = startReaders(run)
  let overlapped = 0
  let sliced = 0
  let besideMarks = 0
  const judge = () => {
    for (const answer of answers.splice(0)) {
      const fault = faultOf(run.model, answer)
      const { command, fields, from, to } = answer
      if (fault !== '') return `${command} ${JSON.stringify(fields)} in [${from}, ${to}]: ${fault}`
      if (from !== to) overlapped++
      if (isBesideMark(run.model, answer)) besideMarks++
      if (answer.slices > 1) sliced++
    }
    return failures[0]?.message ?? ''
  }
  let fault = ''
  const first = run.node.index
  const isDone = () =>
    run.node.index - first >= draw.commands &&
    overlapped >= draw.overlapped &&
    besideMarks >= draw.besideMarks &&
    sliced > 0 &&
    KINDS.every((kind) => run.done.has(kind))
  while (fault === '' && !isDone() && run.node.index - first < COMMANDS_MAX) {
    const isCalm = run.random() < 0.7
    for (let n = 0; n < BURST; n++) step(run, isCalm)
    await turn()
    fault = judge()
  }
  if (fault === '') {
    Atomics.store(run.clock, CLOCK.stop, 1)
    await Promise.all(ended)
    fault = judge()
  }
  return { fault, overlapped, sliced, besideMarks }
}

/** Changes structures under readers. @returns the first error, or '' */
export async function runStructure(seed: number, draw: StructureDraw): Promise<string> {
  const run = createRun(seed)
  try {
    const { fault, overlapped, sliced, besideMarks } = await runUnderReaders(run, draw)
    if (fault !== '') return fault
    const { memory } = run.node.store
    assert(overlapped >= draw.overlapped && besideMarks >= draw.besideMarks && sliced > 0, 'readers met changes')
    for (const kind of KINDS) assert((run.done.get(kind) ?? 0) > 0, `the run had ${kind}`)
    const { digest } = recountDigest(memory)
    const { lo, hi } = stateDigest(memory)
    return lo === digest.lo && hi === digest.hi ? '' : 'the digest differs from a recount'
  } finally {
    await Promise.all(run.workers.map((worker) => worker.terminate()))
  }
}
