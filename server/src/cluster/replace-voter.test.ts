/** A learner takes the place of a dead voter: what is sent, in which order, and where the operation stops. */
import type { MemberChange, Plan } from '@vacancy/shared/contract'
import { expect, test, vi } from 'vitest'
import { at, runWith, show, stepsOf, type View, type World, worldOf } from '../testing/membership-world.ts'
import { goneNode, NOW, observedNode, shardOf } from '../testing/observed-nodes.ts'
import type { PlanContext } from './operation-types.ts'
import { changesOf, planReplace } from './replace-plan.ts'
import { replaceVoterType } from './replace-voter.ts'

const sleeping = vi.hoisted(() => ({ sleep: async (_ms: number): Promise<void> => {} }))
vi.mock('node:timers/promises', () => ({
  setTimeout: (ms: number, _: undefined, { signal }: { signal: AbortSignal }) =>
    signal.aborted ? Promise.reject(signal.reason) : sleeping.sleep(ms),
}))

const REFUSED = { code: 'refused', message: 'connection refused' }
type Shown = {
  readonly voters?: readonly string[]
  readonly learners?: readonly string[]
  readonly gone?: readonly string[]
  readonly leader?: string
  readonly term?: number
}

/** Nodes of a shard as they are observed: n3 is dead, n4 is a learner. */
function shown({ voters = ['n1', 'n2', 'n3'], learners = ['n4'], gone = ['n3'], leader = 'n1', term = 4 }: Shown = {}) {
  const observations = [...voters, ...learners]
    .sort()
    .map((id) =>
      gone.includes(id)
        ? goneNode({ id, voters, learners, leader, term }, REFUSED)
        : observedNode({ id, voters, learners, leader, term }),
    )
  return { shard: shardOf(observations).view, observations } satisfies View
}
const PROMOTED = shown({ voters: ['n1', 'n2', 'n3', 'n4'], learners: [] })
const REPLACED = shown({ voters: ['n1', 'n2', 'n4'], learners: ['n3'] })

const contextOf = (view: View, more: Partial<PlanContext> = {}): PlanContext => ({
  ...{ now: NOW, shard: view.shard, observations: view.observations, running: undefined, isAdmin: true },
  ...{ hasAdminToken: true, clusterPause: null, bridges: [], baseUrl: 'http://console', ...more },
})
const planned = (view: View = shown(), more: { node?: string; replacement?: string } = {}) =>
  planReplace({ kind: 'replace-voter', shard: 's1', node: 'n3', ...more }, contextOf(view))

function world(view: View = shown()): World {
  const made = worldOf('replace-voter', 'n3', view)
  made.plan = { basis: { leader: 'n1', term: 4 }, changes: planned().changes } as unknown as Plan
  made.replies = [
    { status: 202, body: 'add in progress' },
    { status: 202, body: 'remove in progress' },
  ]
  return made
}

async function run(of: World): Promise<World> {
  await runWith(of, sleeping, replaceVoterType)
  expect([of.watching, of.listeners.size]).toEqual([0, 0])
  return of
}

// The plan

test('the plan promotes the learner before it demotes the dead voter, and counts the voters of each step', () => {
  const draft = planned()

  expect(draft).toMatchObject({ node: 'n3', title: 'Replace voter n3 of s1 by n4', action: 'Replace n3 by n4' })
  expect(draft.effects.slice(0, 2)).toEqual([
    {
      text: 'Step 1: n4 becomes a voter. Then 3 of 4 voters answer, 3 needed: none may fail.',
      source: 'failure matrix',
    },
    {
      text: 'Step 2: n3 becomes a learner. Then 3 of 3 voters answer, 2 needed: 1 may fail.',
      source: 'failure matrix',
    },
  ])
  expect(draft.after).toMatchObject({ voters: 3, majority: 2, spare: 1, leader: 'n1' })
  expect(draft.after.nodes.map(({ node, role }) => `${node} ${role}`)).toContain('n4 follower')
  expect(draft.checks.filter(({ level }) => level === 'block' || level === 'warn')).toEqual([])
  expect(draft.commands.cli).toMatch(/promote n4 .* && \\\n.* demote n3 /)
})

const changes = (view: View, old = 'n3', spare = 'n4') => {
  const node = (id: string) => view.shard.nodes.find((each) => each.id === id) as View['shard']['nodes'][number]
  return changesOf(view.shard, node(old), node(spare)).map(
    ({ kind, node: id, voters, majority, up }: MemberChange) => `${kind} ${id}: ${up} of ${voters.length}, ${majority}`,
  )
}
const voters = (count: number) => Array.from({ length: count }, (_, n) => `n${n + 1}`)

test.each<[string, View, string[]]>([
  ['of three, one dead', shown(), ['promote n4: 3 of 4, 3', 'demote n3: 3 of 3, 2']],
  [
    'of five, two dead',
    shown({ voters: voters(5), learners: ['n6'], gone: ['n3', 'n5'] }),
    ['promote n6: 4 of 6, 4', 'demote n3: 4 of 5, 3'],
  ],
  [
    'of seven, the most that there may be, the dead one goes first',
    shown({ voters: voters(7), learners: ['n8'] }),
    ['demote n3: 6 of 6, 4', 'promote n8: 7 of 7, 4'],
  ],
])('%s: each step keeps a majority that answers', (_, view, steps) => {
  const spare = view.shard.nodes.find(({ voter }) => voter === false)?.id
  expect(changes(view, 'n3', spare)).toEqual(steps)
})

const CHECKS: readonly (readonly [check: string, level: string, what: string, draft: ReturnType<typeof planned>])[] = [
  ['learner', 'block', 'there is no learner', planned(shown({ learners: [] }))],
  ['learner', 'block', 'the replacement votes already', planned(shown(), { replacement: 'n2' })],
  ['learner', 'block', 'there is no such node', planned(shown(), { replacement: 'n9' })],
  ['target-answers', 'block', 'the replacement is dead as well', planned(shown({ gone: ['n3', 'n4'] }))],
  ['target-voter', 'block', 'it is not a voter', planned(shown(), { node: 'n4' })],
  ['not-leader', 'block', 'it leads', planned(shown({ gone: [] }), { node: 'n1' })],
  ['quorum', 'block', 'there is no majority', planned(shown({ gone: ['n2', 'n3'] }))],
  ['voter-away', 'warn', 'the voter works', planned(shown({ gone: [] }))],
]
test.each(CHECKS)('%s (%s): %s', (id, level, _, draft) => {
  expect(draft.checks.find((check) => check.id === id)).toMatchObject({ level })
})

test('a learner on a machine of its own comes before one beside another voter', () => {
  const view = shown({ learners: ['n4', 'n5'] })
  const nodes = view.shard.nodes.map((node) => (node.id === 'n4' ? { ...node, apiUrl: 'http://n1:9090' } : node))
  const beside = { ...view, shard: { ...view.shard, nodes } }

  expect(planned(beside)).toMatchObject({ title: 'Replace voter n3 of s1 by n5', alternatives: [{ node: 'n4' }] })
  expect(planned(beside, { replacement: 'n4' }).checks).toContainEqual({
    ...{ id: 'machine-apart', level: 'warn' },
    text: 'n4 is on the same machine as n1 (n1): they fail together',
  })
})

test('afterwards the loss of one zone should not take the majority', () => {
  const view = shown()
  const zones = { n1: 'a', n2: 'b', n3: 'c', n4: 'a' } as { [id: string]: string }
  const nodes = view.shard.nodes.map((node) => ({ ...node, zone: zones[node.id] as string }))
  const draft = planned({ ...view, shard: { ...view.shard, nodes } })

  expect(draft.checks.find(({ id }) => id === 'zone-apart')).toMatchObject({
    level: 'info',
    text: 'without zone a, 1 voter would remain, 2 needed: writes stop if it goes',
  })
})

// The run

test('the demotion is sent when a majority lists the replacement, both to the leader and in the term of the plan', async () => {
  const replacing = world()
  replacing.polls = [() => {}, show(replacing, PROMOTED), () => {}, show(replacing, REPLACED)]

  await run(replacing)

  expect(replacing.sent.map(({ to, path, body }) => [to, path, body])).toEqual([
    ['n1', '/cluster/promote-learner', { node_id: 'n4', expected_term: 4 }],
    ['n1', '/cluster/demote-voter', { node_id: 'n3', expected_term: 4 }],
  ])
  expect(replacing.operation).toMatchObject({ state: 'done', message: 'n4 votes in place of n3' })
  expect(stepsOf(replacing).map((step) => step.split(',')[0])).toEqual(
    expect.arrayContaining([
      'requested done: Promotion of n4 requested',
      'listed done: n4 is a voter',
      'demote-requested done: Demotion of n3 requested',
      'demote-listed done: n3 is not a voter',
    ]),
  )
})

test('a promotion that is refused is all that was sent', async () => {
  const replacing = world()
  replacing.replies = [{ status: 409, body: '{"error":"another membership operation is running"}' }]
  replacing.polls = [() => {}]

  await run(replacing)

  expect(replacing.sent).toHaveLength(1)
  expect(replacing.operation).toMatchObject({
    state: 'refused',
    message: 'n1 answered 409: another membership operation is running. Nothing else was sent: n3 is still a voter.',
  })
})

test.each<[string, View, string]>([
  [
    'another node leads',
    shown({ voters: ['n1', 'n2', 'n3', 'n4'], learners: [], leader: 'n2', term: 5 }),
    'n2 leads now, the plan was made for n1',
  ],
  [
    'the leader was elected again',
    shown({ voters: ['n1', 'n2', 'n3', 'n4'], learners: [], term: 6 }),
    'the term is 6 now, the plan was made for 4',
  ],
  [
    'somebody else changed the members',
    shown({ voters: ['n1', 'n2', 'n3', 'n4', 'n5'], learners: [] }),
    'the voters are n1, n2, n3, n4, n5 now, the plan expects n1, n2, n3, n4',
  ],
])('when after the first step %s, it stops there and says what is left', async (_, view, why) => {
  const replacing = world()
  replacing.polls = [() => {}, show(replacing, view), ...Array.from({ length: 60 }, () => () => {})]

  await run(replacing)

  expect(replacing.sent).toHaveLength(1)
  expect(replacing.operation).toMatchObject({
    state: 'stopped',
    message: `n4 is a voter now, n3 is still a voter: ${why}. Plan the rest: demote n3.`,
    rest: { kind: 'demote', shard: 's1', node: 'n3' },
  })
})

test('a demotion that is refused leaves the operation stopped after its first step', async () => {
  const replacing = world()
  replacing.replies = [
    { status: 202, body: 'add in progress' },
    { status: 409, body: '{"error":"no healthy majority"}' },
  ]
  replacing.polls = [() => {}, show(replacing, PROMOTED), () => {}, () => {}]

  await run(replacing)

  expect(replacing.operation).toMatchObject({
    state: 'stopped',
    message: 'n4 is a voter now, n3 is still a voter: n1 answered 409: no healthy majority. Plan the rest: demote n3.',
    rest: { kind: 'demote', shard: 's1', node: 'n3' },
  })
})

const step = (id: string, state: 'waiting' | 'done') => ({
  ...{ id, text: '', state, at: state === 'done' ? at(NOW - 1_000) : null, milliseconds: null, evidence: '' },
})

test('a restart during the first step observes it, and sends the second', async () => {
  const replacing = world()
  replacing.isResumed = true
  replacing.replies = [{ status: 202, body: 'remove in progress' }]
  replacing.operation.steps.push(step('requested', 'done'), step('demote-requested', 'waiting'))
  replacing.polls = [show(replacing, PROMOTED), () => {}, show(replacing, REPLACED)]

  await run(replacing)

  expect(replacing.sent).toMatchObject([{ to: 'n1', path: '/cluster/demote-voter' }])
  expect(replacing.operation.state).toBe('done')
})

test('a restart during the second step sends nothing again', async () => {
  const replacing = world(PROMOTED)
  replacing.isResumed = true
  replacing.operation.steps.push(step('requested', 'done'), step('demote-requested', 'done'))
  replacing.polls = [() => {}, show(replacing, REPLACED)]

  await run(replacing)

  expect(replacing.sent).toEqual([])
  expect(replacing.operation).toMatchObject({ state: 'done', message: 'n4 votes in place of n3' })
})
