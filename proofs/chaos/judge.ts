/**
 * The checks of a chaos run (docs/design/testing.md#oracles) over the recorded histories of all clients, and statistics
 * of gaps.
 *
 * Reads that are not linearizable are checked by indexes: acknowledged writes of a package are ordered by index, so a
 * read may show the last write it had to include, or a later one. Reads that a write of unknown outcome could affect
 * are not checked.
 *
 * A restore begins another life of the data. Each life is judged by itself, with the writes of its backup.
 */

import { checkHistory, type Operation } from '../sim/history.ts'
import { CONSERVED_ROOMS, type Doubled, isConserved, type Recorded, type Records, type Restore } from './records.ts'

const ROOMS_MAX = 255

export type Judgement = {
  readonly operations: number
  readonly packages: number
  readonly acknowledged: number
  /** Certainly without effect: refused, missing, or in no log. */
  readonly refused: number
  readonly withoutEffect: number
  readonly unknown: number
  readonly reads: number
  readonly staleReadsJudged: number
  readonly repeats: number
  /** Single writes that would explain the history of a package if they were lost or applied twice. */
  readonly lost: number
  readonly doubled: number
  readonly negative: number
  readonly undecided: number
  /** Violations, one line each: packages, indexes, sums, stale reads. */
  readonly violations: readonly string[]
  readonly longestWriteGapMs: number
  readonly longestReadGapMs: number
}

/** Checks a run; clients were active from `from` to `to`, in milliseconds. */
export function judge(records: Records, fromMs: number, toMs: number): Judgement {
  const { repeats, doubled, restores } = records
  const operations = records.operations.toSorted((a, b) => a.calledAt - b.calledAt)
  const violations: string[] = []
  const byKey = Map.groupBy(operations, ({ key }) => key)
  const found = { lost: 0, doubled: 0, undecided: 0, staleReadsJudged: 0 }
  for (const [key, all] of byKey) {
    const lives = livesOf(all, restores)
    for (const own of lives) {
      checkPackage(key, own, found, violations)
      found.staleReadsJudged += checkStaleReads(own, violations)
    }
    // Only the last one ends with a read of all packages.
    if (isConserved(key)) checkSum(key, lives.at(-1) as Recorded[], violations)
  }
  checkIndexes(operations, violations)
  for (const each of doubled) violations.push(textOfDoubled(each))
  const negative = operations.filter(({ value }) => value < 0 || value > ROOMS_MAX)
  for (const each of negative) violations.push(`an impossible value: ${textOf(each)}`)
  for (const each of operations)
    if (each.code.startsWith('unexpected')) violations.push(`${each.code}: ${textOf(each)}`)
  const writes = operations.filter(({ kind }) => kind !== 'read')
  const acknowledged = writes.filter(({ outcome }) => outcome === 'done')
  const reads = operations.filter(({ kind, outcome }) => kind === 'read' && outcome !== 'unknown')
  const count = (outcome: string) => writes.filter((each) => each.outcome === outcome).length
  return {
    operations: operations.length,
    packages: byKey.size,
    acknowledged: acknowledged.length,
    refused: count('refused') + count('missing'),
    withoutEffect: count('none'),
    unknown: count('unknown'),
    reads: reads.length,
    repeats,
    ...found,
    doubled: found.doubled + doubled.length,
    negative: negative.length,
    violations,
    longestWriteGapMs: longestGapOfLives(acknowledged, fromMs, toMs, restores),
    longestReadGapMs: longestGapOfLives(reads, fromMs, toMs, restores),
  }
}

/**
 * What explains the data of each life: its own operations, and the writes that its backup has for certain. Those during
 * the backup, and those under way while all nodes were replaced, may be in a life, or not.
 */
function livesOf(operations: readonly Recorded[], restores: readonly Restore[]): Recorded[][] {
  const lives: Recorded[][] = []
  let own = [...operations]
  for (const { from, to, at } of restores) {
    const earlier = own.filter(({ calledAt }) => calledAt < at)
    lives.push(earlier.map((each) => (each.returnedAt < at ? each : undetermined(each))))
    const kept = earlier.flatMap((each) => {
      if (each.kind === 'read') return []
      if (each.returnedAt < from) return each.outcome === 'done' ? [each] : []
      return each.calledAt < to || each.returnedAt > at ? [undetermined(each)] : []
    })
    own = [...kept, ...own.filter(({ calledAt }) => calledAt >= at)]
  }
  return [...lives, own]
}

function undetermined(operation: Recorded): Recorded {
  return { ...operation, outcome: 'unknown', returnedAt: Infinity, returnedMs: Infinity, index: 0 }
}

/** docs/design/testing.md#oracles: one order explains all results of a package. */
function checkPackage(
  key: number,
  own: readonly Recorded[],
  found: { lost: number; doubled: number; undecided: number },
  violations: string[],
): void {
  const judged = own.filter(({ kind, mode }) => kind !== 'read' || mode === 'linearizable')
  const verdict = checkHistory(judged)
  if (verdict.verdict === 'linearizable') return
  if (verdict.verdict === 'undecided') {
    found.undecided++
    violations.push(`package ${key}: ${judged.length} operations, too many concurrent ones to decide`)
    return
  }
  const culprit = explainBy(judged)
  if (culprit?.what === 'lost') found.lost++
  if (culprit?.what === 'doubled') found.doubled++
  const why = culprit
    ? `${culprit.what}: ${textOf(culprit.operation)}`
    : 'no single lost or duplicate write explains it'
  const stuck = verdict.stuck.map((each) => textOf(each as Recorded)).join('\n  ')
  violations.push(`package ${key} cannot be explained (${why}); stuck before one of\n  ${stuck}`)
}

type Culprit = { readonly what: 'lost' | 'doubled'; readonly operation: Recorded }

/** A write that would explain the history with no effect, or with two. */
function explainBy(judged: readonly Recorded[]): Culprit | undefined {
  const writes = judged.filter(({ kind, outcome }) => kind !== 'read' && outcome === 'done')
  const isExplained = (operations: readonly Operation[]) =>
    checkHistory(operations, { stepsMax: 100_000 }).verdict === 'linearizable'
  for (const operation of writes) {
    if (isExplained(judged.filter((each) => each !== operation))) return { what: 'lost', operation }
  }
  for (const operation of writes) {
    const again: Operation = { ...operation, id: -1, outcome: 'unknown', returnedAt: Number.POSITIVE_INFINITY }
    if (isExplained([...judged, again])) return { what: 'doubled', operation }
  }
  return undefined
}

/** docs/design/testing.md#oracles: the final value is the sum of all changes. */
function checkSum(key: number, own: readonly Recorded[], violations: string[]): void {
  const last = own.at(-1) as Recorded
  if (last.kind !== 'read' || last.outcome !== 'done') return
  let [least, most] = [CONSERVED_ROOMS, CONSERVED_ROOMS]
  for (const { kind, outcome, amount } of own) {
    if (outcome !== 'done' && outcome !== 'unknown') continue
    if (kind === 'increase') most += amount
    if (kind === 'increase' && outcome === 'done') least += amount
    if (kind === 'decrease') least -= amount
    if (kind === 'decrease' && outcome === 'done') most -= amount
  }
  if (last.value >= least && last.value <= most) return
  violations.push(`package ${key} has ${last.value} rooms at the end, not ${least} to ${most}`)
}

/** Indexes are unique, and ordered like sequential writes. */
function checkIndexes(operations: readonly Recorded[], violations: string[]): void {
  const written = operations.filter(({ index }) => index > 0).sort((a, b) => a.index - b.index)
  // A write called after another one returned has a higher index: compare with the earliest call of all later ones.
  let earliestReturn = Number.POSITIVE_INFINITY
  for (let i = written.length - 1; i >= 0; i--) {
    const each = written[i] as Recorded
    if (each.calledAt > earliestReturn)
      violations.push(`index ${each.index} is less than that of an earlier write: ${textOf(each)}`)
    earliestReturn = Math.min(earliestReturn, each.returnedAt)
    if (written[i - 1]?.index === each.index) violations.push(`index ${each.index} was assigned twice: ${textOf(each)}`)
  }
}

/** docs/design/testing.md#oracles @returns the number of checked reads */
function checkStaleReads(own: readonly Recorded[], violations: string[]): number {
  const reads = own.filter(
    ({ kind, mode, outcome }) => kind === 'read' && mode !== 'linearizable' && outcome !== 'unknown',
  )
  if (reads.length === 0) return 0
  const writes = own.filter(({ kind, index }) => kind !== 'read' && index > 0).sort((a, b) => a.index - b.index)
  const doubtful = own.filter(({ kind, outcome }) => kind !== 'read' && outcome === 'unknown')
  const firstDoubt = Math.min(...doubtful.map(({ calledAt }) => calledAt))
  let judged = 0
  for (const each of reads) {
    if (firstDoubt < each.returnedAt) continue
    judged++
    const floor = writes.findLastIndex((write) =>
      each.mode === 'index' ? write.index <= each.bound : write.returnedMs < each.calledMs - each.bound,
    )
    const mayBeMissing =
      floor < 0 || writes.slice(floor).some((write) => write.kind === 'delete' && write.calledAt < each.returnedAt)
    const isKnown =
      each.outcome === 'missing'
        ? mayBeMissing
        : writes
            .slice(Math.max(0, floor))
            .some((write) => write.kind !== 'delete' && write.value === each.value && write.calledAt < each.returnedAt)
    if (!isKnown) violations.push(`a read showed a stale or impossible value: ${textOf(each)}`)
  }
  return judged
}

function longestGapOfLives(
  answered: readonly Recorded[],
  fromMs: number,
  toMs: number,
  restores: readonly Restore[],
): number {
  const begins = [fromMs, ...restores.map(({ servesMs }) => servesMs)]
  const ends = [...restores.map(({ atMs }) => atMs), toMs]
  return Math.max(...begins.map((begin, n) => longestGap(answered, begin, ends[n] as number)))
}

function longestGap(answered: readonly Recorded[], fromMs: number, toMs: number): number {
  const times = answered.map(({ returnedMs }) => returnedMs).filter((ms) => ms >= fromMs && ms <= toMs)
  times.sort((a, b) => a - b)
  let longest = 0
  let before = fromMs
  for (const ms of [...times, toMs]) {
    longest = Math.max(longest, ms - before)
    before = ms
  }
  return Math.round(longest)
}

function textOf(operation: Recorded): string {
  const { client, key, kind, amount, mode, outcome, value, index, calledAt, returnedAt, code, bound } = operation
  const what = `${kind}${amount > 0 ? ` ${amount}` : ''} of package ${key}`
  const times = `${calledAt}–${returnedAt}, ${Math.round(operation.calledMs)}–${Math.round(operation.returnedMs)} ms`
  return `client ${client} ${mode}${bound > 0 ? ` ${bound}` : ''}: ${what} → ${outcome} ${value}${code && ` ${code}`}${index > 0 ? `, index ${index}` : ''} (${times})`
}

function textOfDoubled({ operation, first, second }: Doubled): string {
  return `different results for one request key: ${textOf(operation)}: ${first}, then ${second}`
}
