/**
 * A store that is kept almost full under every type of command: growth, updates, request keys of new sessions, deletes,
 * moves, row ordering and snapshots. Returns statistics; failures contain the seed.
 */

import { assert, dayOf } from '@vacancy/shared'
import { createRandom } from '@vacancy/testkit/random'
import { applyCommand } from '../store/apply.ts'
import { fitsBudget, growthLeft, memoryBudget, memoryBudgetOf } from '../store/charge.ts'
import {
  beginCommand,
  type CommandKind,
  type CommandWriter,
  createCommandWriter,
  GIVEN,
  KIND,
  OUTCOME,
  stampCommand,
  writeBytes,
  writeF64,
  writeName,
  writeU8,
  writeU32,
} from '../store/command.ts'
import { beginCopyOnWrite, endCopyOnWrite } from '../store/cow.ts'
import { createStore, publish, type Store } from '../store/store.ts'
import { sweepOne } from '../store/window.ts'
import { applyOwn, type NodeInMemory, nodeOver } from './node-in-memory.ts'

export type PressureOptions = {
  readonly seed: number
  readonly commands: number
  readonly memoryBytes: number
  readonly readers: number
  readonly scratchBytes?: number
  /** Default: the capacity of the memory. */
  readonly budgetBytes?: number
  /** Continues a run in its own store or in a copy. */
  readonly after?: { readonly store: Store; readonly index: number; readonly nextId: number }
}

export type PressureResult = {
  readonly node: NodeInMemory
  readonly nextId: number
  /** Hash of all outcomes in order. */
  readonly outcomes: number
  readonly accepted: number
  readonly refused: number
  /** Smallest share of the budget in use when growth was refused. */
  readonly leastFill: number
  readonly snapshots: number
  readonly snapshotsGivenUp: number
}

const DAY = dayOf(Date.UTC(2026, 10, 20))
const encoder = new TextEncoder()
const SCRATCH_BYTES = 64 * 1024

/** Runs until this many commands were accepted. */
export function runPressure(options: PressureOptions): PressureResult {
  const { seed, commands, memoryBytes, readers, after, scratchBytes = SCRATCH_BYTES } = options
  const { below } = createRandom(seed)
  const store = after?.store ?? createStore({ memoryBytes, readers, scratchBytes, sessionBytesMax: 32 << 20 })
  const node = nodeOver(store, DAY)
  node.index = after?.index ?? 0
  applyOwn(node, KIND.featureLevel, (writer) => writeU32(writer, 1))
  applyOwn(node, KIND.memoryBudget, (writer) => writeF64(writer, options.budgetBytes ?? memoryBudgetOf(store)))
  const writer = createCommandWriter()
  const result = {
    node,
    nextId: 0,
    outcomes: 0,
    accepted: 0,
    refused: 0,
    leastFill: 1,
    snapshots: 0,
    snapshotsGivenUp: 0,
  }
  let nextId = after?.nextId ?? 1
  key.fill(0)
  let shrinking = 0
  const run = (kind: CommandKind, body: () => void, keyed: boolean): number => {
    writer.at = 0
    beginCommand(writer, kind, keyed ? sessionKey(below) : undefined)
    body()
    stampCommand(writer.view, 0, (DAY * 86_400_000 + 1000) as number, DAY)
    node.index++
    const { code } = applyCommand(node.context, node.index, writer.bytes, 0, writer.at)
    // Like a replica: a batch of commands, then publication to readers.
    if (below(32) === 0) publish(store, node.index)
    return code
  }
  const name = (text: string) => put(writer, text)
  const anId = () => putId(writer, 1 + below(Math.max(1, nextId - 1)))
  const setProperty = (id: number) => () => {
    putId(writer, id)
    writeU8(writer, 1 + below(5))
    writeF64(writer, 47)
    writeF64(writer, 8)
    name(`segment-${below(6)}`)
    name(`area-${below(3) === 0 ? below(2_000) : below(100)}`.padEnd(below(40), '.'))
    name(`type-${below(20)}`)
    name(`category-${below(20)}`)
    const amenities = below(12)
    writeU8(writer, amenities)
    for (let i = 0; i < amenities; i++) name(`amenity-${i}-${below(20)}`)
  }
  const setPackage = () => {
    anId()
    writeU32(writer, DAY + below(below(4) === 0 ? 300 : 60))
    writeU8(writer, GIVEN.availability | GIVEN.price | GIVEN.features)
    writeU8(writer, 1 + below(200))
    writeU32(writer, below(100_000))
    writeU32(writer, below(2 ** 20))
    name(`room-${below(below(8) === 0 ? 200 : 8)}`)
  }
  const night = (withAmount: boolean) => () => {
    anId()
    writeU32(writer, DAY + below(60))
    if (withAmount) writeU8(writer, 1 + below(9))
    name(`room-${below(8)}`)
  }
  const step = (): number => {
    const what = below(1000)
    const grows = shrinking > 0 ? 60 : 450
    if (what < grows / 4) {
      const code = run(KIND.setProperty, setProperty(nextId), below(2) === 0)
      // Refused properties are not used by later commands, most of which would fail.
      if (code === OUTCOME.done) nextId++
      return code
    }
    if (what < grows) return run(KIND.setPackage, setPackage, below(2) === 0)
    // Half of them move the property to another segment.
    if (what < grows + 30) return run(KIND.setProperty, setProperty(1 + below(nextId)), false)
    if (what < 940) return run(KIND.setAvailability, night(true), below(4) > 0)
    if (what < 960) return run(KIND.deletePackage, night(false), true)
    if (what < 985) return run(KIND.deleteProperty, anId, true)
    if (what < 997) {
      return run(
        KIND.deleteRoom,
        () => {
          anId()
          name(`room-${below(8)}`)
        },
        false,
      )
    }
    if (what < 999) {
      return run(
        KIND.orderRows,
        () => {
          name(`segment-${below(6)}`)
          writeU8(writer, 0)
          name(`room-${below(8)}`)
        },
        false,
      )
    }
    if (below(40) > 0) return OUTCOME.unknownSegment
    return run(KIND.deleteSegment, () => name(`segment-${below(6)}`), false)
  }
  for (let tries = 0; result.accepted < commands; tries++) {
    assert(tries < commands * 50, `seed ${seed}: commands are accepted`)
    const code = step()
    result.outcomes = (Math.imul(result.outcomes, 31) + code) | 0
    if (code === OUTCOME.done) result.accepted++
    if (code === OUTCOME.refused) {
      result.refused++
      assert(!fitsBudget(store, 64 << 20, 64 << 20), `seed ${seed}: refused commands do not fit`)
      result.leastFill = Math.min(result.leastFill, 1 - growthLeft(store) / memoryBudget(store.memory))
      if (below(2000) === 0) shrinking = below(4000)
    }
    if (shrinking > 0) shrinking--
    if (below(4000) === 0) toggleSnapshot(store, result)
    if (below(500) === 0) sweepOne(store)
  }
  if (store.writer.copyOnWrite) endCopyOnWrite(store)
  publish(store, node.index)
  result.nextId = nextId
  return result
}

function toggleSnapshot(store: Store, result: { snapshots: number; snapshotsGivenUp: number }): void {
  if (store.writer.copyOnWrite) {
    endCopyOnWrite(store)
    result.snapshots++
  } else if (store.writer.spare.failed) {
    store.writer.spare.failed = false
    result.snapshotsGivenUp++
  } else beginCopyOnWrite(store)
}

function put(writer: CommandWriter, text: string): void {
  const bytes = encoder.encode(text)
  writeName(writer, bytes, 0, bytes.length)
}

const id = new Uint8Array(16)
const idView = new DataView(id.buffer)

function putId(writer: CommandWriter, number: number): void {
  idView.setUint32(4, Math.imul(number, 0x9e3779b1) >>> 0)
  idView.setUint32(12, number)
  writeBytes(writer, id, 0, 16)
}

const key = new Uint8Array(24)
const keyView = new DataView(key.buffer)

/** Mostly new sessions, some of which continue with further numbers. */
function sessionKey(below: (n: number) => number): Uint8Array {
  const continuesSession = keyView.getUint32(0) > 0 && below(4) === 0
  if (!continuesSession) for (let cell = 0; cell < 4; cell++) keyView.setUint32(cell * 4, 1 + below(2 ** 31))
  keyView.setBigUint64(16, continuesSession ? keyView.getBigUint64(16, true) + BigInt(1 + below(40)) : 1n, true)
  return key
}
