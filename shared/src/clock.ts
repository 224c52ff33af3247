/** Time as an argument: wall clock for dates, monotonic milliseconds for durations. */
export type Clock = {
  /** Milliseconds since 1970, UTC. May jump. */
  readonly wallMs: () => number
  /** Milliseconds that only go forward. */
  readonly monotonicMs: () => number
}

/** A clock that tests turn by hand. */
export type TurnableClock = Clock & { readonly advance: (ms: number) => void; readonly setWall: (ms: number) => void }

export function turnableClock(startMs: number): TurnableClock {
  let wall = startMs
  let monotonic = 0
  return {
    wallMs: () => wall,
    monotonicMs: () => monotonic,
    advance: (ms) => {
      wall += ms
      monotonic += ms
    },
    setWall: (ms) => {
      wall = ms
    },
  }
}
