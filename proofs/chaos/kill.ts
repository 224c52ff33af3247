/**
 * `npm run proofs -- kill`: kills a node at random times while clients write, and restarts it. Clients repeat writes without
 * a reply with the same key until they have one, and some that have. At the end their histories are judged as those of chaos:
 * a lost or duplicate write leaves a difference (docs/design/consensus.md#request-keys).
 */

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { connect } from '@vacancy/client'
import { EXIT } from '@vacancy/shared'
import { defineCommand } from '@vacancy/shared/node'
import { freePort } from '@vacancy/testkit/free-port'
import {
  dateIn,
  type NodeProcess,
  type NodeRun,
  removeFolder,
  startNodeProcess,
  temporaryFolder,
} from '@vacancy/testkit/node'
import { between, createRandom, type Random } from '@vacancy/testkit/random'
import { until } from '@vacancy/testkit/until'
import { SEED_FLAG, seedOfNow } from '../seed.ts'
import { connectClient, runClient } from './client.ts'
import { layGround, readPackages } from './crowd.ts'
import { judge } from './judge.ts'
import { createBoard, machineMs } from './recorder.ts'

const CLIENTS = 8
/** Concurrent operations of one client. */
const LANES = 4
const THINK_MS_MAX = 4
const PROPERTIES = 10
const NIGHTS = 20
const TRAFFIC_MS = { min: 5, max: 250 }
/** One in this many starts is killed before it serves. */
const KILLED_STARTS = 6
const START_MS_MAX = 700
/** Longer than a start. */
const CONNECTED_MS = 60_000

export type KillReport = {
  readonly seed: number
  readonly rounds: number
  readonly acknowledged: number
  readonly repeats: number
  readonly killedStarts: number
}

/**
 * Runs the given number of rounds.
 *
 * @throws Error with the seed when an acknowledged write is missing or was applied twice
 */
export async function killRounds(options: {
  readonly rounds: number
  readonly seed: number
  readonly say?: (line: string) => void
}): Promise<KillReport> {
  const { rounds, seed, say = () => undefined } = options
  const random = createRandom(seed)
  const folder = temporaryFolder()
  // Frequent snapshots and new log files, so that kills hit them as well.
  const often = { snapshot_trigger_count: 300, snapshot_interval_sec: 1, log_level: 'warn' }
  const run: NodeRun = { folder, config: { ...often, tcp_port: await freePort() } }
  const board = createBoard()
  let node = await startNodeProcess(run)
  const nodes = [{ host: '127.0.0.1', port: node.tcpPort }]
  const own = await connect({ nodes, deadlineMs: 20_000, connectDeadlineMs: CONNECTED_MS })
  const ground = { properties: PROPERTIES, dates: Array.from({ length: NIGHTS }, (_, night) => dateIn(30 + night)) }
  const recorder = { board, client: CLIENTS }
  const plan = { seed, board, nodes, ground, lanes: LANES, thinkMsMax: THINK_MS_MAX }
  try {
    await layGround(own, ground, recorder)
    const clients = await Promise.all(
      Array.from({ length: CLIENTS }, (_, client) =>
        connectClient({ ...plan, client, kind: client === 0 ? 'library' : 'own' }),
      ),
    )
    const fromMs = machineMs()
    const ended = Promise.all(clients.map(runClient))
    let killedStarts = 0
    for (let round = 1; round <= rounds; round++) {
      const { index } = board
      await until('the clients are connected again', () => board.index > index)
      await wait(between(random, TRAFFIC_MS.min, TRAFFIC_MS.max))
      await node.kill()
      if (random.below(KILLED_STARTS) === 0) {
        killedStarts++
        await killStart(run, random)
      }
      node = await startNodeProcess(run)
      // Other packages are hot, so that histories stay short enough to be judged.
      board.epoch++
      if (round % 20 === 0) say(`round ${round}: ${board.operations.length} operations, ${board.repeats} repeats`)
    }
    board.isOver = true
    await ended
    const keys = new Set(board.operations.map(({ key }) => key))
    const unread = await readPackages(own, ground, recorder, keys)
    const { repeats, violations } = judge(board, fromMs, machineMs())
    const writes = board.operations.filter(({ client, kind }) => client < CLIENTS && kind !== 'read')
    const acknowledged = writes.filter(({ outcome }) => outcome === 'done').length
    const found = [...(unread > 0 ? [`${unread} packages could not be read`] : []), ...violations]
    if (found.length > 0) throw new Error(found.slice(0, 20).join('\n'))
    for (const each of [own, ...clients.map(({ client }) => client)]) await each.close()
    await node.stop()
    removeFolder(folder)
    return { seed, rounds, acknowledged, repeats, killedStarts }
  } catch (error) {
    board.isOver = true
    await node.kill()
    writeFileSync(join(folder, 'history.jsonl'), board.operations.map((each) => JSON.stringify(each)).join('\n'))
    throw new Error(`seed ${seed}, data in ${folder}: ${(error as Error).message}`, { cause: error })
  }
}

async function killStart(run: NodeRun, random: Random): Promise<void> {
  const started = startNodeProcess({ ...run, killAfterMs: random.below(START_MS_MAX) })
  await started.then(
    (node: NodeProcess) => node.kill(),
    () => undefined,
  )
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
