/** Texts of the audit log. */
import { counted } from '../../lib/format.ts'

export const audit = {
  title: 'Audit',
  lead: 'Every change and every refused attempt, newest first.',
  next: { label: 'Operations', hint: 'steps and outcomes of the changes of the cluster' },
  exportJson: 'Export JSON lines',
  exportCsv: 'Export CSV',
  entries: 'Entries',
  empty: 'No entries yet. Sign-ins, plans, imports and changed settings are recorded here.',
  filtered: 'No entry matches these filters.',
  count: (entries: number) => counted(entries, 'entry', 'entries'),
  older: (entries: string) => `Show older (${entries} more)`,
  filter: 'Filter entries',
  clearFilters: 'Clear filters',
  actor: 'Actor',
  actorExample: 'name',
  action: 'Action',
  actionExample: 'operation.start',
  target: 'Target',
  targetExample: 's3',
  from: 'From (UTC)',
  to: 'To (UTC)',
  dayExample: '2026-11-20',
  dayInvalid: 'Enter a day as 2026-11-20.',
  table: 'Audit entries',
  time: 'Time (UTC)',
  result: 'Result',
  reason: 'Reason',
  address: 'Address',
  anonymous: 'anonymous',
  token: ' (token)',
}

export const verify = {
  start: 'Verify chain',
  again: 'Verify again',
  failed: 'Not verified',
  broken: (entry: number) => `Chain broken at entry ${entry}`,
  brokenHint:
    'This entry was changed, or one before it was removed. Earlier entries are intact. Compare with an export that is stored elsewhere.',
  intact: (entries: number) => `Chain intact: ${counted(entries, 'entry', 'entries')} verified`,
  intactHint: 'Each entry contains the hash of the previous one.',
}

export const entry = {
  title: (entry: number | undefined) => `Entry ${entry}`,
  time: 'Time',
  actor: 'Actor',
  actorText: (name: string, kind: string) => `${name} (${kind})`,
  address: 'Address',
  userAgent: 'Program',
  action: 'Action',
  target: 'Target',
  result: 'Result',
  reason: 'Reason',
  noReason: 'none given',
  detail: 'Detail',
  operation: 'Operation',
  request: 'Request',
  hash: 'Hash',
}
