import { expect, test } from 'vitest'
import { ENTRY_HEADER_BYTES, ENTRY_KIND, viewOf, writeEntryHeader, writeU64 } from '../raft/entry.ts'
import { entries } from '../testing/log-fixture.ts'
import {
  ENTRIES_HEADER_BYTES,
  HARD_STATE_BYTES,
  IDENTITY_BYTES,
  readHardState,
  readIdentity,
  readSnapshotMark,
  SNAPSHOT_MARK_BYTES,
  summarizeEntries,
  writeHardState,
  writeSnapshotMark,
} from './payload.ts'

/** A number that JavaScript cannot hold exactly. */
const TOO_LARGE = 0xffffffff

test('a payload with a wrong length or invalid numbers is not a hard state, mark or identity', () => {
  const view = viewOf(new Uint8Array(64))
  writeHardState(view, 0, { term: 3, vote: 2, commit: 9 })
  expect(readHardState(view, 0, HARD_STATE_BYTES)).toEqual({ term: 3, vote: 2, commit: 9 })
  expect(readHardState(view, 0, HARD_STATE_BYTES - 1)).toBeUndefined()
  for (const at of [0, 8, 16]) {
    writeHardState(view, 0, { term: 3, vote: 2, commit: 9 })
    view.setUint32(at + 4, TOO_LARGE, true)
    expect(readHardState(view, 0, HARD_STATE_BYTES), `at ${at}`).toBeUndefined()
  }
  writeSnapshotMark(view, 0, { index: 9, term: 3 })
  expect(readSnapshotMark(view, 0, SNAPSHOT_MARK_BYTES)).toEqual({ index: 9, term: 3 })
  expect(readSnapshotMark(view, 0, SNAPSHOT_MARK_BYTES + 8)).toBeUndefined()
  for (const at of [0, 8]) {
    writeSnapshotMark(view, 0, { index: 9, term: 3 })
    view.setUint32(at + 4, TOO_LARGE, true)
    expect(readSnapshotMark(view, 0, SNAPSHOT_MARK_BYTES), `at ${at}`).toBeUndefined()
  }
  expect(readIdentity(new Uint8Array(64), 0, IDENTITY_BYTES - 1)).toBeUndefined()
})

/** Entries 7 … as a payload. */
function payloadOf(count: number, term = 2): { bytes: Uint8Array; view: DataView } {
  const batch = entries(7, count, term)
  const bytes = new Uint8Array(ENTRIES_HEADER_BYTES + batch.bytes.length)
  const view = viewOf(bytes)
  writeU64(view, 0, 7)
  view.setUint32(8, count, true)
  bytes.set(batch.bytes, ENTRIES_HEADER_BYTES)
  return { bytes, view }
}

test('entries have valid terms and kinds, and fill their payload', () => {
  const { bytes, view } = payloadOf(3)
  const second = ENTRIES_HEADER_BYTES + ENTRY_HEADER_BYTES + 8
  const wrong = (change: (view: DataView) => void, length = bytes.length) => {
    const copy = bytes.slice()
    change(viewOf(copy))
    return summarizeEntries(viewOf(copy), 0, length)
  }
  expect(summarizeEntries(view, 0, bytes.length)).toEqual({
    firstIndex: 7,
    lastIndex: 9,
    runs: [{ term: 2, firstIndex: 7 }],
    configurations: [],
  })
  expect(wrong((of) => writeEntryHeader(of, second, 4, ENTRY_KIND.configuration, 8))).toBeUndefined()
  expect(
    wrong((of) => {
      writeEntryHeader(of, second, 4, ENTRY_KIND.configuration, 8)
      writeEntryHeader(of, second + ENTRY_HEADER_BYTES + 8, 4, ENTRY_KIND.command, 8)
    }),
  ).toMatchObject({
    runs: [
      { term: 2, firstIndex: 7 },
      { term: 4, firstIndex: 8 },
    ],
    configurations: [8],
  })
  const faults: { readonly [name: string]: ReturnType<typeof wrong> } = {
    'shorter than its header': wrong(() => undefined, ENTRIES_HEADER_BYTES - 1),
    'an index before the first': wrong((of) => writeU64(of, 0, 0)),
    'no entries': wrong((of) => of.setUint32(8, 0, true)),
    'more entries than there are': wrong((of) => of.setUint32(8, 4, true)),
    'fewer entries than there are': wrong((of) => of.setUint32(8, 2, true)),
    'a term that goes back': wrong((of) => writeEntryHeader(of, second, 1, ENTRY_KIND.command, 8)),
    'no term': wrong((of) => writeEntryHeader(of, ENTRIES_HEADER_BYTES, 0, ENTRY_KIND.command, 8)),
    'an invalid kind': wrong((of) => writeEntryHeader(of, second, 2, 9 as never, 8)),
  }
  for (const [name, found] of Object.entries(faults)) expect(found, name).toBeUndefined()
})
