import { expect, test } from 'vitest'
import { contentOf, damage, type SimulatedDisk } from '../testing/disk.ts'
import { batchTexts, entries, IDENTITY, SMALL, textsOf } from '../testing/log-fixture.ts'
import { createSimulation } from '../testing/simulation.ts'
import { replaySalvage, salvageWal } from './inspect.ts'
import { createWal } from './open.ts'
import { FILE_HEADER_BYTES } from './record.ts'
import { appendGroup, type Wal } from './wal.ts'

/** Entries of term 1, then of term 2 from `termTwo` on, over at least three files. */
function create(termTwo = Number.POSITIVE_INFINITY): { disk: SimulatedDisk; wal: Wal } {
  const { env, disk } = createSimulation()
  disk.makeDirectory('/wal')
  const wal = createWal(env, '/wal', IDENTITY, { index: 0, term: 0 }, SMALL)
  while (wal.files.length < 3 || (wal.files.at(-1)?.lastIndex ?? 0) < (wal.files.at(-1)?.firstIndex ?? 0) + 14) {
    const first = wal.lastIndex + 1
    const term = first >= termTwo ? 2 : 1
    appendGroup(wal, { hardState: { term, vote: 1, commit: wal.lastIndex }, batches: [entries(first, 5, term, 80)] })
  }
  return { disk, wal }
}

function salvaged(disk: SimulatedDisk, index: number, term = 1) {
  const salvage = salvageWal(disk, '/wal', { index, term })
  const texts: string[] = []
  replaySalvage(disk, salvage, { index, term }, (first, count, bytes, start) => {
    texts.push(...textsOf(first, count, bytes, start))
  })
  const { lastIndex, lastTerm, damage: found, lost } = salvage
  return { lastIndex, lastTerm, offset: found?.offset, lost, texts }
}

const fileAt = (wal: Wal, at: number) => wal.files.at(at) as NonNullable<ReturnType<typeof wal.files.at>>
const textsFrom = (first: number, last: number) => batchTexts([entries(first, last - first + 1, 1, 80)])

test('of a log without damage everything behind the snapshot is saved, from any position', () => {
  const { disk, wal } = create()
  const { lastIndex } = wal
  const boundary = fileAt(wal, 1).firstIndex
  for (const index of [1, boundary - 2, boundary - 1, boundary, lastIndex - 1, lastIndex]) {
    expect(salvaged(disk, index), `snapshot of ${index}`).toEqual({
      ...{ lastIndex, lastTerm: 1, offset: undefined, lost: undefined },
      texts: index === lastIndex ? [] : textsFrom(index + 1, lastIndex),
    })
  }
  expect(salvaged(disk, 0, 0)).toMatchObject({ lastIndex, lastTerm: 1, lost: undefined })
})

test('a snapshot of another history saves nothing, and names what is lost as far as it is known', () => {
  const { disk, wal } = create()
  const { lastIndex } = wal
  const nothing = { lastTerm: 9, texts: [], offset: undefined }
  expect(salvaged(disk, lastIndex - 1, 9)).toEqual({
    ...{ ...nothing, lastIndex: lastIndex - 1, lost: { from: lastIndex, through: lastIndex } },
  })
  for (const index of [lastIndex, lastIndex + 1]) {
    expect(salvaged(disk, index, 9)).toEqual({
      ...{ ...nothing, lastIndex: index, lost: { from: index + 1, through: undefined } },
    })
  }
})

test('behind damage in the middle everything is lost, up to the last entry that was seen', () => {
  const { disk, wal } = create()
  const { path, firstIndex } = fileAt(wal, -1)
  damage(disk, path, FILE_HEADER_BYTES + 3, Uint8Array.of(99))
  expect(salvaged(disk, 3)).toEqual({
    ...{ lastIndex: firstIndex - 1, lastTerm: 1, offset: FILE_HEADER_BYTES, texts: textsFrom(4, firstIndex - 1) },
    lost: { from: firstIndex, through: wal.lastIndex },
  })
})

test('damage to entries that the snapshot holds costs none behind it', () => {
  const { disk, wal } = create()
  const { path, firstIndex } = fileAt(wal, -1)
  const content = Buffer.from(contentOf(disk, path))
  const at = content.indexOf(Buffer.from(entries(firstIndex + 1, 1, 1, 80).bytes.subarray(13)))
  damage(disk, path, at, Uint8Array.of(0xee))
  // The damaged group has five entries. Reading resumes with the group behind it.
  for (const held of [firstIndex + 4, firstIndex + 9]) {
    expect(salvaged(disk, held), `snapshot of ${held}`).toMatchObject({
      ...{ lastIndex: wal.lastIndex, lastTerm: 1, lost: undefined, offset: expect.any(Number) },
      texts: textsFrom(held + 1, wal.lastIndex),
    })
  }
  expect(salvaged(disk, firstIndex + 3)).toMatchObject({ lost: { from: firstIndex + 4, through: wal.lastIndex } })
})

test('a gap of one entry behind the snapshot is never skipped', () => {
  const { disk, wal } = create()
  const boundary = fileAt(wal, 1).firstIndex
  disk.unlink(fileAt(wal, 0).path)
  expect(salvaged(disk, boundary - 1)).toMatchObject({ lastIndex: wal.lastIndex, lost: undefined })
  expect(salvaged(disk, boundary - 2)).toEqual({
    ...{ lastIndex: boundary - 2, lastTerm: 1, offset: undefined, texts: [] },
    lost: { from: boundary - 1, through: wal.lastIndex },
  })
})
