import { expect, test } from 'vitest'
import { runStructure } from '../testing/structure-run.ts'
import { allocate, release } from './arena.ts'
import { allocateRecord, createStore, publish } from './store.ts'
import { enter, leave, retire } from './version.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? Math.floor(Math.random() * 2 ** 24))

test(`readers see each structural change completely or not at all: growth, order, moves, deletes, dropped days (VACANCY_SEED=${SEED})`, async () => {
  expect(await runStructure(SEED, { commands: 1_500, overlapped: 150, besideMarks: 20 })).toBe('')
}, 180_000)

test('memory that a reader may access is not reused before the reader leaves', () => {
  const store = createStore({ memoryBytes: 8 << 20, readers: 1, scratchBytes: 4096, sessionBytesMax: 0 })
  const address = allocateRecord(store, 4096)

  enter(store.memory, 0)
  retire(store, false, address, 4096)
  for (let n = 1; n < 4; n++) publish(store, n)
  const during = allocate(store.writer.records, 4096)
  expect(during).not.toBe(address)
  release(store.writer.records, during, 4096)
  leave(store.memory, 0)
  for (let n = 4; n < 8; n++) publish(store, n)

  expect(store.writer.limbo.addresses).toHaveLength(0)
})
