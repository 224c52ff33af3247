/** Structural changes of a store under readers in other threads, whose replies a model judges. */
import { Worker } from 'node:worker_threads'
import { assert, formatDay, parseDay } from '@vacancy/shared'
import type { CommandName } from '@vacancy/shared/wire'
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
  type LooseFields,
  type NodeInMemory,
  nodeOver,
  orderRows,
  raiseFeatureLevel,
} from './node-in-memory.ts'
import {
  applyToModel,
  createStructureModel,
  faultOf,
  isBesideMark,
  type ModelProperty,
  noteDropped,
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
function apply(run: Run, name: string, command: (index: number) => boolean): void {
  const { node, clock, done } = run
  const index = node.index + 1
  Atomics.store(clock, CLOCK.begun, index)
  const succeeded = command(index)
  assert(node.index === index, 'a command is one index')
  Atomics.store(clock, CLOCK.ended, index)
  if (succeeded) done.set(name, (done.get(name) ?? 0) + 1)
}

/** A command of a client, whose reply must be that of the model. */
function change(run: Run, command: CommandName, fields: LooseFields): void {
  apply(run, command, (index) => {
    const { error } = ask(run.node, command, fields)
    const expected = applyToModel(run.model, index, command, fields).error
    assert(error === expected, `seed ${run.seed}: ${command} ${JSON.stringify(fields)}: ${error}, not ${expected}`)
    return error === ''
  })
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

const setProperty = (run: Run, propertyId: string) =>
  change(run, 'SETPROP', { ...someProperty(run.random), propertyId })

/** A night that is still sold. */
function someNight({ floor, random }: Run, propertyId: string) {
  const date = formatDay(floor + below(random, TODAY + SHAPE.days - floor))
  return { propertyId, roomType: pick(SHAPE.roomTypes, random), date }
}

function setPackage(run: Run, propertyId: string): void {
  const rateFeatures = run.random() < 0.5 ? ['wifi'] : []
  // A unique price identifies each package.
  const word = { availability: below(run.random, 5), finalPrice: run.node.index + 1, rateFeatures }
  change(run, 'SETROOMPKG', { ...someNight(run, propertyId), ...word })
}

function dropDays(run: Run): void {
  const day = run.floor + 1
  apply(run, 'dropBefore', (index) => {
    const code = applyOwn(run.node, KIND.dropBefore, (writer) => {
      writeU32(writer, day)
      writeU8(writer, GAP_REASON.operator)
    })
    if (code !== OUTCOME.done) return false
    run.floor = day
    noteDropped(run.model, index, day)
    return true
  })
}

function orderSome(run: Run): void {
  const segment = pick(SHAPE.segments, run.random)
  const roomType = pick([undefined, ...SHAPE.roomTypes], run.random)
  apply(run, 'orderRows', () => orderRows(run.node, segment, roomType) === OUTCOME.done)
}

/** Swaps a few rows, as a step towards a random order. */
function swapSome(run: Run): void {
  const { memory } = run.node.store
  const tables = unorderedTables(memory)
  if (tables.length === 0) return
  for (const command of orderTable(memory, pick(tables, run.random))) {
    if (command === undefined) continue
    apply(run, 'swapRows', () => applyCommandOf(run.node, command.kind, command.body) === OUTCOME.done)
    // The other rows stay; the next step starts with other swaps.
    if (run.random() < 0.3) return
  }
}

/** One random command; in a calm, structural changes leave searches time to end. */
function step(run: Run, isCalm: boolean): void {
  const { node, random } = run
  const { date, ...room } = someNight(run, someId(random))
  const { propertyId } = room
  const draw = isCalm && random() < 0.9 ? WORD_DRAW : below(random, 1000)
  if (draw < 250) setProperty(run, propertyId)
  else if (draw < 780) setPackage(run, propertyId)
  else if (draw < 830) change(run, 'DELROOMDAY', { ...room, date })
  else if (draw < 870) change(run, 'DELPROPDAY', { propertyId, date })
  else if (draw < 890) change(run, 'DELPROPROOM', room)
  else if (draw < 930) change(run, 'DELPROP', { propertyId })
  else if (draw < 932) change(run, 'DELSEGMENT', { segment: pick(SHAPE.segments, random) })
  else if (draw < 940) orderSome(run)
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

/** Changes that a run makes, each at least once. */
const KINDS = [
  ...['SETPROP', 'SETROOMPKG', 'DELROOMDAY', 'DELPROPDAY', 'DELPROPROOM', 'DELPROP', 'DELSEGMENT'],
  ...['orderRows', 'swapRows', 'dropBefore'],
]

/** Applies commands under readers. @returns the first error in their replies, or nothing */
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
