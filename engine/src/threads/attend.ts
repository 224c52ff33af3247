/** How a thread with an event loop receives from pipes. */

import { type Bell, createReceiver, type Encoding, mayRest, type PipeEnd, rings, rise, waitForRing } from '../pipe.ts'
import { createSpinner, mayTry, noteWait, type Spinner, spin, untilRing } from './spin.ts'

export type Attention = {
  readonly bell: Bell
  /** Each handles what is there, and answers how many messages that were. */
  readonly sources: (() => number)[]
  /**
   * After a message the thread waits for the next one so long on shared memory, which wakes it sooner. Timers, sockets
   * and other ports are late by this much. 0: it does not wait.
   */
  readonly lingerMs: number
  readonly mayLinger: () => boolean
  /** Whether only clients can ring: it may spin for their next requests (spin.ts). */
  readonly maySpin: () => boolean
  /** Ends a round, after all sources: what they had is in one piece now. @returns how much that was */
  readonly settle: () => number
  readonly spinner: Spinner
  /** How long what waits for `settle` may wait for more of it, which is likely to come. */
  readonly gatherMs: () => number
  readonly gathering: Spinner & { endMs: number }
  isAttending: boolean
  /** Rings of the bell when it last looked. */
  heard: number
}

export function createGathering(): Attention['gathering'] {
  return { ...createSpinner(), endMs: 0 }
}

/** Of a thread that waits in its event loop. */
export function atRest(bell: Bell): Attention {
  const never = () => false
  return {
    bell,
    sources: [],
    lingerMs: 0,
    mayLinger: never,
    maySpin: never,
    spinner: createSpinner(),
    gatherMs: () => 0,
    gathering: createGathering(),
    settle: () => 0,
    isAttending: false,
    heard: 0,
  }
}

export function listen<Message>(
  attention: Attention,
  end: PipeEnd,
  encoding: Encoding<Message>,
  handle: (message: Message) => void,
): void {
  const receive = createReceiver(end, encoding)
  const handleAll = (messages: readonly Message[]) => {
    for (const message of messages) handle(message)
  }
  attention.sources.push(() => receive(handleAll))
  end.port.on('message', (first: Message | null) => {
    if (first !== null) receive(handleAll, first)
    attend(attention)
  })
  attend(attention)
}

/** Takes what has come meanwhile, before its event does. */
export function attendNow(attention: Attention): void {
  if (rings(attention.bell) !== attention.heard) attend(attention)
}

/** Has `settle` called soon. */
export function attendSoon(attention: Attention): void {
  if (!attention.isAttending) setImmediate(attend, attention)
}

function attend(attention: Attention): void {
  attention.isAttending = true
  rise(attention.bell)
  try {
    if (!takeAll(attention)) setImmediate(attend, attention)
  } finally {
    attention.isAttending = false
  }
}

/** @returns whether the thread may go back to its event loop */
function takeAll(attention: Attention): boolean {
  const { bell, sources, lingerMs, mayLinger, maySpin, settle, spinner } = attention
  const endMs = performance.now() + lingerMs
  for (;;) {
    const heard = rings(bell)
    attention.heard = heard
    let taken = 0
    for (const take of sources) taken += take()
    if (gather(attention, heard)) continue
    while (settle() > 0) taken++
    const leftMs = endMs - performance.now()
    // To be woken from the event loop takes longer than a turn of it.
    if (leftMs <= 0 && taken > 0 && spinner.trust > 0 && maySpin()) return false
    if (leftMs <= 0 || !mayLinger()) return mayRest(bell, heard)
    if (taken > 0 || (maySpin() && spin(spinner, bell, heard))) continue
    waitForRing(bell, heard, leftMs)
  }
}

/** @returns whether there is more to take before the round is settled */
function gather({ bell, gatherMs, gathering }: Attention, heard: number): boolean {
  const ms = gatherMs()
  if (ms === 0) {
    if (gathering.endMs > 0) noteWait(gathering, true)
    gathering.endMs = 0
    return false
  }
  if (gathering.endMs === 0) {
    if (!mayTry(gathering)) return false
    gathering.endMs = performance.now() + ms
  }
  // What rings may be something else, again and again.
  if (performance.now() <= gathering.endMs && untilRing(bell, heard, gathering.endMs)) return true
  noteWait(gathering, false)
  gathering.endMs = 0
  return false
}
