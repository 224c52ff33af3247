/**
 * Existing components beside ours: they serve one request at a time, close their connection on errors, write the
 * malformed ERROR, and know no `__status__`.
 */

import { chance, pick, type Random } from '@vacancy/testkit/random'
import { count } from './counts.ts'
import { type End, type EndEvents, later, type Process } from './net.ts'
import { execute, type Law, listFrame, malformedFrame, numberOf, opOf, successFrame, takeFrames, trace } from './ops.ts'
import type { Shard } from './shard.ts'

export type Foreign = {
  readonly kind: 'router' | 'bridge'
  readonly process: Process
  readonly law: Law
  readonly random: Random
  readonly faultP: number
  /** The shard that serves a segment; undefined = 404. */
  readonly shardOf: (segment: string) => Shard | undefined
  /** It closes the connection on which `__status__` arrives. */
  readonly isMute: boolean
}

type Serving = { readonly end: End; readonly queue: { frame: Buffer; inner: number }[]; isBusy: boolean }

export function acceptForeign(foreign: Foreign, end: End): EndEvents {
  const serving: Serving = { end, queue: [], isBusy: false }
  const stream = { bytes: Buffer.alloc(0) }
  return {
    data(chunk) {
      takeFrames(stream, chunk, (frame, inner) => serving.queue.push({ frame: Buffer.from(frame), inner }))
      next(foreign, serving)
    },
    closed: () => {},
  }
}

function next(foreign: Foreign, serving: Serving): void {
  if (serving.isBusy || serving.end.isClosed) return
  const first = serving.queue.shift()
  if (first === undefined) return
  serving.isBusy = true
  later(foreign.process, 200 + foreign.random.below(1_500), () => {
    serving.isBusy = false
    if (serving.end.isClosed) return
    const reply = serve(foreign, serving, first.frame, first.inner)
    if (reply) serving.end.write(reply)
    next(foreign, serving)
  })
}

const FATES = ['closes before', 'closes after', '503 before', '503 after', '404', 'silent'] as const

function serve(foreign: Foreign, serving: Serving, frame: Buffer, inner: number): Buffer | undefined {
  const { law, random, kind, process } = foreign
  const { counts } = law
  const id = frame.readUInt32LE(inner + 1)
  const segment = frame.toString('latin1', 6, 6 + (frame[5] as number))
  const close = () => {
    count(counts, 'foreign closes')
    serving.end.destroySoon()
    return undefined
  }
  if (segment === '__keepalive__') return undefined
  if (segment === '__status__') {
    if (foreign.isMute) {
      count(counts, 'foreign mute')
      return close()
    }
    return kind === 'router' ? malformedFrame(id, '404') : listFrame(id)
  }
  const op = opOf(law, numberOf(frame, inner))
  const shard = foreign.shardOf(segment)
  count(counts, 'foreign request')
  if (shard === undefined) {
    count(counts, 'foreign 404')
    return malformedFrame(id, '404')
  }
  op.arrivals++
  trace(law, op, `existing ${kind} ${process.name} gets it`)
  const fate = !process.net.isHealed && chance(random, foreign.faultP) ? pick(random, FATES) : 'success'
  if (fate === 'closes before') return close()
  if (fate === '404' || fate === '503 before') {
    count(counts, fate === '404' ? 'foreign 404' : 'foreign 503 not executed')
    return malformedFrame(id, fate.slice(0, 3))
  }
  if (fate === 'silent' && !op.isWrite) return undefined
  // Without a leader it answers 500 and closes.
  if (op.isWrite && shard.leader === undefined) {
    serving.end.write(malformedFrame(id, '500'))
    return close()
  }
  if (fate === '503 after') {
    count(counts, 'foreign 503 executed')
    op.isInDoubt = true
  }
  execute(law, op)
  if (fate === 'closes after') return close()
  return fate === '503 after' ? malformedFrame(id, '503') : fate === 'silent' ? undefined : successFrame(id, op, 0)
}
