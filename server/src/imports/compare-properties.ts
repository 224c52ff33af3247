/**
 * Compares the properties of two stored snapshots. Both files are read as a whole by a process of its own with low
 * priority, one comparison at a time. Snapshots never change, so a result stays valid.
 */

import { problem } from '@vacancy/shared/api/errors'
import type { SnapshotDifferences } from '@vacancy/shared/contract'
import { type Cache, createCache } from '../nodes/cache.ts'
import { compareSnapshots } from './builder.ts'
import { checkFile } from './snapshot-downloads.ts'
import { requireSnapshot, type Snapshots, snapshotPath } from './snapshot-store.ts'

const KEEP_MS = 3_600_000
const KEPT_MAX = 50
/** Comparisons that wait or run. */
const OPEN_MAX = 4
/** Both files of a very large shard are read in far less. */
const COMPARE_MS_MAX = 600_000

export type PropertyComparison = {
  readonly snapshots: Snapshots
  readonly results: Cache<SnapshotDifferences>
  last: Promise<unknown>
  open: number
}

export function createPropertyComparison(snapshots: Snapshots): PropertyComparison {
  const results = createCache<SnapshotDifferences>(snapshots.clock, { keepMs: KEEP_MS, max: KEPT_MAX })
  return { snapshots, results, last: Promise.resolve(), open: 0 }
}

export async function compareProperties(
  comparison: PropertyComparison,
  { a, b }: { readonly a: string; readonly b: string },
): Promise<SnapshotDifferences> {
  const { snapshots, results } = comparison
  const paths = await Promise.all([storedPath(snapshots, a), storedPath(snapshots, b)])
  return await results.get(`${a} ${b}`, () => inTurn(comparison, () => run(snapshots, paths)))
}

async function storedPath(snapshots: Snapshots, id: string): Promise<string> {
  await checkFile(snapshots, await requireSnapshot(snapshots, id))
  return snapshotPath(snapshots, id)
}

/** Starts the work once the comparisons before have ended. */
async function inTurn<T>(comparison: PropertyComparison, work: () => Promise<T>): Promise<T> {
  if (comparison.open >= OPEN_MAX) throw problem('comparison-busy')
  comparison.open += 1
  const result = comparison.last.then(work).finally(() => {
    comparison.open -= 1
  })
  // Its own caller gets the failure; the next comparison starts all the same.
  comparison.last = result.catch(() => undefined)
  return await result
}

async function run(snapshots: Snapshots, [a, b]: readonly [string, string]): Promise<SnapshotDifferences> {
  try {
    return await compareSnapshots(a, b, AbortSignal.timeout(COMPARE_MS_MAX))
  } catch (error) {
    snapshots.log.error({ err: error }, 'comparing snapshots failed')
    throw problem('comparison-failed')
  }
}
