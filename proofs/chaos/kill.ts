/**
 * `npm run proofs -- kill`: kills a node at random times while clients write, restarts it, and compares its state with the
 * acknowledged writes (docs/design/consensus.md#request-keys, docs/design/testing.md#storage-tests).
 *
 * Each write has a request key and requests its applied index. Writes without a reply are repeated with the same key
 * until they have one. Then all successful writes of the round, ordered by index, must explain each reply and the whole
 * state: a lost or duplicate write leaves a difference.
 */

import { EXIT } from '@vacancy/shared'
import { defineCommand } from '@vacancy/shared/node'
import { type CommandName, encodeRequest, type RequestFields } from '@vacancy/shared/wire'
import {
  answerTo,
  closeClient,
  dateIn,
  type NodeProcess,
  type NodeRun,
  openClient,
  readAnswer,
  removeFolder,
  somewhere,
  startNodeProcess,
  succeed,
  temporaryFolder,
  type WireClient,
} from '@vacancy/testkit/node'
import { createRandom } from '@vacancy/testkit/random'
import { SEED_FLAG, seedOfNow } from '../seed.ts'

const CLIENTS = 8
/** Pending writes of one client. */
const IN_FLIGHT = 4
const PROPERTIES = 3
const ROOMS = ['single', 'double'] as const
const NIGHTS = 2
const TRAFFIC_MS = { min: 5, max: 250 }
/** One in this many starts is killed before it serves. */
const KILLED_STARTS = 6
const START_MS_MAX = 700

export type KillReport = {
  readonly seed: number
  readonly rounds: number
  readonly acknowledged: number
  readonly repeats: number
  readonly killedStarts: number
}

type Random = ReturnType<typeof createRandom>

type Package = { availability: number; price: number; features: number }

type Write = {
  readonly client: number
  readonly number: number
  readonly command: CommandName
  readonly target: number
  readonly fields: RequestFields
  answer: { readonly code: string; readonly availability: number | undefined; readonly index: number } | undefined
}

type Writer = { readonly session: string; nextNumber: number; unanswered: Write[]; last: Write | undefined }

type Trial = {
  readonly random: Random
  readonly run: NodeRun
  readonly writers: readonly Writer[]
  readonly packages: Package[]
  /** The written nights, fixed for the whole run even past midnight. */
  readonly dates: readonly string[]
  /** All writes since the state was last compared. */
  writes: Write[]
  lastIndex: number
  acknowledged: number
  repeats: number
  killedStarts: number
}

/**
 * Runs the given number of rounds.
 *
 * @throws Error with seed and round when an acknowledged write is missing or was applied twice
 */
export async function killRounds(options: {
  readonly rounds: number
  readonly seed: number
  readonly say?: (line: string) => void
}): Promise<KillReport> {
  const { rounds, seed, say = () => undefined } = options
  const folder = temporaryFolder()
  const trial = createTrial(seed, folder)
  let node: NodeProcess | undefined
  let round = 0
  try {
    node = await startNodeProcess(trial.run)
    await putPackages(trial, node)
    for (; round < rounds; round++) {
      await writeUntilKilled(trial, node)
      node = await startAgain(trial)
      await repeatAndCompare(trial, node)
      if ((round + 1) % 20 === 0)
        say(`round ${round + 1}: ${trial.acknowledged} acknowledged, ${trial.repeats} repeats`)
    }
    await node.stop()
    removeFolder(folder)
    const { acknowledged, repeats, killedStarts } = trial
    return { seed, rounds, acknowledged, repeats, killedStarts }
  } catch (error) {
    await node?.kill()
    throw new Error(`seed ${seed}, round ${round}, data in ${folder}: ${(error as Error).message}`, { cause: error })
  }
}

function createTrial(seed: number, folder: string): Trial {
  const random = createRandom(seed)
  return {
    random,
    // Frequent snapshots and new log files, so that kills hit them as well.
    run: { folder, config: { snapshot_trigger_count: 300, snapshot_interval_sec: 1, log_level: 'warn' } },
    writers: Array.from({ length: CLIENTS }, (_, i) => ({
      session: (seed * CLIENTS + i).toString(16).padStart(32, '0'),
      nextNumber: 1,
      unanswered: [],
      last: undefined,
    })),
    packages: Array.from({ length: PROPERTIES * ROOMS.length * NIGHTS }, () => ({
      availability: 0,
      price: 0,
      features: 0,
    })),
    dates: Array.from({ length: NIGHTS }, (_, night) => dateIn(30 + night)),
    writes: [],
    lastIndex: 0,
    acknowledged: 0,
    repeats: 0,
    killedStarts: 0,
  }
}

function place({ dates }: Trial, target: number): { propertyId: string; roomType: string; date: string } {
  const night = target % NIGHTS
  const room = Math.floor(target / NIGHTS) % ROOMS.length
  const property = Math.floor(target / NIGHTS / ROOMS.length)
  return { propertyId: `kill_${property}`, roomType: ROOMS[room], date: dates[night] }
}

async function putPackages(trial: Trial, node: NodeProcess): Promise<void> {
  const client = await openClient(node)
  for (let i = 0; i < PROPERTIES; i++) await succeed(client, 'SETPROP', somewhere(`kill_${i}`))
  for (const [target, expected] of trial.packages.entries()) {
    expected.availability = 100
    expected.price = 1000
    const fields = { ...place(trial, target), availability: 100, finalPrice: 1000, rateFeatures: [], wantIndex: 1 }
    const { index } = await succeed(client, 'SETROOMPKG', fields)
    trial.lastIndex = Number(index)
  }
  closeClient(client)
}

const between = (random: Random, least: number, most: number) => least + random.below(most - least + 1)

function nextWrite(trial: Trial, client: number): Write {
  const { random, writers } = trial
  const writer = writers[client] as Writer
  const target = random.below(trial.packages.length)
  const number = writer.nextNumber++
  const key = { session: writer.session, requestNumber: number, wantIndex: 1 }
  const kind = random.below(10)
  const amount = between(random, 1, 20)
  const command: CommandName =
    kind < 5 ? 'DECROOMAVL' : kind < 8 ? 'INCROOMAVL' : kind < 9 ? 'SETROOMAVL' : 'SETROOMPKG'
  const values =
    command === 'SETROOMPKG'
      ? { availability: between(random, 50, 200), finalPrice: between(random, 1, 9999), rateFeatures: ['refundable'] }
      : { amount: command === 'SETROOMAVL' ? between(random, 50, 200) : amount }
  return { client, number, command, target, fields: { ...place(trial, target), ...values, ...key }, answer: undefined }
}

/** Sends one write and records its reply. @returns whether there was one */
async function send(wire: WireClient, write: Write): Promise<boolean> {
  const correlationId = wire.nextId++
  const answer = answerTo(wire, correlationId)
  wire.socket.write(encodeRequest({ command: write.command, correlationId, fields: write.fields }))
  const payload = await answer
  if (payload === undefined) return false
  const reply = readAnswer(wire, write.command, payload)
  const result = reply.ok ? (reply.result as { availability?: number; index?: number }) : undefined
  const found = {
    code: reply.ok ? '' : reply.code,
    availability: result?.availability,
    index: Number(result?.index ?? 0),
  }
  const { answer: before } = write
  if (before && JSON.stringify(before) !== JSON.stringify(found)) {
    throw new Error(`${text(write)}: the reply was ${JSON.stringify(before)}, repeated ${JSON.stringify(found)}`)
  }
  write.answer = found
  return true
}

const text = (write: Write) => JSON.stringify(write)

async function writeUntilKilled(trial: Trial, node: NodeProcess): Promise<void> {
  const { random, writers } = trial
  const trafficMs = between(random, TRAFFIC_MS.min, TRAFFIC_MS.max)
  const clients = await Promise.all(writers.map(() => openClient(node)))
  let isRunning = true
  const lanes = clients.flatMap((wire, i) =>
    Array.from({ length: IN_FLIGHT }, async () => {
      const writer = writers[i] as Writer
      while (isRunning && !wire.isClosed) {
        const write = nextWrite(trial, i)
        trial.writes.push(write)
        writer.unanswered.push(write)
        if (!(await send(wire, write))) return
        writer.unanswered.splice(writer.unanswered.indexOf(write), 1)
        writer.last = write
      }
    }),
  )
  await new Promise((resolve) => setTimeout(resolve, trafficMs))
  await node.kill()
  isRunning = false
  await Promise.all(lanes)
  for (const wire of clients) closeClient(wire)
}

/** Starts the node; sometimes it is killed again during the start. */
async function startAgain(trial: Trial): Promise<NodeProcess> {
  if (trial.random.below(KILLED_STARTS) === 0) {
    trial.killedStarts++
    const delayMs = trial.random.below(START_MS_MAX)
    const started = startNodeProcess({ ...trial.run, killAfterMs: delayMs })
    await started.then(
      (node) => node.kill(),
      () => undefined,
    )
  }
  return await startNodeProcess(trial.run)
}

async function repeatAndCompare(trial: Trial, node: NodeProcess): Promise<void> {
  const clients = await Promise.all(trial.writers.map(() => openClient(node)))
  await Promise.all(
    trial.writers.map(async (writer, i) => {
      const wire = clients[i] as WireClient
      // In order, since the first number opens a session.
      const again = [...writer.unanswered].sort((a, b) => a.number - b.number)
      trial.repeats += again.length
      const answered = await Promise.all(again.map((write) => send(wire, write)))
      if (answered.includes(false)) throw new Error('the node closed a connection while writes were repeated')
      writer.last = again.at(-1) ?? writer.last
      writer.unanswered = []
      // A completed write returns its stored result without a second effect.
      if (writer.last) await send(wire, writer.last)
    }),
  )
  explain(trial)
  await compareState(trial, clients[0] as WireClient)
  for (const wire of clients) closeClient(wire)
}

/** Applies all writes of the round to the model, in log order. */
function explain(trial: Trial): void {
  const done = trial.writes.filter(({ answer }) => answer?.code === '')
  done.sort((a, b) => (a.answer?.index as number) - (b.answer?.index as number))
  for (const write of trial.writes) {
    const code = write.answer?.code
    if (code === undefined) throw new Error(`${text(write)} has no reply`)
    const isFine = code === '' || (write.command === 'DECROOMAVL' ? code === 'UNDERFLOW' : code === 'OVERFLOW')
    if (!isFine) throw new Error(`${text(write)} was refused`)
  }
  for (const write of done) {
    const { index, availability } = write.answer as NonNullable<Write['answer']>
    if (index <= trial.lastIndex) throw new Error(`${text(write)} has an index that was assigned before`)
    trial.lastIndex = index
    const expected = trial.packages[write.target] as Package
    apply(expected, write)
    if (availability !== undefined && availability !== expected.availability) {
      throw new Error(`${text(write)}: the reply should be ${expected.availability}`)
    }
  }
  trial.acknowledged += trial.writes.length
  trial.writes = []
}

function apply(target: Package, { command, fields }: Write): void {
  if (command === 'DECROOMAVL') target.availability -= fields['amount'] as number
  else if (command === 'INCROOMAVL') target.availability += fields['amount'] as number
  else if (command === 'SETROOMAVL') target.availability = fields['amount'] as number
  else {
    target.availability = fields['availability'] as number
    target.price = fields['finalPrice'] as number
    target.features = 1
  }
}

async function compareState(trial: Trial, wire: WireClient): Promise<void> {
  for (const [target, expected] of trial.packages.entries()) {
    const found = await succeed(wire, 'GETPROPROOMDAY', place(trial, target))
    const { availability, finalPrice, rateFeatures } = found
    const isSame =
      availability === expected.availability &&
      finalPrice === expected.price &&
      rateFeatures.length === expected.features
    if (!isSame) {
      throw new Error(
        `${JSON.stringify(place(trial, target))} is ${JSON.stringify(found)}, not ${JSON.stringify(expected)}`,
      )
    }
  }
}

// The command

export const killCommand = defineCommand({
  name: 'proofs kill',
  component: 'kill',
  summary: `Kills a node with SIGKILL at random times while ${CLIENTS} clients write and repeat. No write is lost or doubled.`,
  flags: {
    rounds: { type: 'integer', min: 1, max: 1_000_000_000, default: 200, summary: 'Kills.' },
    seed: SEED_FLAG,
  },
  run: async ({ flags: { rounds, seed = seedOfNow() } }) => {
    const say = (line: string) => process.stdout.write(`${line}\n`)
    say(`seed ${seed}, ${rounds} rounds, ${CLIENTS} writing clients`)
    const report = await killRounds({ rounds, seed, say })
    say(
      `${report.rounds} rounds: ${report.acknowledged} acknowledged writes, ${report.repeats} repeats, ` +
        `${report.killedStarts} starts killed, no lost or duplicate writes`,
    )
    return EXIT.ok
  },
})
