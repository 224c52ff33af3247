/** Rules of docs/design/storage.md#data-directory that the log breaks. */
import { type Defect, inFolder, simulated } from './defect.ts'

const by = (profile = 'disk') => simulated('log', profile)
const THREAD_TESTS = { tests: 'engine/src/wal/wal-thread.test.ts' }

export const WAL_DEFECTS: readonly Defect[] = inFolder('engine/src/wal', [
  {
    // A group is reported stored and not synced.
    name: 'wal/ack-before-sync',
    edits: [
      [
        'wal.ts',
        '  syncFile(wal.disk, wal.descriptor, lastFile(wal).path)\n  wal.offset += end\n',
        '  wal.offset += end\n',
      ],
    ],
    foundBy: by(),
  },
  {
    // The commit index does not go with the entries it came with.
    name: 'wal/commit-not-stored',
    edits: [
      [
        'wal.ts',
        '  writeHardState(view, RECORD_HEADER_BYTES, hardState)\n',
        '  writeHardState(view, RECORD_HEADER_BYTES, { ...hardState, commit: wal.mark.index })\n',
      ],
    ],
    foundBy: by(),
  },
  {
    // A group takes the commit index of the hand-over behind it.
    name: 'wal/commit-of-next',
    edits: [
      [
        'wal-thread.ts',
        '  let group = open ?? beginGroup(hardState, token)\n',
        '  let group = open ?? beginGroup(hardState, token)\n  group.hardState = hardState\n',
      ],
    ],
    foundBy: THREAD_TESTS,
  },
  {
    // Behind a refusal the commit index moves on, over entries that were to be replaced. The simulation hardly meets it:
    // a hand-over that replaces entries is refused in the middle, then a vote of the next term and a commit index beyond
    // the replaced entries come in one turn of a full disk.
    name: 'wal/commit-behind-refusal',
    edits: [
      [
        'wal-thread.ts',
        '  if (thread.isRefusing) hardState = { ...hardState, commit: thread.wal.hardState.commit }\n',
        '',
      ],
    ],
    foundBy: THREAD_TESTS,
  },
  {
    // What was handed over before a refusal arrived is stored, although the core has taken it back. As rare: the refused
    // group has no entries, and appends were sent before the refusal arrived.
    name: 'wal/stores-taken-back',
    edits: [['wal-thread.ts', '  if (refusals !== thread.refusals) return open\n', '']],
    foundBy: THREAD_TESTS,
  },
  {
    // A failed sync is tried again, and believed when it succeeds.
    name: 'wal/sync-error-retried',
    edits: [
      [
        'wal.ts',
        '  syncFile(wal.disk, wal.descriptor, lastFile(wal).path)\n  wal.offset += end\n',
        '  try {\n    syncFile(wal.disk, wal.descriptor, lastFile(wal).path)\n  } catch {\n    syncFile(wal.disk, wal.descriptor, lastFile(wal).path)\n  }\n  wal.offset += end\n',
      ],
    ],
    foundBy: by(),
  },
  {
    // The name of a new log file is not synced.
    name: 'wal/no-directory-sync',
    edits: [['wal.ts', '  syncFolder(disk, wal.directory)\n  if (wal.descriptor >= 0)', '  if (wal.descriptor >= 0)']],
    foundBy: by(),
  },
  {
    // Files go that still hold entries behind the snapshot.
    name: 'wal/compacts-too-much',
    edits: [['wal.ts', 'lastIndexOf(wal.files[0]) < floor) {', 'lastIndexOf(wal.files[0]) < floor + 16) {']],
    foundBy: by('snapshot'),
  },
  {
    // What a refused write left stays in front of the next group.
    name: 'wal/refused-write-left',
    edits: [
      [
        'wal.ts',
        'function makeRoom(wal: Wal, group: Group, bytes: number): boolean {\n',
        'function makeRoom(wal: Wal, group: Group, bytes: number): boolean {\n  wal.dirtyBytes = 0\n',
      ],
    ],
    foundBy: by('fulldisk'),
  },
  {
    // Records of a group that was not finished count.
    name: 'wal/torn-accepted',
    edits: [['scan.ts', '    if (!record.isLastOfGroup) continue\n    const fault', '    const fault']],
    foundBy: by(),
  },
  {
    // Damage in the middle is cut off like a torn tail.
    name: 'wal/mid-corruption-truncated',
    edits: [['scan.ts', '    if (record.group === unfinished) return undefined\n', '    return undefined\n']],
    foundBy: by(),
  },
  {
    // Entries that were replaced come back when the log is read.
    name: 'wal/replaced-entries-read',
    edits: [['scan.ts', '    scan.cuts.push({ sequence, firstIndex })\n', '']],
    foundBy: by(),
  },
  {
    // What is left of a torn group is not overwritten.
    name: 'wal/torn-tail-left',
    edits: [
      [
        'open.ts',
        '  if (!isClean || last.tornBytes > 0 || last.bytes < wal.fileBytes) {',
        '  if (last.bytes < wal.fileBytes) {',
      ],
    ],
    foundBy: by(),
  },
])
