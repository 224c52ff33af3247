import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { assert, createCodecList, formatDay } from '@vacancy/shared'
import { afterAll, expect, test } from 'vitest'
import { createEnv } from '../env.ts'
import { recountDigest } from '../store/apply.ts'
import { sumSegments } from '../store/apply-properties.ts'
import { beginCopyOnWrite, endCopyOnWrite } from '../store/cow.ts'
import { STATE } from '../store/layout.ts'
import { recountCharge } from '../store/recount.ts'
import { countsOf, createStore, type Store, scratchOf, setState, state, stateDigest } from '../store/store.ts'
import { runModel, TODAY } from '../testing/model.ts'
import { ask, type NodeInMemory, nodeOver, SAMPLE_CODECS } from '../testing/node-in-memory.ts'
import { CAPTURE_SCRATCH_BYTES, captureStore } from './capture.ts'
import { decodePart, openSeedFile, type SnapshotReader } from './load.ts'
import { finishStore, forgetGenesis, prepareStore } from './restore.ts'
import { createWordsCoder } from './words.ts'
import { inlineEncoder, writeSeedFile } from './write.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? Math.floor(Math.random() * 2 ** 31))
const folder = mkdtempSync(join(tmpdir(), 'vacancy-restore-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const codecs = createCodecList(SAMPLE_CODECS)
const silent = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined }
const env = createEnv(silent)

const MEMBERSHIP = {
  members: [
    { id: 1, node: 'n1', incarnation: '11'.repeat(16) },
    { id: 1_007, node: 'n2', incarnation: '22'.repeat(16) },
  ],
  voters: [1],
  outgoing: [],
  learners: [1_007],
  staged: [],
  autoLeave: false,
}

function capture(node: NodeInMemory) {
  const { store } = node
  const epoch = beginCopyOnWrite(store)
  return {
    epoch,
    index: node.index,
    term: 3,
    shardId: 's1',
    voters: ['n1'],
    membership: MEMBERSHIP,
    recordsStart: store.writer.recordsStart,
    recordsEnd: store.writer.gap.low,
  }
}

function searches(node: NodeInMemory): string {
  const answers = []
  for (const segment of ['segment0', 'segment1']) {
    answers.push(ask(node, 'SEARCHPROP', { segment }).result)
    for (const roomType of ['room0', 'room1']) {
      for (let first = 0; first < 12; first += 3) {
        const dates = [first, first + 1].map((i) => formatDay(TODAY + i))
        answers.push(ask(node, 'SEARCHAVAIL', { segment, roomType, dates, availability: 0 }).result)
      }
    }
  }
  return JSON.stringify(answers)
}

/** A store of its own that holds what the file has. */
function restored(reader: SnapshotReader): Store {
  const store = createStore({
    memoryBytes: 96 << 20,
    readers: 2,
    scratchBytes: 16 << 20,
    sessionBytesMax: 1 << 20,
  })
  const prepared = prepareStore(store, reader.names, reader.properties, reader.tables)
  const coder = createWordsCoder(store.memory.wasm, scratchOf(store.memory, 0), {
    tables: reader.tables,
    ids: reader.properties.ids,
    roomTypes: reader.names.roomTypes,
  })
  for (let part = 0; part < reader.words.parts.length; part++) {
    decodePart(
      env.disk,
      { words: reader.words, form: reader.places.form, firstPlane: reader.firstPlane },
      coder,
      prepared.planeMap,
      part,
    )
  }
  finishStore(store, prepared, {
    sessions: reader.sessions,
    stays: reader.stays,
    settings: reader.settings,
    replicated: reader.replicated,
    lastMaintenanceDay: reader.manifest.lastMaintenanceDay,
    digest: reader.manifest.digest,
  })
  return store
}

test(`a captured and restored state gives the same bytes for every search (VACANCY_SEED=${SEED})`, async () => {
  const node = runModel(SEED, { properties: 300, segments: 2, rooms: 2, areas: 5, steps: 4000 })
  const before = {
    digest: stateDigest(node.store.memory),
    counts: countsOf(node.store.memory),
    answers: searches(node),
    charge: node.store.writer.charge.bytes,
  }
  const point = capture(node)

  // Writes continue while the snapshot is read, and none of them may appear in it.
  for (let i = 0; i < 300; i++) {
    ask(node, 'SETROOMPKG', {
      propertyId: `p${i}`,
      roomType: 'room0',
      date: formatDay(TODAY + (i % 9)),
      finalPrice: 77,
    })
    if (i % 10 === 0) ask(node, 'DELPROP', { propertyId: `p${i}` })
  }
  const scratch = scratchOf(node.store.memory, 1) + 65_536
  const captured = captureStore(node.store.memory, point, codecs, scratch)
  assert(captured !== undefined, 'the epoch was kept')
  const path = join(folder, 'seed.snapshot')
  const source = captured.source
  await writeSeedFile(env, path, source, { encoder: inlineEncoder(source, scratch + CAPTURE_SCRATCH_BYTES) })
  endCopyOnWrite(node.store)

  const reader = openSeedFile(env.disk, path)
  expect(reader.manifest.membership).toEqual(MEMBERSHIP)
  expect(reader.manifest.configuration).toEqual({ voters: ['n1'], learners: ['n2'] })
  expect(reader.manifest.packages).toBe(before.counts.packages)
  const store = restored(reader)

  expect(countsOf(store.memory)).toEqual(before.counts)
  expect(stateDigest(store.memory)).toEqual(before.digest)
  expect(recountDigest(store.memory).digest).toEqual(before.digest)
  expect(store.writer.charge.bytes).toBe(before.charge)
  expect(recountCharge(store.memory)).toBe(before.charge)
  const other = nodeOver(store, node.day)
  expect(searches(other)).toBe(before.answers)

  // A part of its digest is summed up, the rest when it is deleted.
  sumSegments(store, 40)
  ask(other, 'SETPROP', property('p0', 'segment1'))
  ask(other, 'DELPROP', { propertyId: 'p1' })
  ask(other, 'DELSEGMENT', { segment: 'segment0' })
  const recount = recountDigest(store.memory)
  expect(stateDigest(store.memory)).toEqual(recount.digest)
  expect(countsOf(store.memory)).toMatchObject({ properties: recount.properties, packages: recount.packages })
  expect(store.writer.charge.bytes).toBe(recountCharge(store.memory))
})

function property(propertyId: string, segment: string) {
  const place = { area: 'area0', propertyType: 'hotel', category: 'budget', stars: 3, latitude: 47, longitude: 8 }
  return { ...place, propertyId, segment, amenities: ['pool'] }
}

test('a restart used to reset the first day after a bulk load to the day of maintenance', async () => {
  const node = runModel(SEED, { properties: 20, segments: 2, rooms: 2, areas: 5, steps: 200 })
  const { store } = node
  const { memory } = store
  // What a load leaves whose snapshot had its maintenance later than the shard.
  setState(store, STATE.droppedBefore, state(memory, STATE.lastMaintenanceDay) + 5)
  setState(store, STATE.replicated + 3, 4_000_000_000)
  const path = join(folder, 'level.snapshot')
  const scratch = scratchOf(memory, 1) + 65_536
  const captured = captureStore(memory, capture(node), codecs, scratch)
  assert(captured !== undefined, 'the epoch was kept')
  const { source } = captured
  await writeSeedFile(env, path, source, { encoder: inlineEncoder(source, scratch + CAPTURE_SCRATCH_BYTES) })
  endCopyOnWrite(store)

  const copy = restored(openSeedFile(env.disk, path))

  for (const cell of [STATE.droppedBefore, STATE.lastMaintenanceDay, STATE.replicated + 3, STATE.featureLevel]) {
    expect(state(copy.memory, cell), `cell ${cell}`).toBe(state(memory, cell))
  }
  expect(stateDigest(copy.memory)).toEqual(stateDigest(memory))
  forgetGenesis(store)
  forgetGenesis(copy)
  expect(stateDigest(copy.memory)).toEqual(stateDigest(memory))
})
