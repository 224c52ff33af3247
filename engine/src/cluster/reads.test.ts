import { turnableClock } from '@vacancy/shared'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { REFUSED } from '../threads/writes.ts'
import {
  createReads,
  type DropReason,
  onApplied,
  onReadDropped,
  onReadState,
  READ_LIMITS,
  type Reads,
  refuseReads,
  requestReads,
  tickReads,
} from './reads.ts'

const HEARTBEAT_MS = 100
const FIRST = 5_000

/** A core that accepts every round and replies when the test requests it. */
function start(options: { refuses?: DropReason } = {}) {
  const clock = turnableClock(0)
  const core = {
    sent: [] as number[],
    refuses: options.refuses,
    applied: 10,
    commit: 10,
    base: 0,
    hasBegun: true,
    answers: new Map<number, { code: number; index: number; sink: number }>(),
  }
  const reads = createReads({
    nowMs: clock.monotonicMs,
    readIndex: (context) => {
      if (core.refuses) return core.refuses
      core.sent.push(context)
      return 'taken'
    },
    applied: () => core.applied,
    commit: () => core.commit,
    indexBase: () => core.base,
    hasBegun: () => core.hasBegun,
    answer: (sink, token, code, index) => {
      expect(core.answers.has(token)).toBe(false)
      core.answers.set(token, { code, index, sink })
    },
    heartbeatMs: HEARTBEAT_MS,
    firstContext: FIRST,
  })
  return { clock, core, reads }
}

const linearizable = (...tokens: number[]) => Float64Array.from(tokens.flatMap((token) => [token, 1, 0]))
const atIndex = (token: number, index: number) => Float64Array.of(token, 0, index)

function applyTo({ reads, core }: ReturnType<typeof start>, index: number): void {
  core.commit = Math.max(core.commit, index)
  core.applied = index
  onApplied(reads)
}

describe('freshness', () => {
  test('is the moment at which the newest round was sent whose index is applied', () => {
    const node = start()
    const { clock, core, reads } = node
    expect(reads.freshMs).toBe(Number.NEGATIVE_INFINITY)

    tickReads(reads)
    clock.advance(30)
    onReadState(reads, FIRST, 10)
    expect(reads.freshMs).toBe(0)

    clock.advance(HEARTBEAT_MS)
    tickReads(reads)
    onReadState(reads, FIRST + 1, 14)
    expect(reads.freshMs).toBe(0)
    applyTo(node, 13)
    expect(reads.freshMs).toBe(0)
    applyTo(node, 14)
    expect(reads.freshMs).toBe(HEARTBEAT_MS + 30)
    expect(core.sent).toEqual([FIRST, FIRST + 1])
  })

  test('never goes back when answers overtake each other', () => {
    const { clock, reads } = start()
    tickReads(reads)
    clock.advance(HEARTBEAT_MS)
    tickReads(reads)

    onReadState(reads, FIRST + 1, 10)
    onReadState(reads, FIRST, 10)

    expect(reads.freshMs).toBe(HEARTBEAT_MS)
  })

  test('a round is sent each heartbeat interval, even without reads; a lost one is dropped', () => {
    const { clock, core, reads } = start()

    for (let ms = 0; ms < 1_000; ms += 20) {
      tickReads(reads)
      clock.advance(20)
    }

    expect(core.sent).toHaveLength(10)
    expect(reads.inFlight.size).toBeLessThanOrEqual(READ_LIMITS.roundsInFlight)
    onReadState(reads, FIRST, 10)
    expect(reads.freshMs).toBe(Number.NEGATIVE_INFINITY)
  })

  test('a node far behind does not collect rounds without end', () => {
    const { clock, core, reads } = start()

    for (let i = 0; i < 200; i++) {
      tickReads(reads)
      const last = core.sent.at(-1) as number
      onReadState(reads, last, 100 + i)
      clock.advance(HEARTBEAT_MS)
    }

    expect(reads.unapplied).toHaveLength(READ_LIMITS.roundsUnapplied)
  })
})

describe('linearizable reads', () => {
  test('of one batch share a round and are answered once its index is applied (RI4, RI5)', () => {
    const node = start()
    const { core, reads } = node

    requestReads(reads, 2, linearizable(1, 2, 3))
    expect(core.sent).toEqual([FIRST])
    onReadState(reads, FIRST, 12)
    applyTo(node, 11)
    expect(core.answers.size).toBe(0)
    applyTo(node, 12)

    expect([...core.answers]).toEqual([1, 2, 3].map((token) => [token, { code: 0, index: 12, sink: 2 }]))
  })

  test('are answered at once by a leader whose round is confirmed at its applied index', () => {
    const { core, reads } = start()

    requestReads(reads, 0, linearizable(1))
    onReadState(reads, FIRST, 10)

    expect(core.answers.get(1)).toEqual({ code: 0, index: 10, sink: 0 })
  })

  test('that come while enough rounds are on their way share the next one', () => {
    const { core, reads } = start()
    for (let token = 0; token < 20; token++) requestReads(reads, 0, linearizable(token))
    expect(core.sent).toHaveLength(READ_LIMITS.roundsInFlight)

    onReadState(reads, FIRST, 10)
    expect(core.sent).toHaveLength(READ_LIMITS.roundsInFlight + 1)
    expect([...core.answers.keys()]).toEqual([0])
    onReadState(reads, FIRST + READ_LIMITS.roundsInFlight, 10)

    const shared = Array.from({ length: 20 - READ_LIMITS.roundsInFlight }, (_, i) => i + READ_LIMITS.roundsInFlight)
    expect([...core.answers.keys()]).toEqual([0, ...shared])
  })

  test('never use a round sent before they arrived', () => {
    const { core, reads } = start()
    tickReads(reads)

    requestReads(reads, 0, linearizable(1))
    onReadState(reads, FIRST, 10)
    expect(core.answers.size).toBe(0)
    onReadState(reads, FIRST + 1, 10)

    expect(core.answers.size).toBe(1)
  })

  test('of a lost round join a later one until they time out', () => {
    const { clock, core, reads } = start()
    requestReads(reads, 0, linearizable(1))

    clock.advance(3 * HEARTBEAT_MS)
    tickReads(reads)
    onReadState(reads, FIRST, 10)
    expect(core.answers.size).toBe(0)
    onReadState(reads, core.sent.at(-1) as number, 10)
    expect(core.answers.get(1)?.code).toBe(0)

    requestReads(reads, 0, linearizable(2))
    clock.advance(READ_LIMITS.linearizableWaitMs)
    tickReads(reads)
    expect(core.answers.get(2)?.code).toBe(REFUSED.noLeader)
    expect(reads.waiting.size).toBe(0)
  })

  test.each([
    ['no-leader', REFUSED.noLeader],
    ['not-leader', REFUSED.noLeader],
    ['overloaded', REFUSED.overloaded],
  ] as const)('are refused when the core reports %s, at once or later (RI6)', (reason, code) => {
    const { core, reads } = start()
    requestReads(reads, 0, linearizable(1))
    onReadDropped(reads, FIRST, reason)
    core.refuses = reason
    requestReads(reads, 0, linearizable(2))

    expect([core.answers.get(1)?.code, core.answers.get(2)?.code]).toEqual([code, code])
    expect(reads.inFlight.size).toBe(0)
  })

  test('with a least index that no entry has are refused', () => {
    const node = start()
    requestReads(node.reads, 0, Float64Array.of(1, 1, 12, 2, 1, 15))
    onReadState(node.reads, FIRST, 12)
    applyTo(node, 12)

    expect([1, 2].map((token) => node.core.answers.get(token)?.code)).toEqual([0, REFUSED.unknownIndex])
  })

  test('an index below the commit index at the request is a bug in the core', () => {
    const { reads } = start()
    requestReads(reads, 0, linearizable(1))

    expect(() => onReadState(reads, FIRST, 9)).toThrow('a read index is not below')
  })
})

describe('reads with a least index', () => {
  test('are answered at once when it is applied, and without a round', () => {
    const { core, reads } = start()

    requestReads(reads, 0, atIndex(1, 10))

    expect(core.answers.get(1)).toEqual({ code: 0, index: 10, sink: 0 })
    expect(core.sent).toEqual([])
  })

  test('are answered in the order of their indexes as entries are applied', () => {
    const node = start()
    for (const [token, index] of [
      [1, 13],
      [2, 11],
      [3, 12],
      [4, 11],
    ] as const) {
      requestReads(node.reads, 0, atIndex(token, index))
    }

    applyTo(node, 11)
    expect([...node.core.answers.keys()]).toEqual([2, 4])
    applyTo(node, 20)

    expect([...node.core.answers.keys()]).toEqual([2, 4, 3, 1])
  })

  test('ask for a round with the next tick, unless they are answered by then', () => {
    const node = start()
    const { clock, core, reads } = node
    tickReads(reads)
    onReadState(reads, FIRST, 10)
    requestReads(reads, 0, atIndex(1, 11))
    applyTo(node, 11)
    clock.advance(HEARTBEAT_MS / 4)
    tickReads(reads)
    expect(core.sent).toEqual([FIRST])

    requestReads(reads, 0, atIndex(2, 12))
    expect(core.sent).toEqual([FIRST])
    tickReads(reads)
    expect(core.sent).toEqual([FIRST, FIRST + 1])
  })

  test('are refused when no entry of the shard has it, as after a restore', () => {
    const node = start()
    const { core, reads } = node
    core.base = 1_000
    requestReads(reads, 0, Float64Array.of(...atIndex(1, 1_012), ...atIndex(2, 1_013), ...linearizable(3)))
    requestReads(reads, 0, atIndex(4, 10))
    expect(core.answers.get(4)).toEqual({ code: 0, index: 1_010, sink: 0 })

    onReadState(reads, FIRST, 12)
    expect(core.answers.size).toBe(1)
    applyTo(node, 12)

    const codes = [1, 2, 3].map((token) => core.answers.get(token)?.code)
    expect(codes).toEqual([0, REFUSED.unknownIndex, 0])
  })

  test('of the former life wait until the life of a restored shard has begun', () => {
    const node = start()
    const { core, reads } = node
    core.hasBegun = false
    requestReads(reads, 0, Float64Array.of(...atIndex(1, 500), ...atIndex(2, 2_000)))
    tickReads(reads)
    onReadState(reads, FIRST, 10)
    applyTo(node, 11)
    expect(core.answers.size).toBe(0)

    core.hasBegun = true
    core.base = 1_000
    applyTo(node, 12)
    expect([1, 2].map((token) => core.answers.get(token)?.code)).toEqual([0, REFUSED.unknownIndex])
  })

  test('are redirected to the leader after 200 ms', () => {
    const { clock, core, reads } = start()
    requestReads(reads, 0, atIndex(1, 11))
    clock.advance(199)
    tickReads(reads)
    expect(core.answers.size).toBe(0)

    clock.advance(1)
    tickReads(reads)

    expect(core.answers.get(1)?.code).toBe(REFUSED.notCaughtUp)
    expect(reads.ordered).toEqual([])
  })
})

test('10,000 reads can wait; one more is refused until some finish', () => {
  const { core, reads } = start()
  for (let token = 0; token < READ_LIMITS.waiting; token++) requestReads(reads, 0, atIndex(token, 11))
  expect(core.answers.size).toBe(0)

  requestReads(reads, 0, linearizable(READ_LIMITS.waiting))
  expect(core.answers.get(READ_LIMITS.waiting)?.code).toBe(REFUSED.overloaded)
  core.applied = 11
  onApplied(reads)
  requestReads(reads, 0, linearizable(READ_LIMITS.waiting + 1))

  expect(core.answers.size).toBe(READ_LIMITS.waiting + 1)
})

test('a node that stops answers all waiting reads', () => {
  const { core, reads } = start()
  requestReads(reads, 0, linearizable(1))
  requestReads(reads, 1, atIndex(2, 11))

  refuseReads(reads, REFUSED.notServing)
  onReadState(reads, FIRST, 10)
  onApplied(reads)

  expect([...core.answers.values()].map(({ code }) => code)).toEqual([REFUSED.notServing, REFUSED.notServing])
})

/** The rule for a read: all entries acknowledged before it arrived are applied when it is served. */
type Step =
  | { readonly do: 'write' }
  | { readonly do: 'read'; readonly isLinearizable: boolean; readonly ahead: number }
  | { readonly do: 'confirm' | 'drop' | 'lose'; readonly which: number }
  | { readonly do: 'apply' }
  | { readonly do: 'wait'; readonly ms: number }

const steps = fc.array(
  fc.oneof<fc.Arbitrary<Step>[]>(
    fc.constant({ do: 'write' }),
    fc.record({ do: fc.constant('read' as const), isLinearizable: fc.boolean(), ahead: fc.nat(3) }),
    fc.record({ do: fc.constantFrom('confirm' as const, 'drop' as const, 'lose' as const), which: fc.nat(5) }),
    fc.constant({ do: 'apply' }),
    fc.record({ do: fc.constant('wait' as const), ms: fc.nat(400) }),
  ),
  { maxLength: 120 },
)

/** Runs the steps against a shard whose leader has acknowledged `acknowledged`. @returns what went wrong */
function run(script: readonly Step[]): string[] {
  const faults: string[] = []
  const clock = turnableClock(0)
  let acknowledged = 1
  let applied = 1
  let token = 0
  const promised = new Map<number, number>()
  /** Of each read the least index, and the greatest one that anybody knew when it came. */
  const known = new Map<number, { readonly minIndex: number; readonly acknowledged: number }>()
  const history: { readonly ms: number; readonly acknowledged: number }[] = []
  let rounds: { readonly context: number; readonly from: number }[] = []
  const reads: Reads = createReads({
    nowMs: clock.monotonicMs,
    readIndex: (context) => {
      rounds.push({ context, from: acknowledged })
      return 'taken'
    },
    applied: () => applied,
    commit: () => applied,
    indexBase: () => 0,
    hasBegun: () => true,
    answer: (_sink, of, code) => {
      const least = promised.get(of)
      if (least === undefined) faults.push(`read ${of} is answered twice`)
      promised.delete(of)
      const { minIndex, acknowledged: told } = known.get(of) ?? { minIndex: 0, acknowledged: 0 }
      if (code === REFUSED.unknownIndex && minIndex <= told)
        faults.push(`read ${of} is refused, but ${minIndex} exists`)
      if (code === 0 && applied < (least ?? 0)) faults.push(`read ${of} is served at ${applied}, below ${least}`)
    },
    heartbeatMs: HEARTBEAT_MS,
    firstContext: 0,
  })
  for (const step of script) {
    if (step.do === 'write') acknowledged++
    else if (step.do === 'apply') {
      applied = Math.min(acknowledged, applied + 1)
      onApplied(reads)
    } else if (step.do === 'wait') {
      clock.advance(step.ms)
      tickReads(reads)
    } else if (step.do === 'read') {
      const minIndex = step.ahead === 0 ? 0 : applied + step.ahead
      promised.set(++token, Math.max(minIndex, step.isLinearizable ? acknowledged : 0))
      known.set(token, { minIndex, acknowledged })
      requestReads(reads, 0, Float64Array.of(token, step.isLinearizable ? 1 : 0, minIndex))
    } else if (rounds.length > 0) {
      const round = rounds[step.which % rounds.length] as (typeof rounds)[number]
      rounds = rounds.filter((other) => other !== round)
      if (step.do === 'confirm') onReadState(reads, round.context, acknowledged)
      else if (step.do === 'drop') onReadDropped(reads, round.context, 'no-leader')
    }
    history.push({ ms: clock.monotonicMs(), acknowledged })
    const before = history.filter(({ ms }) => ms < reads.freshMs).at(-1)?.acknowledged ?? 0
    if (applied < before) faults.push(`fresh at ${reads.freshMs}, but ${before} is not applied`)
  }
  clock.advance(READ_LIMITS.linearizableWaitMs)
  tickReads(reads)
  if (promised.size > 0) faults.push(`${promised.size} reads have no answer`)
  return faults
}

test('under loss, delay and drops each read is answered once, and not before the writes it must see', () => {
  fc.assert(
    fc.property(steps, (script) => {
      expect(run(script)).toEqual([])
    }),
    { numRuns: 500 },
  )
})

test('a read waits until its index is applied', () => {
  const script: Step[] = [{ do: 'write' }, { do: 'read', isLinearizable: true, ahead: 0 }, { do: 'confirm', which: 0 }]

  expect(run(script)).toEqual([])
})
