/** What a run of the model met. Each class must occur over the seeds of a run: otherwise a fault is no longer tried. */

/** Counted by production code. */
export const PRODUCTION_CLASSES = [
  'retries',
  'hedges',
  'hedgesWon',
  'hedgesFailed',
  'redirects',
  'timeouts',
  'networkErrors',
  'strayReplies',
  'resyncs',
  'clientErrors',
  'keepalivesSent',
  'flagMismatches',
  'unknownSegments',
] as const

export const CLASSES = [
  // Requests and what became of them.
  ...['requests', 'reads', 'writes', 'writes with a key', 'long requests', 'executed writes', 'repeats of a key'],
  ...['success', 'refused by text', '404', '408', '429', '500', '503', 'unanswered: connection gone'],
  // Connections.
  ...['wire cut', 'wire stalled', 'chunk split', 'connect refused', 'connect timed out', 'bytes lost at a close'],
  ...['buffer full', 'reading paused'],
  // Clients.
  ...['client leaves', 'client half-closes', 'rubbish', 'too much rubbish', 'frame skipped', 'frame far too large'],
  ...['frame never finished', 'lengths that do not add up', 'slow reader', 'slow reader closed', 'keepalive'],
  ...['unknown segment', 'bare frame to a router', 'unknown command', 'wrong write flag'],
  // Nodes.
  ...['node 308', 'node 405', 'node 408 executed', 'node 408 not executed', 'node 429', 'node 500 executed'],
  ...['node 500 not executed', 'node 503', 'node silent', 'node late', 'node replies out of order'],
  ...['node wrong id', 'node replies twice', 'node rubbish', 'node reply too large', 'node dies before execution'],
  ...['node dies after execution', 'leader change', 'no leader', 'write of an old leader'],
  // Components.
  ...['router killed', 'bridge killed', 'node killed', 'machine gone', 'process stalled', 'router drained'],
  ...['bridge drained', 'restart', 'new address', 'becomes foreign', 'becomes ours'],
  // Tables, resolver, discovery.
  ...['segment moved', 'hop list changed', 'recheck', 'recheck too slow', 'no table yet', 'resolver fails'],
  ...['resolver leads to the edge itself', 'resolver leads to another shard', 'resolver is late'],
  ...['stale leader', 'discovery round'],
  // Foreign components.
  ...['foreign request', 'foreign 404', 'foreign 503 not executed', 'foreign 503 executed', 'foreign closes'],
  ...['foreign mute'],
  ...PRODUCTION_CLASSES,
] as const

export type Class = (typeof CLASSES)[number]
export type Counts = Map<string, number>

export function count(counts: Counts, name: Class, by = 1): void {
  counts.set(name, (counts.get(name) ?? 0) + by)
}

export function addCounts(to: Counts, from: Counts): void {
  for (const [name, by] of from) to.set(name, (to.get(name) ?? 0) + by)
}

export function missingClasses(counts: Counts): readonly string[] {
  return CLASSES.filter((name) => !counts.get(name))
}
