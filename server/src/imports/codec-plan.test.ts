/** The plan of a codec list change: what changes, what stops working, and the state and evidence of each step. */

import { createCodecList } from '@vacancy/shared'
import type { CodecEntries, ShardView, SnapshotView } from '@vacancy/shared/contract'
import { expect, test } from 'vitest'
import { observedNode, shardOf } from '../testing/observed-nodes.ts'
import { checkOrigins, listOf, nodesOf, planOf, type Reported, type SavedQuery, stepsOf } from './codec-plan.ts'

const BEFORE = createCodecList(['a', 'b', 'c'])
const AFTER = createCodecList(['c', 'x'])
const [OLD, NEW] = [BEFORE.orderedHash, AFTER.orderedHash]

const entries = (...given: readonly (readonly [name: string, was: string | null])[]): CodecEntries =>
  given.map(([name, was]) => ({ name, was }))

type Freshness = ShardView['nodes'][number]['freshness']
type NodePlan = readonly [hash: string | null, freshness?: Freshness, apiUrl?: string]

const { view: TEMPLATE } = shardOf([observedNode({ id: 'n1' })])

function shard(id: string, nodes: readonly NodePlan[], packages: number | null = 5): ShardView {
  const [template] = TEMPLATE.nodes as [ShardView['nodes'][number]]
  return {
    ...TEMPLATE,
    ...{ id, packages },
    nodes: nodes.map(([orderedHash, freshness = 'live', apiUrl], at) => ({
      ...template,
      ...{ id: `n${at + 1}`, shard: id, orderedHash, freshness, apiUrl: apiUrl ?? `http://${id}-n${at + 1}` },
    })),
  }
}

const snapshot = (id: string, codecHash: string, change: Partial<SnapshotView> = {}) =>
  ({ id, codecHash, stored: true, name: `named-${id}`, shard: 's1', bytes: 7, heldBy: [], ...change }) as SnapshotView

const query = (id: string, fields: object, change: Partial<SavedQuery> = {}): SavedQuery => ({
  ...{ id, name: `query ${id}`, owner: 'ana', owner_name: 'Ana', shared: 1, fields: JSON.stringify(fields) },
  ...change,
})

const NOTHING: Reported = { registry: null, shards: [], snapshots: [] }

type Parts = Partial<Parameters<typeof planOf>[0]>

function planned(next: CodecEntries, parts: Parts = {}, now: Partial<Reported> = {}) {
  const before = { names: [...BEFORE.names], hash: OLD, source: 'node n1' }
  const all = { before, after: listOf(next), entries: next, snapshots: [], queries: [], principal: { id: 'me' } }
  return planOf({ ...all, ...parts }, { ...NOTHING, ...now })
}

const toAfter = entries(['c', 'c'], ['x', null])

// Entries

test('a list with an invalid entry is refused with the field', () => {
  expect([...listOf(toAfter).names]).toEqual(['c', 'x'])
  expect(() => listOf(entries(['a', null], ['A', null]))).toThrow(
    expect.objectContaining({ status: 400, code: 'invalid-codecs', field: 'entries', hint: 'Fix that entry.' }),
  )
})

test.each<[CodecEntries, string]>([
  [entries(['a', 'a'], ['b', 'c'], ['new', null], ['new2', null]), ''],
  [entries(['a', 'nothing']), 'a: nothing is not in the current list.'],
  [entries(['a', 'a'], ['b', 'a']), 'b: a already became another entry.'],
])('the origins of %j', (given, error) => {
  const check = () => checkOrigins(given, BEFORE.names)

  if (error === '') expect(check).not.toThrow()
  else expect(check).toThrow(expect.objectContaining({ code: 'list-moved-on', field: 'entries', message: error }))
})

test.each<[string, CodecEntries, string[]]>([
  ['nothing', entries(['a', 'a'], ['b', 'b'], ['c', 'c']), []],
  [
    'the order',
    entries(['a', 'a'], ['c', 'c'], ['b', 'b']),
    [
      'moved c: c moves from position 2 to 1: existing data with bit 2 would be read as another feature',
      'moved b: b moves from position 1 to 2: existing data with bit 1 would be read as another feature',
    ],
  ],
  ['a name', entries(['a', 'a'], ['d', 'b'], ['c', 'c']), ['renamed d: b is renamed to d']],
  [
    'an entry more and one less',
    entries(['a', 'a'], ['b', 'b'], ['d', null]),
    ['added d: d is added at position 2', 'removed c: c is removed; no package can have it any more'],
  ],
  [
    'a name that replaces the same name',
    entries(['a', null], ['b', 'b'], ['c', 'c']),
    ['added a: a is added at position 0', 'removed a: a is removed; no package can have it any more'],
  ],
])('the changes of %s are listed', (_, next, expected) => {
  expect(planned(next).changes.map(({ kind, name, message }) => `${kind} ${name}: ${message}`)).toEqual(expected)
})

test('a plan has both lists, the new file, and whether they are the same', () => {
  expect(planned(toAfter)).toMatchObject({
    before: { names: ['a', 'b', 'c'], hash: OLD, source: 'node n1' },
    after: { names: ['c', 'x'], hash: NEW },
    ...{ file: 'rate_features:\n  - "c"\n  - "x"\n', same: false },
  })
  expect(planned(entries(['a', 'a'], ['b', 'b'], ['c', 'c'])).same).toBe(true)
})

test('snapshots with another list can no longer be installed', () => {
  const heldBy = [{ node: 'n1' }, { node: 'n2' }] as SnapshotView['heldBy']
  const snapshots = [snapshot('old', OLD, { heldBy, stored: false }), snapshot('new', NEW)]

  expect(planned(toAfter, { snapshots }).snapshots).toEqual([
    { id: 'old', name: 'named-old', shard: 's1', stored: false, bytes: 7, heldBy: ['n1', 'n2'] },
  ])
})

test('saved queries that name a removed entry are listed, and private ones of others are counted', () => {
  const queries = [
    query('list', { rateFeatures: ['b', 'c', ' a '] }),
    query('text', { rateFeatures: 'c, b' }, { owner: 'me', owner_name: 'Me', shared: 0 }),
    query('private', { rateFeatures: ['a'] }, { shared: 0 }),
    query('kept', { rateFeatures: ['c'] }),
    query('part', { rateFeatures: ['ab'] }),
    query('none', {}),
    query('number', { rateFeatures: 5 }),
  ]

  const plan = planned(toAfter, { queries })

  expect(plan.queries).toEqual([
    { id: 'list', name: 'query list', owner: 'Ana', uses: ['a', 'b'] },
    { id: 'text', name: 'query text', owner: 'Me', uses: ['b'] },
  ])
  expect(plan.hiddenQueries).toBe(1)
  expect(plan.steps.map(({ id }) => id)).toEqual(['keep', 'stop', 'start', 'data', 'queries'])
  expect(planned(toAfter, { queries: queries.slice(2, 3) }).steps.at(-1)).toMatchObject({
    ...{ id: 'queries', state: 'hand', evidence: '', commands: [], title: 'Fix the saved queries' },
  })
  expect(planned(toAfter, { queries: queries.slice(3) }).steps.map(({ id }) => id)).not.toContain('queries')
})

test('nodes are listed with their list, and whether they respond', () => {
  const nodes = nodesOf([shard('s1', [[OLD], [null, 'delayed'], [NEW, 'gone']]), shard('s2', [[NEW, 'never']])])

  expect(nodes).toEqual([
    { shard: 's1', node: 'n1', hash: OLD, answers: true },
    { shard: 's1', node: 'n2', hash: null, answers: true },
    { shard: 's1', node: 'n3', hash: NEW, answers: false },
    { shard: 's2', node: 'n1', hash: NEW, answers: false },
  ])
  expect(planned(toAfter, {}, { shards: [shard('s1', [[OLD]])] }).nodes).toEqual(nodes.slice(0, 1))
})

// Steps

const PLAN = planned(toAfter)

function step(id: string, now: Partial<Reported>, plan: typeof PLAN = PLAN) {
  const found = stepsOf(plan, { ...NOTHING, ...now }).find((each) => each.id === id)
  if (!found) throw new Error(`no step ${id}`)
  return found
}
const stateOf = (id: string, now: Partial<Reported>) => {
  const { state, evidence } = step(id, now)
  return `${state}: ${evidence}`
}

test('the first step is to back up the data, with the snapshots that are stored here', () => {
  const keep = (snapshots: SnapshotView[]) => step('keep', {}, planned(toAfter, { snapshots }))

  expect(keep([]).text).toMatch(/^Export the data of each shard first\. These files/)
  expect(keep([snapshot('x', OLD, { stored: false })]).text).toMatch(/^Export the data/)
  expect(keep([snapshot('x', OLD), snapshot('y', OLD)])).toMatchObject({
    text: expect.stringMatching(/^Download the snapshots stored here \(2\) and export/),
    ...{ state: 'hand', evidence: '' },
    commands: [{ label: 'For each shard, on a stopped node', code: 'vacancy export DATA_DIR --output-path backup' }],
  })
})

const nodesWith = (hash: string | null, count: number, freshness: Freshness = 'live') =>
  Array.from({ length: count }, () => [hash, freshness] as const)

test.each<[ShardView[], string]>([
  [[], 'unknown: no node is known'],
  [[shard('s1', [])], 'unknown: no node is known'],
  [[shard('s1', [[OLD, 'gone'], [NEW]])], 'done: no responding node has a different list'],
  [[shard('s1', [[OLD], [NEW]])], 'open: 1 of 2 nodes run with a different list: s1/n1'],
  [[shard('s1', [[null, 'delayed'], [NEW]])], 'open: 1 of 2 nodes run with a different list: s1/n1'],
  [
    [shard('s1', nodesWith(OLD, 6))],
    'open: 6 of 6 nodes run with a different list: s1/n1, s1/n2, s1/n3, s1/n4, s1/n5, s1/n6',
  ],
  [
    [shard('s1', nodesWith(OLD, 6)), shard('s2', nodesWith(OLD, 2))],
    'open: 8 of 8 nodes run with a different list: s1/n1, s1/n2, s1/n3, s1/n4, s1/n5, s1/n6 and 2 more',
  ],
])('nodes are stopped when none with another list responds: case %#', (shards, expected) => {
  expect(stateOf('stop', { shards })).toBe(expected)
})

test('the commands that stop nodes are those of the first twelve addresses', () => {
  const command = (url: string) =>
    `curl -X POST ${url}/shutdown -H "authorization: Bearer $ADMIN_TOKEN" -H 'content-type: application/json' -d '{"confirm":true}'`
  const urls = Array.from({ length: 12 }, (_, at) => `http://s1-n${at + 1}`)
  const stop = (nodes: readonly NodePlan[]) => step('stop', { shards: [shard('s1', nodes)] }).commands

  expect(stop(nodesWith(OLD, 12))).toEqual([{ label: 'Each node', code: urls.map(command).join('\n') }])
  expect(stop(nodesWith(OLD, 14))).toEqual([{ label: 'Each node, and 2 more', code: urls.map(command).join('\n') }])
  expect(stop([[OLD, 'live', ''], [OLD]])).toEqual([{ label: 'Each node', code: command('http://s1-n2') }])
})

test.each<[string | undefined, string]>([
  [undefined, 'unknown: the registry at http://reg does not respond'],
  [NEW, 'done: the registry serves the new list'],
  [OLD, `open: the registry serves a different list, ${OLD.slice(0, 12)}`],
])('the registry serves the list %s', (hash, expected) => {
  const registry = { address: 'http://reg', hash }

  expect(stateOf('registry', { registry })).toBe(expected)
  expect(step('registry', { registry }).commands[1]).toEqual({
    label: 'Check the list',
    code: `curl http://reg/codecs\n# "ordered_hash":"${NEW}"`,
  })
})

test.each<[ShardView[], string]>([
  [[], 'unknown: no node is known'],
  [[shard('s1', [[NEW], [NEW, 'delayed']]), shard('s2', [[NEW]])], 'done: all 3 nodes run with the new list'],
  [[shard('s1', [[NEW], [NEW, 'gone']])], 'open: 1 of 2 nodes run with the new list; not yet: s1/n2'],
  [[shard('s1', [[NEW], [OLD]])], 'open: 1 of 2 nodes run with the new list; not yet: s1/n2'],
])('nodes are started when all respond with the new list: case %#', (shards, expected) => {
  expect(stateOf('start', { shards })).toBe(expected)
})

test('nodes read the new list from the registry if there is one, else from their file', () => {
  const registry = { address: 'http://reg', hash: OLD }

  expect(step('start', { registry }).text).toMatch(/^Each reads the list of the registry, detects/)
  expect(step('start', {}).text).toMatch(/^Each reads the new codecs\.yml given with --codecs, detects/)
})

test.each<[ShardView[], SnapshotView[], string]>([
  [[], [], 'unknown: no shard is known'],
  [[shard('s1', [[NEW], [OLD]], 1), shard('s2', [[NEW]])], [], 'done: all 2 shards serve packages with the new list'],
  [
    [shard('s1', [[NEW]]), shard('s2', [[NEW]], 0), shard('s3', [[NEW]], null), shard('s4', [[OLD]])],
    [snapshot('x', NEW, { shard: 's2' }), snapshot('y', OLD, { shard: 's3' }), snapshot('z', NEW, { shard: 's9' })],
    'open: 1 of 4 shards serve packages with the new list, 1 have a snapshot for it; not yet: s2, s3, s4',
  ],
])('data is back when every shard serves packages with the new list: case %#', (shards, snapshots, expected) => {
  expect(stateOf('data', { shards, snapshots })).toBe(expected)
})

test('the steps are in the order in which they are done', () => {
  const registry = { address: 'http://reg', hash: OLD }

  expect(stepsOf(PLAN, { ...NOTHING, registry }).map(({ id }) => id)).toEqual([
    ...['keep', 'stop', 'registry', 'start', 'data'],
  ])
  for (const { title, text, commands } of stepsOf(PLAN, { ...NOTHING, registry })) {
    expect([title, text].every((each) => each.length > 10)).toBe(true)
    expect(commands.every(({ label }) => label !== '')).toBe(true)
  }
})
