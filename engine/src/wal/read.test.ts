import { createRandom } from '@vacancy/testkit/random'
import { expect, test } from 'vitest'
import type { EntryBatch } from '../raft/entry.ts'
import { batchTexts, entries, IDENTITY, SMALL } from '../testing/log-fixture.ts'
import { createSimulation } from '../testing/simulation.ts'
import { createWal } from './open.ts'
import { type LogCursors, readEntries } from './read.ts'
import { checksumSeed } from './record.ts'
import { appendGroup, compactWal, installWal, type Wal } from './wal.ts'

const DIRECTORY = '/wal'
const SEED = checksumSeed(IDENTITY)

function begin() {
  const { env, disk } = createSimulation()
  disk.makeDirectory(DIRECTORY)
  return { disk, wal: createWal(env, DIRECTORY, IDENTITY, { index: 0, term: 0 }, SMALL) }
}

function append(wal: Wal, batch: EntryBatch, term: number, commit: number): void {
  appendGroup(wal, { hardState: { term, vote: 0, commit: Math.max(wal.hardState.commit, commit) }, batches: [batch] })
}

test('a peer that catches up reads everything that is committed, also what was replaced on the way', () => {
  for (let seed = 1; seed <= 40; seed++) {
    const random = createRandom(seed)
    const { disk, wal } = begin()
    const texts: string[] = []
    const terms: { term: number; firstIndex: number }[] = []
    let commit = 0
    for (let term = 1; term <= 30; term++) {
      // A new leader may replace what is not committed.
      const first = commit + 1 + random.below(texts.length - commit + 1)
      texts.length = first - 1
      while ((terms.at(-1)?.firstIndex ?? 0) >= first) terms.pop()
      terms.push({ term, firstIndex: first })
      for (let group = random.below(4); group >= 0; group--) {
        const batch = entries(texts.length + 1, 1 + random.below(8), term, 1 + random.below(60))
        append(wal, batch, term, commit)
        texts.push(...batchTexts([batch]))
      }
      commit += random.below(texts.length - commit + 1)
    }
    const cursors: LogCursors = new Map()
    const read: string[] = []
    while (read.length < commit) {
      const ask = { firstIndex: read.length + 1, lastIndex: commit, bytesMax: 1 + random.below(4_000), terms }
      const found = readEntries(disk, DIRECTORY, SEED, cursors, ask)
      if (found === 'compacted') expect.fail(`seed ${seed}: entry ${ask.firstIndex} is there`)
      const bytes = found.reduce((sum, batch) => sum + batch.bytes.length, 0)
      const isOne = found.length === 1 && found[0]?.count === 1
      expect(bytes <= ask.bytesMax || isOne, `seed ${seed}: ${bytes} bytes of ${ask.bytesMax}`).toBe(true)
      read.push(...batchTexts(found))
    }
    expect(read, `seed ${seed}`).toEqual(texts.slice(0, commit))
  }
})

test('what was compacted, or lies before an installed snapshot, is not there', () => {
  const { disk, wal } = begin()
  while (wal.files.length < 4) append(wal, entries(wal.lastIndex + 1, 10, 1, 100), 1, wal.lastIndex)
  compactWal(wal, (wal.files[2]?.firstIndex ?? 0) - 1)
  const ask = { firstIndex: 1, lastIndex: 20, bytesMax: 1000, terms: [{ term: 1, firstIndex: 1 }] }

  expect(readEntries(disk, DIRECTORY, SEED, new Map(), ask)).toBe('compacted')

  const mark = { index: wal.lastIndex + 100, term: 1 }
  installWal(wal, mark)
  append(wal, entries(mark.index + 1, 3, 1, 10), 1, mark.index)
  const behind = { firstIndex: mark.index + 1, lastIndex: mark.index + 3, bytesMax: 1000, terms: ask.terms }
  expect(readEntries(disk, DIRECTORY, SEED, new Map(), behind)).toHaveLength(1)
  expect(readEntries(disk, DIRECTORY, SEED, new Map(), { ...behind, firstIndex: mark.index })).toBe('compacted')
})

test('a file deleted during a read counts as compacted, and any other error is reported unchanged', () => {
  const { disk, wal } = begin()
  while (wal.files.length < 3) append(wal, entries(wal.lastIndex + 1, 10, 1, 100), 1, wal.lastIndex)
  const ask = { firstIndex: 1, lastIndex: wal.lastIndex, bytesMax: 2 ** 20, terms: [{ term: 1, firstIndex: 1 }] }
  const readWith = (code: string, opens: number) => {
    let opened = 0
    disk.fault = ({ call }) => (call === 'open' && ++opened === opens ? { kind: 'fail', code } : undefined)
    return readEntries(disk, DIRECTORY, SEED, new Map(), ask)
  }

  expect(readWith('ENOENT', 1)).toBe('compacted')
  // What was read before is an answer.
  const [first] = readWith('ENOENT', 2)
  expect(first).toMatchObject({ firstIndex: 1 })
  expect(() => readWith('EACCES', 1)).toThrow('EACCES')
})

test('so many places where reads stopped are remembered, and the oldest is forgotten', () => {
  const { disk, wal } = begin()
  append(wal, entries(1, 100, 1, 8), 1, 0)
  const cursors: LogCursors = new Map()
  // Peers that send one request and never continue.
  for (let firstIndex = 1; firstIndex <= 99; firstIndex += 2) {
    const ask = { firstIndex, lastIndex: firstIndex, bytesMax: 1, terms: [{ term: 1, firstIndex: 1 }] }
    expect(readEntries(disk, DIRECTORY, SEED, cursors, ask)).toHaveLength(1)
  }
  expect([...cursors.keys()]).toEqual(Array.from({ length: 32 }, (_, i) => 38 + 2 * i))
})
