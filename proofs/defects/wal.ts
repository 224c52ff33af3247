/** Rules of docs/design/storage.md#data-directory that the log breaks. */
import { type Defect, inFolder, simulated } from './defect.ts'

const by = (profile = 'disk') => simulated('driver', profile)
const THREAD_TESTS = { tests: 'engine/src/wal/wal-thread.test.ts' }

const inWal = inFolder('engine/src/wal')

export const WAL_DEFECTS: readonly Defect[] = [
  ...inWal(by(), {
    // A group is reported stored and not synced.
    'wal/ack-before-sync': 'wal.ts: syncFile(wal.disk, wal.descriptor, lastFile(wal).path)\n  wal.offset → wal.offset',
    // The commit index does not go with the entries it came with.
    'wal/commit-not-stored':
      'wal.ts: , RECORD_HEADER_BYTES, hardState → , RECORD_HEADER_BYTES, { ...hardState, commit: wal.mark.index }',
    // A failed sync is tried again, and believed when it succeeds.
    'wal/sync-error-retried':
      'wal.ts: syncFile(wal.disk, wal.descriptor, lastFile(wal).path)\n  wal.offset → try {\n    syncFile(wal.disk, wal.descriptor, lastFile(wal).path)\n  } catch {\n    syncFile(wal.disk, wal.descriptor, lastFile(wal).path)\n  }\n  wal.offset',
    // The name of a new log file is not synced.
    'wal/no-directory-sync': 'wal.ts: syncFolder(disk, wal.directory)\n   → ',
    // Records of a group that was not finished count.
    'wal/torn-accepted': 'scan.ts: if (!record.isLastOfGroup) continue\n     → ',
    // Damage in the middle is cut off like a torn tail.
    'wal/mid-corruption-truncated': 'scan.ts: if (record.group === unfinished)  → ',
    // Entries that were replaced come back when the log is read.
    'wal/replaced-entries-read': 'scan.ts:     scan.cuts.push({ sequence, firstIndex })\n → ',
    // What is left of a torn group is not overwritten.
    'wal/torn-tail-left': 'open.ts: !isClean || last.tornBytes > 0 ||  → ',
  }),
  ...inWal(THREAD_TESTS, {
    // A group takes the commit index of the hand-over behind it.
    'wal/commit-of-next': 'wal-thread.ts: hardState, token)\n → hardState, token)\n  group.hardState = hardState\n',
    // Behind a refusal the commit index moves on, over entries that were to be replaced. The simulation hardly meets it:
    // a hand-over that replaces entries is refused in the middle, then a vote of the next term and a commit index beyond
    // the replaced entries come in one turn of a full disk.
    'wal/commit-behind-refusal':
      'wal-thread.ts:   if (thread.isRefusing) hardState = { ...hardState, commit: thread.wal.hardState.commit }\n → ',
    // What was handed over before a refusal arrived is stored, although the core has taken it back. As rare: the refused
    // group has no entries, and appends were sent before the refusal arrived.
    'wal/stores-taken-back': 'wal-thread.ts:   if (refusals !== thread.refusals) return open\n → ',
  }),
  ...inWal(by('snapshot'), {
    // Files go that still hold entries behind the snapshot.
    'wal/compacts-too-much': 'wal.ts: ) < floor) { → ) < floor + 16) {',
  }),
  ...inWal(by('fulldisk'), {
    // What a refused write left stays in front of the next group.
    'wal/refused-write-left': 'wal.ts: bytes: number): boolean {\n → bytes: number): boolean {\n  wal.dirtyBytes = 0\n',
  }),
]
