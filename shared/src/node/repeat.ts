/**
 * Like `setInterval`, with a pause that is asked for each time: a program with nothing to do wakes up less often.
 *
 * @returns stops it
 */
export function repeat(work: () => void, pauseMs: () => number): () => void {
  let timer: NodeJS.Timeout
  const next = () => {
    timer = setTimeout(turn, pauseMs())
  }
  const turn = () => {
    // An error of the work reaches the process, and the next turn comes all the same.
    next()
    work()
  }
  next()
  return () => clearTimeout(timer)
}
