/** Snapshot files that simulated operators load into a running shard, with their content for the model of the store. */

import { createCodecList } from '@vacancy/shared'
import { streamOf } from '@vacancy/testkit/random'
import { CAPTURE_SCRATCH_BYTES, captureStore } from '../../engine/src/snapshot/capture.ts'
import { hex } from '../../engine/src/snapshot/format.ts'
import { WORDS_SCRATCH_BYTES } from '../../engine/src/snapshot/words.ts'
import { inlineEncoder, writeSeedFileAtOnce } from '../../engine/src/snapshot/write.ts'
import { applyCommand } from '../../engine/src/store/apply.ts'
import { createApplyContext } from '../../engine/src/store/apply-context.ts'
import { stampCommand } from '../../engine/src/store/command.ts'
import { beginCopyOnWrite, endCopyOnWrite } from '../../engine/src/store/cow.ts'
import { createStore, publish, type Store, scratchOf } from '../../engine/src/store/store.ts'
import { plainPutWord } from '../../engine/src/testing/search-reference.ts'
import { createSimulation } from '../../engine/src/testing/simulation.ts'
import { violate } from './oracles.ts'
import { applyToModel, createStoreModel, type StoreModel } from './store-model.ts'
import { beginOfRun, imageCommands, todayAt } from './store-workload.ts'

export const SHARD = 'simulated'
export const CODECS = createCodecList(['refundable', 'breakfast'])

export type StoreImage = { readonly file: Uint8Array; readonly digest: string; readonly model: StoreModel }

/** Properties of each image. */
const SIZES = [30, 450] as const
const images = new Map<number, readonly StoreImage[]>()

/** Created once per process for each begin of simulated time. */
export function storeImages(): readonly StoreImage[] {
  const known = images.get(beginOfRun()) ?? SIZES.map(makeImage)
  images.set(beginOfRun(), known)
  return known
}

export function imageModels(): ReadonlyMap<string, StoreModel> {
  return new Map(storeImages().map(({ digest, model }) => [digest, model]))
}

const PATH = '/image.snapshot'

function makeImage(properties: number): StoreImage {
  const store = createStore({
    memoryBytes: 64 << 20,
    readers: 1,
    scratchBytes: CAPTURE_SCRATCH_BYTES + WORDS_SCRATCH_BYTES,
    sessionBytesMax: 1 << 20,
  })
  const { memory } = store
  const mismatch = () => violate('O8', 'an image contains no digest')
  const context = createApplyContext(store, plainPutWord(memory), mismatch)
  const model = createStoreModel()
  let index = 0
  for (const bytes of imageCommands(streamOf(properties, 'image'), properties)) {
    index++
    stampCommand(new DataView(bytes.buffer), 0, beginOfRun(), todayAt(0))
    const applied = applyCommand(context, index, bytes, 0, bytes.length)
    const { code } = applyToModel(model, index, bytes, 0, bytes.length, applied)
    if (code !== applied.code) violate('O4', `a command of an image returned ${applied.code}, not ${code}`)
  }
  publish(store, index)
  const seed = seedOf(store, index, 1)
  if (!seed) throw new Error('an idle store can be captured')
  return { ...seed, model }
}

/** The state of a store as a file to start from or to load. @returns undefined without memory for copies of pages */
export function seedOf(store: Store, index: number, term: number): Omit<StoreImage, 'model'> | undefined {
  const { memory, writer } = store
  const scratch = scratchOf(memory, 0)
  const point = {
    epoch: beginCopyOnWrite(store),
    ...{ index, term, shardId: SHARD, voters: ['image'] },
    recordsStart: writer.recordsStart,
    recordsEnd: writer.gap.low,
  }
  try {
    const captured = captureStore(memory, point, CODECS, scratch)
    if (!captured) return undefined
    const { env, disk } = createSimulation({ wallMs: beginOfRun() })
    const encoder = inlineEncoder(captured.source, scratch + CAPTURE_SCRATCH_BYTES)
    const written = writeSeedFileAtOnce(env, PATH, captured.source, { encoder })
    if (!written) return undefined
    const file = disk.open(PATH, 'read')
    const bytes = new Uint8Array(disk.stat(PATH)?.bytes ?? 0)
    disk.read(file, bytes, 0, bytes.length, 0)
    disk.close(file)
    return { file: bytes, digest: hex(written.manifest.contentDigest) }
  } finally {
    endCopyOnWrite(store)
  }
}
