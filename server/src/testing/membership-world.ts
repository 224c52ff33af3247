/** Operations on members without a cluster: a shard as the test shows it, the responses of its leader, and a simulated clock. */
import type { Operation, OperationStep, Plan, ShardView } from '@vacancy/shared/contract'
import type { MembershipDeps } from '../cluster/membership-operations.ts'
import type { ShardObservation } from '../cluster/operation-outcome.ts'
import type { OperationType, Run } from '../cluster/operation-types.ts'
import { NOW, observedNode, shardOf } from './observed-nodes.ts'

export const at = (ms: number) => new Date(ms).toISOString()
const IDS = ['n1', 'n2', 'n3']

export type View = { readonly shard: ShardView; readonly observations: ShardObservation['observations'] }

/** All three nodes name the same leader. */
export function led(leader: string, change: Partial<Parameters<typeof observedNode>[0]> = {}): View {
  const observations = IDS.map((id) => observedNode({ ...{ leader, term: leader === 'n1' ? 4 : 5 }, ...change, id }))
  return { shard: shardOf(observations).view, observations }
}

export const demoted = (leader: string, node: string) =>
  led(leader, { voters: IDS.filter((id) => id !== node), learners: [node] })
/** No node leads. */
export function leaderless(): View {
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
export function worldOf(kind: Operation['kind'], node: string, view: View = led('n1')) {
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
export type World = ReturnType<typeof worldOf>

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
    keepPause: async (_operation, _shard, ms) => void world.pauses.push(ms),
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

/** Of one run: only the newest wait advances the clock, because an earlier one was woken. Then the polls of the world happen. */
export async function runWith(
  world: World,
  sleeping: { sleep: (ms: number) => Promise<void> },
  typeOf: (deps: MembershipDeps) => OperationType,
): Promise<World> {
  let waits = 0
  sleeping.sleep = async (ms) => {
    const mine = ++waits
    await new Promise(setImmediate)
    if (mine !== waits) return
    world.now += ms
    const poll = world.polls.shift()
    if (poll === undefined) world.stop.abort()
    else poll()
  }
  await typeOf(depsOf(world)).run(runOf(world))
  return world
}

export const show = (world: World, view: View | undefined) => () => {
  world.view = view
}

/** A poll that advances the clock. */
export const after = (world: World, ms: number) => () => {
  world.now += ms
}
export const stepsOf = (world: World) =>
  world.operation.steps.map(({ id, state, text, evidence }) => `${id} ${state}: ${text}${evidence && `, ${evidence}`}`)
