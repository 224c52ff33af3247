/** Operations on members of a shard: what is sent, which steps are stored, and how an operation ends. The clock is simulated. */

import { CATCH_UP } from '@vacancy/shared'
import type { Operation, OperationStep, Plan, ShardView } from '@vacancy/shared/contract'
import { beforeEach, expect, test, vi } from 'vitest'
import { NOW, observedNode, shardOf } from '../testing/observed-nodes.ts'
import { LATE_MS, type MembershipDeps, membershipTypes } from './membership.ts'
import { NodeHttpError } from './node-http.ts'
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
const learner = demoted('n1', 'n3')

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

// Transfer

test('a transfer is sent once to the leader, and done when the nodes confirm it', async () => {
  const world = worldOf('transfer', 'n2')
  world.polls = [show(world, led('n2', { commit: 50_001 })), show(world, led('n2', { commit: 50_002 }))]

  await run(world)

  expect(world.sent).toEqual([
    { to: 'n1', path: '/cluster/transfer-leader', body: { target_node_id: 'n2' }, timeoutMs: 10_000 },
  ])
  expect(world.states).toEqual(['requested', 'accepted', 'verifying', 'done'])
  expect(world.operation).toMatchObject({
    ...{ message: 'n2 leads s1', answer: '200 transfer in progress', cancellable: false, requestedAt: at(NOW) },
    ...{ undo: { kind: 'transfer', shard: 's1', node: 'n1' }, pauseMs: 200, endedAt: at(NOW + 400) },
  })
  expect(world.pauses).toEqual([200])
  expect(stepsOf(world)).toEqual([
    'requested done: Requested',
    'accepted done: Accepted, n1 answered "transfer in progress"',
    'stepped-down done: n1 stepped down, n1 is active_follower',
    'leads done: n2 leads, 3 of 3 voters name n2, term 4 → 5',
    'writes done: Writes confirmed, commit index 50001 → 50002 under n2',
  ])
})

test('an idle shard is confirmed without writes, and a pause that was not observed is not stored', async () => {
  const world = worldOf('transfer', 'n2', leaderless())
  world.polls = [show(world, led('n2')), ...Array.from({ length: 6 }, () => () => {})]

  await run(world)

  expect(world.operation).toMatchObject({ state: 'done', pauseMs: null, endedAt: at(NOW + 1_200) })
  expect(world.pauses).toEqual([])
  expect(stepsOf(world).at(-1)).toBe('writes done: No writes to confirm, no writes to confirm')
})

test('without a leader at the time of the plan there is nothing to undo', async () => {
  const world = worldOf('transfer', 'n2')
  world.plan = { basis: { leader: null, term: null }, after: { leader: 'n2' } } as unknown as Plan
  world.view = led('n2')
  world.polls = [show(world, led('n2', { commit: 50_001 }))]

  await run(world)

  expect(world.operation).toMatchObject({ state: 'done', undo: null })
})

test('the pause begins when the request was sent, if the old leader was observed earlier', async () => {
  const world = worldOf('transfer', 'n2', led('n1', { at: NOW - 5_000 }))
  world.polls = [show(world, led('n2', { commit: 50_001 })), show(world, led('n2', { commit: 50_002 }))]

  await run(world)

  expect(world.operation.pauseMs).toBe(200)
})

test('a leadership that went elsewhere ends the transfer', async () => {
  const world = worldOf('transfer', 'n2')
  world.polls = [show(world, led('n3'))]

  await run(world)

  expect(world.operation).toMatchObject({
    ...{ state: 'elsewhere', message: 'Leadership went to n3, not n2', undo: null },
  })
})

// The response

test.each<[string, Reply[], string, string, string]>([
  [
    'refused with a code',
    [{ status: 409, body: '{"error":"n2 is a learner"}' }],
    'n1 answered 409: ',
    'n2 is a learner',
    'Refused',
  ],
  ['refused with a text', [{ status: 500, body: ' broken \n' }], 'n1 answered 500: ', 'broken', 'Refused'],
  ['with an object', [{ status: 400, body: '{"error":5}' }], 'n1 answered 400: ', '{"error":5}', 'Refused'],
  ['redirected', [{ status: 302, body: '' }], 'n1 answered 302: ', '', 'Refused'],
  ['too early', [{ status: 199, body: '' }], 'n1 answered 199: ', '', 'Refused'],
  ['long', [{ status: 500, body: 'x'.repeat(501) }], 'n1 answered 500: ', 'x'.repeat(500), 'Refused'],
  [
    'for an unknown node',
    [{ status: 404, body: 'unknown node n9' }],
    'n1 answered 404: ',
    'unknown node n9',
    'Refused',
  ],
  ['of a standalone node', [{ status: 405, body: 'standalone' }], 'n1 answered 405: ', 'standalone', 'Refused'],
])('a response that is %s ends the operation', async (_, replies, start, text, step) => {
  const world = worldOf('transfer', 'n2')
  world.replies = [...replies]
  world.polls = [() => {}]

  await run(world)

  expect(world.operation).toMatchObject({ state: 'refused', message: start + text })
  expect(world.operation.answer).toBe(`${start.slice('n1 answered '.length, -2)} ${text}`)
  expect(stepsOf(world)).toEqual(['requested done: Requested', `accepted failed: ${step}, ${start}${text}`])
  expect(world.sent).toHaveLength(1)
})

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

test.each(['refused', 'name-not-found', 'unreachable', 'address'])(
  'after the error %s nothing was sent',
  async (code) => {
    const world = worldOf('transfer', 'n2')
    world.replies = [new NodeHttpError(code, 'connection refused')]
    world.polls = [() => {}]

    await run(world)

    expect(world.operation).toMatchObject({
      ...{ state: 'refused', message: 'n1 is unreachable: connection refused. Nothing was sent.' },
    })
    expect(stepsOf(world)[1]).toBe('accepted failed: Not sent, connection refused')
  },
)

test.each([undefined, ''])('a leader with address %o is not sent to', async (apiUrl) => {
  const world = worldOf('transfer', 'n2')
  world.apiUrl = apiUrl
  world.polls = [() => {}]

  await run(world)

  expect(world.operation.message).toBe('n1 is unreachable: its address is unknown. Nothing was sent.')
  expect(world.sent).toEqual([])
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

test('without a leader nothing is sent', async () => {
  const world = worldOf('promote', 'n3', leaderless())
  world.plan = { basis: { leader: null, term: null }, after: { leader: null } } as unknown as Plan

  await run(world)

  expect(world.operation).toMatchObject({
    ...{ state: 'refused', message: 'Nothing was sent: the shard has no leader.', steps: [], requestedAt: null },
  })
  expect(world.sent).toEqual([])
})

test('while the shard is not observed, the leader of the plan is sent to', async () => {
  const world = worldOf('promote', 'n3')
  world.view = undefined
  world.polls = [show(world, led('n1'))]

  await run(world)

  expect(world.sent[0]?.to).toBe('n1')
  expect(world.operation.state).toBe('done')
})

// Time

test('a missing response is reported after 3 s, and a missing outcome after 10 s', async () => {
  const world = worldOf('transfer', 'n2')
  world.replies = ['none']
  world.polls = [after(world, 2_800), after(world, 0), after(world, 6_600), after(world, 0)]

  await run(world)

  expect(world.notices).toEqual(['No response from n1 yet', 'Longer than usual: n1 names n1, n2 names n1, n3 names n1'])
  expect(world.operation).toMatchObject({ state: 'requested', message: 'Request sent to n1', endedAt: null })
})

test('times are exact to 50 ms in the first 3 s, then to the polling interval', async () => {
  const world = worldOf('transfer', 'n2')
  const seen: number[] = []
  const note = (ms: number) => () => {
    seen.push(world.operation.uncertaintyMs)
    world.now += ms
  }
  world.polls = [note(2_600), note(0), note(0), note(0)]

  await run(world)

  expect(seen).toEqual([50, 50, 50, 200])
})

test('a transfer without effect ends after 30 s', async () => {
  const world = worldOf('transfer', 'n2')
  world.polls = [after(world, 29_799), after(world, 0), () => {}]

  await run(world)

  expect(world.operation).toMatchObject({
    ...{ state: 'no-change', message: 'n1 still leads after 30 s', endedAt: at(NOW + 30_199) },
  })
})

test('an unconfirmed operation is watched for 10 minutes, and ends when the nodes show it', async () => {
  const world = worldOf('transfer', 'n2')
  world.polls = [
    show(world, leaderless()),
    after(world, 30_000),
    after(world, LATE_MS - 1_000),
    show(world, led('n2')),
    show(world, led('n2', { commit: 50_001 })),
  ]

  await run(world)

  expect(world.states).toEqual(['requested', 'accepted', 'verifying', 'unconfirmed', 'done'])
  expect(world.operation.message).toBe('n2 leads s1, later than usual')
  expect(world.operation.undo).toEqual({ kind: 'transfer', shard: 's1', node: 'n1' })
})

test('a leadership that went elsewhere late ends an unconfirmed transfer without an undo', async () => {
  const world = worldOf('transfer', 'n2')
  world.polls = [show(world, leaderless()), after(world, 30_000), show(world, led('n3'))]

  await run(world)

  expect(world.operation).toMatchObject({
    ...{ state: 'elsewhere', message: 'Leadership went to n3, not n2, later than usual', undo: null },
  })
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

test('a new view of the shard is evaluated at once, and one of another shard is not', async () => {
  const world = worldOf('promote', 'n3', learner)
  const notify = (id: string, view: View) => () => {
    world.view = view
    for (const listener of world.listeners) listener(id)
  }
  world.polls = [notify('s1', led('n1'))]

  await run(world)

  expect(world.operation.state).toBe('done')
  expect(world.polls).toHaveLength(0)
})

// Members

test.each([
  ...[['promote', 'n3', learner, led('n1'), '/cluster/promote-learner', 'n3 is a voter', 'demote'] as const],
  [
    'demote',
    'n3',
    led('n1'),
    learner,
    '/cluster/demote-voter',
    'n3 is no longer a voter: 2 of 2 voters list n3 as learner',
    'promote',
  ] as const,
] as const)('%s is done when a majority lists the node', async (kind, node, before, then, path, message, undo) => {
  const world = worldOf(kind, node, before)
  world.replies = [{ status: 200, body: kind === 'promote' ? 'add in progress' : 'remove in progress' }]
  world.polls = [show(world, then)]

  await run(world)

  expect(world.sent).toEqual([{ to: 'n1', path, body: { node_id: node }, timeoutMs: 10_000 }])
  expect(world.operation).toMatchObject({ state: 'done', message, undo: { kind: undo, shard: 's1', node } })
  const count = kind === 'promote' ? '3 of 3 voters list n3 as voter' : '2 of 2 voters list n3 as learner'
  expect(stepsOf(world)).toEqual([
    'requested done: Requested',
    `accepted done: Accepted, n1 answered "${kind === 'promote' ? 'add' : 'remove'} in progress"`,
    `listed done: ${kind === 'promote' ? 'n3 is a voter' : 'n3 is not a voter'}, ${count}`,
  ])
})

test.each([
  ['promote', 'add-member'],
  ['demote', 'remove-member'],
] as const)('%s has a path of older engines', async (kind, path) => {
  const world = worldOf(kind, 'n3', kind === 'promote' ? learner : led('n1'))
  world.replies = [
    { status: 404, body: '' },
    { status: 409, body: 'no' },
  ]
  world.polls = [() => {}]

  await run(world)

  expect(world.sent[1]).toMatchObject({ path: `/admin/${path}/n3`, body: undefined })
  expect(world.operation).toMatchObject({ state: 'refused', undo: null })
})

test('a slow change shows the step that the shard reports, else how many voters list the node', async () => {
  const world = worldOf('promote', 'n3', learner)
  const changing = (step: string): View => ({
    ...learner,
    shard: { ...learner.shard, change: { kind: 'promote', node: 'n3', startedAt: at(NOW), step } },
  })
  world.polls = [after(world, 11_000), show(world, changing('')), show(world, changing('catching up')), () => {}]

  await run(world)

  expect(world.notices).toEqual([
    'Longer than usual: 0 of 0 voters list n3 as voter',
    'Longer than usual: the shard reports: promote',
    'Longer than usual: the shard reports: catching up',
  ])
})

// Transfer, then demote

const both = (view = led('n1')) => worldOf('transfer-then-demote', 'n1', view)

test('a leader is demoted after its leadership was transferred', async () => {
  const world = both()
  world.polls = [
    show(world, led('n2', { commit: 50_001 })),
    show(world, led('n2', { commit: 50_002 })),
    show(world, demoted('n2', 'n1')),
  ]
  world.replies = [
    { status: 200, body: 'transfer in progress' },
    { status: 200, body: 'remove in progress' },
  ]

  await run(world)

  expect(world.sent).toMatchObject([
    { to: 'n1', path: '/cluster/transfer-leader', body: { target_node_id: 'n2' } },
    { to: 'n2', path: '/cluster/demote-voter', body: { node_id: 'n1' } },
  ])
  expect(world.operation).toMatchObject({
    ...{ state: 'done', message: 'n1 is no longer a voter: 2 of 2 voters list n1 as learner', undo: null },
    ...{ requestedAt: at(NOW), pauseMs: 200 },
  })
  expect(world.pauses).toEqual([200])
  expect(world.states).toEqual(['requested', 'accepted', 'verifying', 'accepted', 'verifying', 'done'])
  expect(stepsOf(world).slice(5)).toEqual([
    'demote-requested done: Demotion requested',
    'demote-accepted done: Accepted, n2 answered "remove in progress"',
    'demote-listed done: n1 is not a voter, 2 of 2 voters list n1 as learner',
  ])
})

test('a leader is not demoted when its leadership went elsewhere', async () => {
  const world = both()
  world.polls = [show(world, led('n3'))]

  await run(world)

  expect(world.sent).toHaveLength(1)
  expect(world.operation.state).toBe('elsewhere')
})

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

// Restart

test('after a restart nothing is sent again, and the nodes get 10 s to be polled', async () => {
  const world = worldOf('transfer', 'n2')
  world.isResumed = true
  world.operation = { ...world.operation, requestedAt: at(NOW - 3_600_000) }
  world.polls = [after(world, 9_799), () => {}, () => {}]

  await run(world)

  expect(world.sent).toEqual([])
  expect(world.states).toEqual(['verifying', 'no-change'])
  expect(world.operation.endedAt).toBe(at(NOW + 10_199))
})

test('after a restart the remaining time of a recent request counts', async () => {
  const world = worldOf('transfer', 'n2')
  world.isResumed = true
  world.operation.steps.push({
    ...{ id: 'requested', text: '', state: 'done', at: at(NOW - 10_000), milliseconds: 0, evidence: '' },
  })
  world.polls = [after(world, 19_799), () => {}, () => {}]

  await run(world)

  expect(world.operation).toMatchObject({ state: 'no-change', endedAt: at(NOW + 20_199) })
})

test('a restart reports that the outcome is checked, and keeps the time of measured steps', async () => {
  const world = worldOf('transfer', 'n2', led('n2'))
  world.isResumed = true
  const measured = { state: 'done', at: at(NOW - 5_000), milliseconds: 7, evidence: 'before' } as const
  world.operation.steps.push({ ...measured, id: 'stepped-down', text: '' }, { ...measured, id: 'leads', text: '' })

  await run(world)

  expect(world.operation).toMatchObject({
    state: 'verifying',
    message: 'The control plane was restarted: checking the outcome of the request',
    steps: [
      { id: 'stepped-down', evidence: 'before' },
      { id: 'leads', evidence: 'before' },
    ],
  })
})

test('an unconfirmed operation is only watched after a restart', async () => {
  const world = worldOf('promote', 'n3', learner)
  world.isResumed = true
  world.operation = { ...world.operation, state: 'unconfirmed', message: 'Not confirmed.', endedAt: at(NOW - 60_000) }
  world.polls = [show(world, led('n1'))]

  await run(world)

  expect(world.sent).toEqual([])
  expect(world.states).toEqual(['unconfirmed', 'done'])
  expect(world.operation).toMatchObject({
    ...{ message: 'n3 is a voter, later than usual', undo: { kind: 'demote', node: 'n3' } },
  })
})

// Armed

const armed = (lag: number, health = 'active_follower') => {
  const lagging = led('n1', { lags: { n2: [lag, 0] } })
  const nodes = lagging.shard.nodes.map((node) => (node.id === 'n2' ? { ...node, health } : node))
  const view: View = { ...lagging, shard: { ...lagging.shard, nodes } }
  return view
}

test('an armed transfer is sent once its target is close enough', async () => {
  const world = worldOf('transfer', 'n2', armed(CATCH_UP.entriesMax + 1))
  world.operation = { ...world.operation, state: 'armed', cancellable: false }
  const messages: unknown[] = []
  const note = (view: View) => () => {
    messages.push([world.sent.length, world.operation.cancellable, world.operation.message])
    world.view = view
  }
  world.polls = [note(armed(0, 'starting')), note(armed(CATCH_UP.entriesMax)), note(led('n1'))]

  await run(world)

  expect(messages).toEqual([
    [0, true, 'Waiting until n2 is at most 1,000 entries behind: 1,001 entries'],
    [0, true, 'Waiting until n2 is at most 1,000 entries behind: 0 entries'],
    [1, false, 'Waiting for confirmation by the nodes'],
  ])
})

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

test('a stop of the control plane leaves an armed transfer as it is', async () => {
  const world = worldOf('transfer', 'n2', armed(5_000))
  world.operation = { ...world.operation, state: 'armed' }

  await run(world)

  expect(world.operation).toMatchObject({ state: 'armed', endedAt: null })
  expect(world.operation.message).toBe('Waiting until n2 is at most 1,000 entries behind: 5,000 entries')
})
