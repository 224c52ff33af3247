/** Meaning and action of each exit code, shared by the log, `--help` and docs/reasons.md. */

import type { EXIT } from '@vacancy/shared'

export type ExitRow = {
  readonly means: string
  readonly lookAt: string
  /** Command to run. */
  readonly type: string
  /** Whether a supervisor starts it again; `member`: only a member of a shard. Otherwise the next start ends in the same way. */
  readonly restart: boolean | 'member'
}

export const EXIT_CODES = {
  ok: {
    means: 'The process received a stop request, finished the requests in flight and wrote all data to disk.',
    lookAt: 'Nothing: a restart continues where it ended.',
    type: 'vacancy run --config FILE --codecs FILE',
    restart: false,
  },
  failure: {
    means: 'An error without its own code.',
    lookAt: 'The last lines of the log; acknowledged writes are on disk.',
    type: 'vacancy run --config FILE --codecs FILE --log-level debug',
    restart: true,
  },
  usage: {
    means:
      'A flag, the configuration, the codec list, an auth file or a certificate is wrong, or a compiled kernel is missing. No data was opened.',
    lookAt: 'The lines on stderr: one per error, with file, key, value and range.',
    type: 'vacancy run --help',
    restart: false,
  },
  conflict: {
    means:
      'The data does not belong to this start: another shard, another codec list, a folder in use, or bad data to import.',
    lookAt: 'The line on stderr: it names the folder or file, the found and the expected value.',
    type: 'vacancy inspect DATA_DIR',
    restart: false,
  },
  bind: {
    means: 'A port cannot be opened: another process has it, or the address does not belong to this machine.',
    lookAt: 'The address in the line on stderr, and the process that listens there.',
    type: 'ss -ltnp',
    restart: true,
  },
  write: {
    means: 'A write or a sync of the disk failed. Unsynced data is not trusted, so the process ended at once.',
    lookAt: 'The kernel log for errors of the disk; the file named on stderr. Acknowledged writes were synced before.',
    type: 'dmesg | tail; vacancy inspect DATA_DIR',
    restart: true,
  },
  corruption: {
    means:
      'A file in the data folder is damaged, beyond the unfinished last group that a power loss leaves. No file was changed.',
    lookAt: 'First, what is affected. A snapshot or another copy of the shard may be intact.',
    type: 'vacancy inspect DATA_DIR; vacancy export DATA_DIR; vacancy run --accept-loss (reports the loss)',
    restart: false,
  },
  assertion: {
    means: 'A bug in the program: an invariant was broken. The process ended before it could do harm.',
    lookAt: 'The stack on stderr, for a report; a restart recovers from disk.',
    type: 'vacancy run --config FILE --codecs FILE',
    restart: true,
  },
  digest: {
    means: 'The state in memory differs from the state that the log yields: a fault in memory or in the program.',
    lookAt:
      'The line with both digests and the index; keep the data folder for a report, and test the memory of the machine.',
    type: 'Member of a shard: start it again, it gets the state from its peers. Standalone node: restore a backup, or vacancy run --accept-loss',
    restart: 'member',
  },
  memory: {
    means: 'The memory of the node cannot hold the committed data of its shard. No data was lost.',
    lookAt:
      'The line on stderr: the memory needed, the memory in use and the limit. A restart loads the data without gaps.',
    type: 'vacancy run --config FILE --codecs FILE (with a larger memory_max_bytes if it ends again)',
    restart: true,
  },
  coresChanged: {
    means:
      'The number of cores changed while the node ran. It shut down gracefully, because the number of threads is set at the start.',
    lookAt: 'Both numbers in the log. On machines whose number of cores changes on purpose: cpu_watch: false.',
    type: 'vacancy run --config FILE --codecs FILE',
    restart: true,
  },
} as const satisfies Record<keyof typeof EXIT, ExitRow>
