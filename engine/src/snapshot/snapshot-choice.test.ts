/** Which snapshots of a data directory are found, kept, scrubbed and described: names, terms, and their limits. */

import { assert } from '@vacancy/shared'
import { beforeEach, describe, expect, test } from 'vitest'
import { contentOf, createSimulatedDisk, damage, type SimulatedDisk } from '../testing/disk.ts'
import { createSimulation } from '../testing/simulation.ts'
import { createTestSource, type TestSource } from '../testing/snapshot-source.ts'
import { chunkFileName } from './format.ts'
import type { SnapshotHead } from './load.ts'
import {
  collectChunks,
  exportSeedFile,
  findSnapshots,
  foreignness,
  heldSnapshots,
  loadFolder,
  retainSnapshots,
  SEED_FILE,
  scrubStep,
  snapshotInfo,
} from './snapshot.ts'
import { inlineEncoder, writeSeedFileAtOnce, writeSnapshotDirAtOnce } from './write.ts'

const DATA = '/data'
const SNAPSHOTS = `${DATA}/snapshots`
const source: TestSource = createTestSource({ segments: 1, roomTypes: 1, propertiesPerSegment: 2, nights: 1 })
const encoder = inlineEncoder(source, source.planes.scratch[0] as number)

let disk: SimulatedDisk
beforeEach(() => {
  disk = createSimulatedDisk()
  disk.makeDirectory(DATA)
})

/** @param day makes its content another one */
function write(index: number, term = 1, day = 0): void {
  const at = { ...source, index, term, lastMaintenanceDay: day, sessions: Uint8Array.of(1, day) }
  writeSnapshotDirAtOnce(createSimulation({ disk }).env, DATA, at, { encoder, origin: 'test' })
}

const found = () => findSnapshots(disk, DATA).map(({ index, term }) => [index, term])

function headOf(at = 0): SnapshotHead {
  const snapshot = findSnapshots(disk, DATA)[at]
  assert(snapshot?.state === 'readable', 'it is found')
  return snapshot.head
}

const chunkOf = (head: SnapshotHead, kind: string) => {
  const part = head.manifest.blocks.find((block) => block.kind === kind)?.parts[0]
  return `${SNAPSHOTS}/chunks/${chunkFileName(part?.digest as Uint8Array)}`
}

describe('found snapshots', () => {
  test('the highest index comes first, then the highest term', () => {
    for (const [index, term] of [
      [5, 2],
      [9, 1],
      [5, 7],
      [10, 1],
    ] as const) {
      write(index, term)
    }

    expect(found()).toEqual([
      [10, 1],
      [9, 1],
      [5, 7],
      [5, 2],
    ])
  })

  test.each(['snap-5', 'snap-5-1-1', 'snap-x-1', 'xsnap-5-1', `snap-${'1'.repeat(17)}-1`, 'snap-5-1.tmp'])(
    'a folder of the name %s is not a snapshot',
    (name) => {
      write(5)
      disk.makeDirectory(`${SNAPSHOTS}/${name}`)
      disk.close(disk.open(`${SNAPSHOTS}/${name}/MANIFEST`, 'create'))

      expect(found()).toEqual([[5, 1]])
    },
  )

  test.each([
    [6, 1],
    [5, 2],
  ])('a manifest in the folder of index %i and term %i that is of index 5 and term 1 is refused', (index, term) => {
    write(5)
    const path = `${SNAPSHOTS}/snap-${index}-${term}`
    disk.makeDirectory(path)
    const bytes = contentOf(disk, `${SNAPSHOTS}/snap-5-1/MANIFEST`)
    const file = disk.open(`${path}/MANIFEST`, 'create')
    disk.write(file, bytes, 0, bytes.length, 0)
    disk.close(file)

    expect(findSnapshots(disk, DATA).find((each) => each.path === path)).toMatchObject({
      ...{ state: 'refused', index, term },
      error: { code: 'corrupt_data', fields: { file: `${path}/MANIFEST`, reason: 'it is of index 5 and term 1' } },
    })
  })

  test('snapshots of loads have a purpose and a digest, and a manifest', () => {
    write(5)
    const manifest = contentOf(disk, `${SNAPSHOTS}/snap-5-1/MANIFEST`)
    const digest = 'ab'.repeat(32)
    const names = [
      `load-${digest}`,
      `before-${digest}`,
      `after-${digest}`,
      `load-${digest}0`,
      `load-${digest.slice(1)}`,
    ]
    for (const name of [...names, `load-${'cd'.repeat(32)}`]) disk.makeDirectory(`${SNAPSHOTS}/${name}`)
    for (const name of names) {
      const file = disk.open(`${SNAPSHOTS}/${name}/MANIFEST`, 'create')
      disk.write(file, manifest, 0, manifest.length, 0)
      disk.close(file)
    }

    expect(heldSnapshots(disk, DATA).sort((a, b) => (a.path < b.path ? -1 : 1))).toEqual(
      (['before', 'load'] as const).map((purpose) => ({
        ...{ purpose, contentDigest: digest, path: loadFolder(DATA, purpose, digest) },
      })),
    )
    expect(heldSnapshots(disk, '/nothing')).toEqual([])
  })
})

describe('kept snapshots', () => {
  test('of equal indexes the higher terms stay', () => {
    for (const term of [1, 2, 3]) write(5, term)

    expect(retainSnapshots(disk, DATA)).toEqual([`${SNAPSHOTS}/snap-5-1`])
    expect(found()).toEqual([
      [5, 3],
      [5, 2],
    ])
  })

  test.each(['is missing', 'has another length'])('one of which a chunk %s does not count', (what) => {
    for (const day of [1, 2, 3]) write(day * 10, 1, day)
    const path = chunkOf(headOf(0), 'sessions')
    disk.unlink(path)
    if (what !== 'is missing') disk.close(disk.open(path, 'create'))

    expect(retainSnapshots(disk, DATA)).toEqual([])
    expect(found()).toHaveLength(3)
  })

  test('the seed file neither counts nor goes', () => {
    writeSeedFileAtOnce(createSimulation({ disk }).env, `${DATA}/${SEED_FILE}`, { ...source, index: 50 }, { encoder })
    for (const day of [1, 2]) write(day * 10, 1, day)

    expect(retainSnapshots(disk, DATA)).toEqual([])
    write(30, 1, 3)
    expect(retainSnapshots(disk, DATA)).toEqual([`${SNAPSHOTS}/snap-10-1`])
    expect(found().map(([index]) => index)).toEqual([50, 30, 20])
  })

  test('chunks that are used by none are removed, other files stay', () => {
    write(10, 1, 1)
    const folder = `${SNAPSHOTS}/chunks`
    const used = disk.list(folder)
    for (const name of ['0.chk', '1.chk.tmp', 'notes.txt', 'chk', '2.chk.old']) {
      disk.close(disk.open(`${folder}/${name}`, 'create'))
    }

    expect(collectChunks(disk, DATA)).toBe(2)
    expect(disk.list(folder).sort()).toEqual([...used, 'notes.txt', 'chk', '2.chk.old'].sort())
    expect(collectChunks(disk, '/nothing')).toBe(0)
  })
})

describe('scrubbing', () => {
  test('chunks come in the order of their names, each once, with a pause for its bytes', () => {
    write(10, 1, 1)
    write(20, 1, 2)
    const folder = `${SNAPSHOTS}/chunks`
    let after = ''
    for (const name of disk.list(folder).sort()) {
      const step = scrubStep(disk, DATA, after)
      assert(step.state === 'whole', 'the chunk is whole')
      expect(step.after.startsWith(`${folder}/${name}@`)).toBe(true)
      // 10 MB a second.
      expect(step.waitMs).toBe(Math.ceil((disk.stat(`${folder}/${name}`)?.bytes ?? 0) / 10_000))
      after = step.after
    }
    expect(scrubStep(disk, DATA, after)).toEqual({ state: 'done' })
  })

  test('a damaged chunk names the snapshots that need it, and whether the newest does', () => {
    write(10, 1, 1)
    write(20, 1, 2)
    const steps = () => {
      const all = []
      for (let after = ''; ; ) {
        const step = scrubStep(disk, DATA, after)
        if (step.state === 'done') return all.filter(({ state }) => state === 'damaged')
        all.push(step)
        after = step.after
      }
    }
    expect(steps()).toEqual([])
    const flip = (path: string) => damage(disk, path, 40, Uint8Array.of((contentOf(disk, path)[40] as number) ^ 1))
    const [newest, old] = [headOf(0), headOf(1)]
    flip(chunkOf(old, 'sessions'))
    expect(steps()).toMatchObject([{ snapshots: [old.path], isNewest: false }])
    flip(chunkOf(newest, 'tables'))

    const damaged = steps().map((step) => step.state === 'damaged' && [step.snapshots, step.isNewest])
    expect(damaged).toHaveLength(2)
    expect(damaged).toContainEqual([[newest.path, old.path], true])
  })
})

test('a snapshot of another shard or codec list is foreign, and the error has both', () => {
  write(5)
  const head = headOf()
  const wanted = { shardId: 's1', codecsOrderedHash: source.codecs.orderedHash, codecsText: 'x,y' }

  expect(foreignness(head, wanted)).toBeUndefined()
  expect(foreignness(head, { ...wanted, shardId: 's2' })).toMatchObject({
    ...{ code: 'wrong_shard', fields: { directory: head.path, found: 's1', wanted: 's2' } },
  })
  expect(foreignness(head, { ...wanted, codecsOrderedHash: '00' })).toMatchObject({
    code: 'codecs_changed',
    fields: { reason: `${source.codecs.names.join(',')} in the snapshot, x,y here` },
  })
})

test('a file without nights is described without window, time and duration', () => {
  const empty = { ...source, tables: [] }
  writeSeedFileAtOnce(createSimulation({ disk }).env, `${DATA}/${SEED_FILE}`, empty, { encoder })

  expect(snapshotInfo(headOf())).toMatchObject({
    ...{ created_at: null, duration_ms: null, origin: 'file', window: null, packages: 0, properties: 2 },
    bytes: disk.stat(`${DATA}/${SEED_FILE}`)?.bytes,
  })
})

test('an export returns the bytes of its file', () => {
  write(5)

  expect(exportSeedFile(disk, headOf(), '/exported')).toBe(disk.stat('/exported')?.bytes)
})
