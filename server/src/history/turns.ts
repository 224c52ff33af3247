/**
 * Writes of a history, one after the other. What still waits for its turn is not added again, since it reads what it
 * writes when it runs: however long the database takes, a caller waits for the write that runs, and for its own.
 *
 * @returns resolves when the work is over, also when it failed
 */
export type Turns = (kind: 'write' | 'prune', work: () => Promise<void>) => Promise<void>

export function createTurns(onFailure: (error: unknown) => void): Turns {
  const waiting = new Map<string, Promise<void>>()
  let last = Promise.resolve()
  return (kind, work) => {
    const joined = waiting.get(kind)
    if (joined) return joined
    const turn = last
      .then(() => {
        waiting.delete(kind)
        return work()
      })
      .catch(onFailure)
    waiting.set(kind, turn)
    last = turn
    return turn
  }
}
