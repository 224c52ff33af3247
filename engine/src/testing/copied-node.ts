/** Another replica, which loads a snapshot of this one. For tests that compare it with one that applied the log. */

import { assert, createCodecList } from '@vacancy/shared'
import { CAPTURE_SCRATCH_BYTES, captureStore } from '../snapshot/capture.ts'
import { openSeedFile, type SnapshotReader } from '../snapshot/load.ts'
import { inlineDecoder, replaceData, replaceStore } from '../snapshot/replace.ts'
import { inlineEncoder, writeSeedFileAtOnce } from '../snapshot/write.ts'
import { beginCopyOnWrite, endCopyOnWrite } from '../store/cow.ts'
import { createStore, scratchOf } from '../store/store.ts'
import { type NodeInMemory, nodeOver, SAMPLE_CODECS } from './node-in-memory.ts'
import { createSimulation, type Simulation } from './simulation.ts'

const FILE = '/copy.snapshot'
const codecs = createCodecList(SAMPLE_CODECS)

/** Writes the state of a node as a snapshot to the disk of a simulation. */
export function writeSnapshot(node: NodeInMemory, { env, disk }: Simulation, path = FILE): SnapshotReader {
  const { store } = node
  const point = {
    epoch: beginCopyOnWrite(store),
    index: node.index,
    term: 3,
    shardId: 's1',
    voters: ['n1'],
    recordsStart: store.writer.recordsStart,
    recordsEnd: store.writer.gap.low,
  }
  const scratch = scratchOf(store.memory, 1) + 65_536
  const captured = captureStore(store.memory, point, codecs, scratch)
  assert(captured !== undefined, 'the epoch was kept')
  const encoder = inlineEncoder(captured.source, scratch + CAPTURE_SCRATCH_BYTES)
  writeSeedFileAtOnce(env, path, captured.source, { encoder })
  endCopyOnWrite(store)
  return openSeedFile(disk, path)
}

export function copyOf(node: NodeInMemory): NodeInMemory {
  const simulation = createSimulation()
  const reader = writeSnapshot(node, simulation)
  const loaded = createStore({ memoryBytes: 96 << 20, readers: 2, scratchBytes: 16 << 20, sessionBytesMax: 1 << 20 })
  const ended: unknown[] = []
  replaceStore(simulation.env, loaded, reader, inlineDecoder(simulation.disk), (error) => ended.push(error))
  assert(ended.length === 1 && ended[0] === undefined, 'the snapshot was loaded')
  const copy = nodeOver(loaded, node.day)
  copy.index = node.index
  copy.timeMs = node.timeMs
  return copy
}

/** A bulk load: the data of one node replace those of another, whose stays remain. */
export function loadDataOf(from: NodeInMemory, to: NodeInMemory): void {
  const simulation = createSimulation()
  const reader = writeSnapshot(from, simulation)
  const ended: unknown[] = []
  replaceData(simulation.env, to.store, reader, inlineDecoder(simulation.disk), (error) => ended.push(error))
  assert(ended.length === 1 && ended[0] === undefined, 'the data were loaded')
}
