/**
 * Reads that a later turn of a serving thread's event loop answers: searches cut into slices (search/search.ts), long
 * lists of segments, and reads of tables that are being changed. Between two turns the thread serves its other sockets,
 * so a deferred read delays another request by the work of one turn at most.
 *
 *   ready: a slice each in turn, first come first served except for ROTATED of them, until the work of the turn is done
 *   resting: the table is being changed; all of them are retried after REST_MS
 */

export const DEFERRED_LIMITS = {
  /** Reads of one thread; beyond: 429. */
  waiting: 1_024,
  /** Searches with a part of their reply in memory take turns; the others wait for one of these to end. */
  rotated: 8,
  /** Tries while a table is being changed, REST_MS apart, and restarts because it was; beyond: 429. */
  triesMax: 256,
} as const
const REST_MS = 1

export type Deferred<T> = {
  readonly runTurn: () => void
  readonly ready: T[]
  resting: T[]
  isScheduled: boolean
}

/** The state of a read after its turn. */
export type TurnOutcome = 'done' | 'again' | 'rest'

/**
 * @param run runs one slice of a read
 * @param mayRun whether the turn has work left
 * @param beginTurn gives a turn its work: for deferred reads, and for the sockets' requests between two turns
 */
export function createDeferred<T>(
  run: (read: T) => TurnOutcome,
  mayRun: () => boolean,
  beginTurn: () => void,
): Deferred<T> {
  const deferred: Deferred<T> = {
    ready: [],
    resting: [],
    isScheduled: false,
    runTurn() {
      deferred.isScheduled = false
      const { ready } = deferred
      beginTurn()
      // At most as many slices as there are reads: frames after their replies may defer more reads.
      for (let n = ready.length; n > 0 && mayRun(); n--) {
        const read = ready.shift() as T
        const outcome = run(read)
        if (outcome === 'again') ready.splice(DEFERRED_LIMITS.rotated - 1, 0, read)
        else if (outcome === 'rest') rest(deferred, read)
      }
      if (ready.length > 0) scheduleTurn(deferred)
      else beginTurn()
    },
  }
  return deferred
}

export function deferredCount({ ready, resting }: Deferred<unknown>): number {
  return ready.length + resting.length
}

/** @param isChanging the read waits for a table, not for its turn */
export function defer<T>(deferred: Deferred<T>, read: T, isChanging: boolean): void {
  if (isChanging) return rest(deferred, read)
  deferred.ready.push(read)
  scheduleTurn(deferred)
}

function rest<T>(deferred: Deferred<T>, read: T): void {
  if (deferred.resting.length === 0) {
    setTimeout(() => {
      deferred.ready.push(...deferred.resting)
      deferred.resting = []
      scheduleTurn(deferred)
    }, REST_MS)
  }
  deferred.resting.push(read)
}

/** Schedules a turn after the sockets of this one. Without deferred reads it only resets the work. */
export function scheduleTurn(deferred: Deferred<unknown>): void {
  if (deferred.isScheduled) return
  deferred.isScheduled = true
  setImmediate(deferred.runTurn)
}
