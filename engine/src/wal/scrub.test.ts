/** docs/design/storage.md#scrubbing: what was written long ago is read again, and every damaged byte of it is found. */

import { createRandom } from '@vacancy/testkit/random'
import { expect, test } from 'vitest'
import { readFully } from '../env.ts'
import { damage, type SimulatedDisk } from '../testing/disk.ts'
import { entries, IDENTITY, SMALL } from '../testing/log-fixture.ts'
import { createSimulation } from '../testing/simulation.ts'
import { createWal } from './open.ts'
import { type FileReport, listLogFiles } from './scan.ts'
import { scrubLogStep } from './scrub.ts'
import { appendGroup, compactWal, prepareNext } from './wal.ts'

const DIRECTORY = '/wal'

/** A log of several files, the last one half full. */
function written() {
  const { env, disk } = createSimulation()
  disk.makeDirectory(DIRECTORY)
  const wal = createWal(env, DIRECTORY, IDENTITY, { index: 0, term: 0 }, SMALL)
  while (wal.files.length < 5) {
    const from = wal.lastIndex + 1
    const hardState = { term: 1, vote: 1, commit: from - 1 }
    appendGroup(wal, { hardState, batches: [entries(from, 5, 1, 40)] })
    while (prepareNext(wal, 4096));
  }
  return { disk, wal }
}

function walk(disk: SimulatedDisk) {
  const steps = []
  for (let after = ''; ; ) {
    const step = scrubLogStep(disk, DIRECTORY, after)
    if (!step) return steps
    steps.push(step)
    after = step.file
  }
}

test('every file but the one that is written is read, each once', () => {
  const { disk } = written()
  const names = listLogFiles(disk, DIRECTORY).map(({ name }) => name)

  expect(walk(disk)).toEqual(names.slice(0, -1).map((file) => ({ file, damage: undefined })))
})

test('a log of one file has nothing to read yet', () => {
  const { env, disk } = createSimulation()
  disk.makeDirectory(DIRECTORY)
  createWal(env, DIRECTORY, IDENTITY, { index: 0, term: 0 }, SMALL)

  expect(scrubLogStep(disk, DIRECTORY, '')).toBeUndefined()
})

/** All of a file up to the last byte that is not zero. */
function dataOf(disk: SimulatedDisk, file: FileReport): Uint8Array {
  const bytes = new Uint8Array(file.bytes)
  const descriptor = disk.open(file.path, 'read')
  readFully(disk, descriptor, bytes, 0, bytes.length, 0)
  disk.close(descriptor)
  return bytes.subarray(0, bytes.findLastIndex((byte) => byte !== 0) + 1)
}

test('a bit that is set and flips is found, in the file that has it and in no other', () => {
  for (let seed = 1; seed <= 300; seed++) {
    const random = createRandom(seed)
    const { disk } = written()
    const files = listLogFiles(disk, DIRECTORY).slice(0, -1)
    const file = files[random.below(files.length)] as FileReport
    const data = dataOf(disk, file)
    // Zeros between records, which pad them, carry nothing.
    let offset = random.below(data.length)
    while (data[offset] === 0) offset = random.below(data.length)
    damage(disk, file.path, offset, Uint8Array.of(data[offset] ^ (1 << random.below(8))))

    const found = walk(disk).filter((step) => step.damage !== undefined)

    expect(
      found.map((step) => step.file),
      `seed ${seed}: byte ${offset}`,
    ).toEqual([file.name])
    expect(found[0]?.damage?.file).toBe(file.path)
  }
})

test('files that are compacted meanwhile are no damage, and the next ones follow', () => {
  const { disk, wal } = written()
  const first = scrubLogStep(disk, DIRECTORY, '')
  compactWal(wal, (wal.files.at(-1)?.firstIndex ?? 1) - 1)

  expect(first?.damage).toBeUndefined()
  expect(walk(disk).every(({ damage }) => damage === undefined)).toBe(true)
})
