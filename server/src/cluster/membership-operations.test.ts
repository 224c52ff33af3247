/** Operations on members of a shard: what is sent, which steps are stored, and how an operation ends. The clock is simulated. */

import { CATCH_UP } from '@vacancy/shared'
import type { Operation, OperationStep, Plan, ShardView } from '@vacancy/shared/contract'
import { beforeEach, expect, test, vi } from 'vitest'
import { NodeHttpError } from '../http/node-http.ts'
import { NOW, observedNode, shardOf } from '../testing/observed-nodes.ts'
import { LATE_MS, type MembershipDeps, membershipTypes } from './membership-operations.ts'
import type { ShardObservation } from './operation-outcome.ts'
import type { OperationType, Run } from './operation-types.ts'

const sleeping = vi.hoisted(() => ({ sleep: async (_ms: number): Promise<void> => {} }))
vi.mock('node:timers/promises', () => ({
  setTimeout: (ms: number, _: undefined, { signal }: { signal: AbortSignal }) =>
    signal.aborted ? Promise.reject(signal.reason) : sleeping.sleep(ms),
}))

const at = (ms: number) => new Date(ms).toISOString()
const IDS = ['n1', 'n2', 'n3']

type View = { readonly shard: ShardView; readonly observations: ShardObservation['observations'] }

/** All three nodes name the same leader. */
function led(leader: string, change: Partial<Parameters<typeof observedNode>[0]> = {}): View {
  const observations = IDS.map((id) => observedNode({ ...{ leader, term: leader === 'n1' ? 4 : 5 }, ...change, id }))
  return { shard: shardOf(observations).view, observations }
}

const demoted = (leader: string, node: string) =>
  led(leader, { voters: IDS.filter((id) => id !== node), learners: [node] })
/** No node leads. */
function leaderless(): View {
  const observations = IDS.map((id) => observedNode({ id, leader: '', health: 'active_follower' }))
  return { shard: shardOf(observations).view, observations }
}

type Reply = { readonly status: number; readonly body: string } | Error | 'none'
type Sent = {
  readonly to: string
  readonly path: string
  readonly body: object | undefined
  readonly timeoutMs: number
}

/** A shard, the responses of its leader, and the operation as the runner stores it. */
function worldOf(kind: Operation['kind'], node: string, view: View = led('n1')) {
  const stop = new AbortController()
  const world = {
    now: NOW,
    view: view as View | undefined,
    /** What happens in further polls; the control plane stops after them. */
    polls: [] as (() => void)[],
    replies: [] as Reply[],
    sent: [] as Sent[],
    pauses: [] as number[],
    states: [] as string[],
    notices: [] as string[],
    watching: 0,
    listeners: new Set<(id: string) => void>(),
    apiUrl: 'http://n1:8080' as string | undefined,
    operation: {
      ...{ id: 'op1', kind, shard: 's1', node, title: '', by: 'ana', reason: '', state: 'requested', message: '' },
      ...{ notice: '', createdAt: at(NOW), requestedAt: null, endedAt: null, steps: [], uncertaintyMs: 50 },
      ...{ pauseMs: null, expectedPauseMs: null, answer: '', cancellable: true, undo: null, progress: null },
    } as Operation,
    plan: { basis: { leader: 'n1', term: 4 }, after: { leader: 'n2' } } as unknown as Plan,
    isResumed: false,
    stop,
  }
  return world
}
type World = ReturnType<typeof worldOf>

/** Only the newest wait advances the clock: an earlier one was woken. */
let waits = 0
beforeEach(() => {
  waits = 0
})

function depsOf(world: World): MembershipDeps {
  return {
    observe: () => world.view && { now: world.now, ...world.view },
    onShard: (listener) => {
      world.listeners.add(listener)
      return () => void world.listeners.delete(listener)
    },
    watchClosely: () => {
      world.watching++
      return () => void world.watching--
    },
    address: (shard, id) =>
      world.apiUrl === undefined ? undefined : { id, shard, zone: 'z1', apiUrl: world.apiUrl, tcp: undefined },
    send: async ({ id }, path, body, timeoutMs) => {
      world.sent.push({ to: id, path, body, timeoutMs })
      const reply = world.replies.shift() ?? { status: 200, body: 'transfer in progress' }
      if (reply === 'none') return await new Promise(() => {})
      if (reply instanceof Error) throw reply
      return reply
    },
    keepPause: async (operation, shard, ms) => {
      expect([operation, shard]).toEqual(['op1', 's1'])
      world.pauses.push(ms)
    },
  }
}

function runOf(world: World): Run {
  const change = (fields: Partial<Operation>) => {
    world.operation = { ...world.operation, ...fields }
    const { state, notice } = world.operation
    if (world.states.at(-1) !== state) world.states.push(state)
    if ((world.notices.at(-1) ?? '') !== notice) world.notices.push(notice)
  }
  return {
    operation: () => world.operation,
    plan: world.plan,
    isResumed: world.isResumed,
    signal: world.stop.signal,
    now: () => world.now,
    set: async (fields) => change(fields),
    step: async (id, fields) => {
      const known = world.operation.steps.find((step) => step.id === id)
      const blank: OperationStep = { id, text: '', state: 'waiting', at: null, milliseconds: null, evidence: '' }
      const next = { ...(known ?? blank), ...fields, at: at(world.now) }
      change({ steps: [...world.operation.steps.filter((step) => step !== known), next] })
    },
    end: async (state, message) => change({ state, message, endedAt: at(world.now) }),
  }
}

async function run(world: World): Promise<World> {
  sleeping.sleep = async (ms) => {
    const mine = ++waits
    await new Promise(setImmediate)
    if (mine !== waits) return
    world.now += ms
    const poll = world.polls.shift()
    if (poll === undefined) world.stop.abort()
    else poll()
  }
  const type = membershipTypes(depsOf(world)).get(world.operation.kind) as OperationType
  await type.run(runOf(world))
  expect([world.watching, world.listeners.size]).toEqual([0, 0])
  return world
}

const show = (world: World, view: View | undefined) => () => {
  world.view = view
}
/** A poll that advances the clock. */
const after = (world: World, ms: number) => () => {
  world.now += ms
}
const stepsOf = (world: World) =>
  world.operation.steps.map(({ id, state, text, evidence }) => `${id} ${state}: ${text}${evidence && `, ${evidence}`}`)

test.each([404, 405])('after status %d the path of older engines is tried, without a body', async (status) => {
  const world = worldOf('transfer', 'n/2')
  world.replies = [
    { status, body: 'no such path' },
    { status: 299, body: 'ok' },
  ]
  world.polls = [() => {}]

  await run(world)

  expect(world.sent[1]).toEqual({
    to: 'n1',
    path: '/admin/transfer-leader/n%2F2',
    body: undefined,
    timeoutMs: 10_000,
  })
  expect(stepsOf(world)[1]).toBe('accepted done: Accepted, n1 answered "ok" (usually "transfer in progress")')
})

test('a lost response is not repeated: the nodes show the outcome', async () => {
  const world = worldOf('transfer', 'n2')
  world.replies = [new NodeHttpError('timeout', 'no response within 10 s')]
  world.polls = [() => {}, show(world, led('n2')), show(world, led('n2', { commit: 50_001 }))]

  await run(world)

  expect(world.states).toEqual(['requested', 'verifying', 'done'])
  expect(world.operation.answer).toBe('no response: no response within 10 s')
  expect(stepsOf(world)[1]).toBe('accepted skipped: No response, n1: no response within 10 s')
  expect(world.sent).toHaveLength(1)
})

test('after the 10 minutes an operation stays unconfirmed', async () => {
  const world = worldOf('transfer', 'n2')
  world.polls = [
    show(world, leaderless()),
    after(world, 30_000),
    after(world, LATE_MS - 200),
    show(world, led('n3')),
    show(world, led('n3')),
  ]

  await run(world)

  expect(world.operation.state).toBe('unconfirmed')
  expect(world.polls).toHaveLength(2)
})

const both = (view = led('n1')) => worldOf('transfer-then-demote', 'n1', view)

test('a restart after the demotion was requested does not transfer or demote again', async () => {
  const world = both(led('n2'))
  world.isResumed = true
  world.operation.steps.push({
    ...{ id: 'demote-requested', text: '', state: 'done', at: at(NOW - 1_000), milliseconds: 1, evidence: '' },
  })
  world.polls = [show(world, demoted('n2', 'n1'))]

  await run(world)

  expect(world.sent).toEqual([])
  expect(world.operation).toMatchObject({
    ...{ state: 'done', message: 'n1 is no longer a voter: 2 of 2 voters list n1 as learner' },
  })
})

test('a restart during the transfer observes it, and sends the demotion that was still waiting', async () => {
  const world = both()
  world.isResumed = true
  const waiting = { text: '', at: null, milliseconds: null, evidence: '' }
  world.operation.steps.push({ ...waiting, id: 'demote-requested', state: 'waiting' })
  world.polls = [
    show(world, led('n2', { commit: 50_001 })),
    show(world, led('n2', { commit: 50_002 })),
    show(world, demoted('n2', 'n1')),
  ]

  await run(world)

  expect(world.sent).toMatchObject([{ to: 'n2', path: '/cluster/demote-voter' }])
  expect(world.operation.state).toBe('done')
})

const armed = (lag: number, health = 'active_follower') => {
  const lagging = led('n1', { lags: { n2: [lag, 0] } })
  const nodes = lagging.shard.nodes.map((node) => (node.id === 'n2' ? { ...node, health } : node))
  const view: View = { ...lagging, shard: { ...lagging.shard, nodes } }
  return view
}

test('an armed transfer waits while the lag is not known, 10 minutes at most', async () => {
  const unknown = armed(0)
  const nodes = unknown.shard.nodes.map((node) => ({ ...node, lagEntries: null }))
  const world = worldOf('transfer', 'n2', { ...unknown, shard: { ...unknown.shard, nodes } })
  world.operation = { ...world.operation, state: 'armed' }
  world.polls = [after(world, CATCH_UP.waitMs - 200), () => {}, () => {}]

  await run(world)

  expect(world.operation).toMatchObject({
    ...{ state: 'cancelled', message: 'Not started: n2 did not catch up within 10 minutes.' },
    endedAt: at(NOW + CATCH_UP.waitMs + 200),
  })
  expect(world.sent).toEqual([])
})

test.each<[View, string]>([
  [led('n3'), 'it is n3'],
  [leaderless(), 'there is none'],
])('an armed transfer is cancelled when the leader changes', async (view, text) => {
  const world = worldOf('transfer', 'n2', armed(5_000))
  world.operation = { ...world.operation, state: 'armed' }
  world.polls = [show(world, view), () => {}]

  await run(world)

  expect(world.operation).toMatchObject({
    ...{ state: 'cancelled', message: `Not started: the leader changed, now ${text}. Make a new plan.` },
  })
})
