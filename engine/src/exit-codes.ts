/** What each exit code means and what to do about it, in one place for the log, `--help` and docs/reasons.md. */

import type { EXIT } from '@vacancy/shared'

export type ExitRow = {
  readonly means: string
  readonly lookAt: string
  /** What to type. */
  readonly type: string
}

export const EXIT_CODES = {
  ok: {
    means: 'The process was asked to stop, finished what was in flight and wrote everything to disk.',
    lookAt: 'Nothing: a restart continues where it ended.',
    type: 'vacancy run --config FILE --codecs FILE',
  },
  failure: {
    means: 'Something failed that has no code of its own.',
    lookAt: 'The last lines of the log; what was acknowledged is on disk.',
    type: 'vacancy run --config FILE --codecs FILE --log-level debug',
  },
  usage: {
    means: 'A flag, the configuration, the codec list, an auth file or a certificate is wrong. Nothing was opened.',
    lookAt: 'The lines on stderr: one a fault, with file, key, value and range.',
    type: 'vacancy run --help',
  },
  conflict: {
    means:
      'The data does not belong to this start: another shard, another codec list, a folder in use, or bad data to import.',
    lookAt: 'The line on stderr: it names the folder or file, what was found and what was wanted.',
    type: 'vacancy inspect DATA_DIR',
  },
  bind: {
    means: 'A port cannot be opened: another process has it, or the address is not of this machine.',
    lookAt: 'The address in the line on stderr, and who listens there.',
    type: 'ss -ltnp',
  },
  write: {
    means: 'A write or a sync of the disk failed. What was not synced is not trusted, so the process ended at once.',
    lookAt: 'The kernel log for errors of the disk; the file named on stderr. Acknowledged writes were synced before.',
    type: 'dmesg | tail; vacancy inspect DATA_DIR',
  },
  corruption: {
    means:
      'A file in the data folder is damaged, beyond the unfinished last group that a power loss leaves. Nothing was changed.',
    lookAt: 'What is affected, before anything else; a snapshot or another copy of the shard may be whole.',
    type: 'vacancy inspect DATA_DIR; vacancy export DATA_DIR; vacancy run --accept-loss (says what is lost)',
  },
  assertion: {
    means: 'A fault in the program: something that must hold did not. It ended before it could do harm.',
    lookAt: 'The stack on stderr, for a report; a restart recovers from disk.',
    type: 'vacancy run --config FILE --codecs FILE',
  },
  digest: {
    means: 'The state in memory is not the one that the log stands for: a fault in memory or in the program.',
    lookAt:
      'The line with both digests and the index; keep the data folder for a report, and test the memory of the machine.',
    type: 'vacancy inspect DATA_DIR; vacancy run --config FILE --codecs FILE (loads from disk again)',
  },
  coresChanged: {
    means:
      'The number of cores changed while the node ran. It stopped in an orderly way; threads are laid out at the start.',
    lookAt: 'Both numbers in the log. On machines that change cores at will: cpu_watch: false.',
    type: 'vacancy run --config FILE --codecs FILE',
  },
} as const satisfies Record<keyof typeof EXIT, ExitRow>
