import { readFileSync } from 'node:fs'
import { NODE_STATES, type SavedView, type ShardBrief, type ShardLeadership } from '@vacancy/shared/contract'
import { createElement } from 'react'
import { renderToStaticMarkup } from 'react-dom/server'
import { expect, test } from 'vitest'
import { Icon, type IconName } from '../../icons/icon.tsx'
import { passes } from '../../lib/filter.ts'
import { formatSort, parseSort } from '../../lib/sort-link.ts'
import { ROLE_ICONS } from '../../ui/role-mark.tsx'
import { STATE_ICONS } from '../../ui/state-badge.tsx'
import { configText } from './config-text.ts'
import { filterKeys, parseShardFilter, shardFields } from './filter.ts'
import { axisFrom, stretchesOf } from './leadership-stretches.ts'
import { logBarOf, logBarText, logScaleOf } from './log-scale.ts'
import {
  bestCandidate,
  bestTarget,
  electionText,
  leaderReports,
  shardText,
  spareText,
  troubleOf,
  votersAway,
  whyNoTransfer,
} from './shard-view.ts'
import { SHARD_COLUMNS, SHARD_TABLE } from './shards-page.tsx'
import { movedColumn } from './table-columns.ts'
import { nodeOf, shardBriefOf, shardOf } from './testing/shards.ts'
import { viewHref, withView } from './views.ts'

test('the target of a transfer is the healthiest voter with the shortest lag', () => {
  const shard = shardOf({
    nodes: [
      nodeOf({ id: 'n1', role: 'leader' }),
      nodeOf({ id: 'n2', level: 'warn', lagEntries: 0 }),
      nodeOf({ id: 'n3', lagEntries: 40 }),
      nodeOf({ id: 'n4', lagEntries: 3 }),
      nodeOf({ id: 'n5', role: 'learner', voter: false, lagEntries: 0 }),
    ],
  })

  expect(bestTarget(shard)).toBe('n4')
  expect(bestTarget(shardOf({ nodes: [nodeOf({ id: 'n1' })] }))).toBeUndefined()
})

test('the reason why there is nothing to transfer', () => {
  const alone = [nodeOf({ id: 'n1', role: 'leader' }), nodeOf({ id: 'n2', role: 'learner', voter: false })]

  expect(whyNoTransfer(shardOf())).toBeUndefined()
  expect(whyNoTransfer(shardOf({ leader: null, state: 'no-leader' }))).toBe('Nothing to transfer: no leader')
  expect(whyNoTransfer(shardOf({ mode: 'standalone' }))).toContain('no replicas')
  expect(whyNoTransfer(shardOf({ nodes: alone }))).toContain('no other voter')
})

test('nodes disagree when two of them name different leaders, or one knows none', () => {
  const naming = (...names: (string | null)[]) =>
    leaderReports(shardOf({ nodes: names.map((namesLeader, at) => nodeOf({ id: `n${at + 1}`, namesLeader })) }))

  expect(naming('n1', 'n1', null).agree).toBe(true)
  expect(naming('n1', 'n2', 'n1').agree).toBe(false)
  expect(naming('n1', '', 'n1').agree).toBe(false)
})

test('the last report of a silent node does not count', () => {
  const nodes = [nodeOf({ id: 'n1', namesLeader: 'n1' }), nodeOf({ id: 'n2', namesLeader: 'n2', freshness: 'gone' })]

  expect(leaderReports(shardOf({ nodes }))).toEqual({
    reports: [
      { node: 'n1', names: 'n1' },
      { node: 'n2', names: null },
    ],
    agree: true,
  })
})

test('the best candidate is the voter with the longest log', () => {
  const nodes = [
    nodeOf({ id: 'n1', lastIndex: 90 }),
    nodeOf({ id: 'n2', lastIndex: 120 }),
    nodeOf({ id: 'n3', lastIndex: null }),
    nodeOf({ id: 'n4', lastIndex: 500, voter: false }),
  ]

  expect(bestCandidate(shardOf({ nodes }))?.id).toBe('n2')
})

test('a dead node is not the best candidate', () => {
  const nodes = [
    nodeOf({ id: 'n1', lastIndex: 120, freshness: 'gone' }),
    nodeOf({ id: 'n4', lastIndex: 120, freshness: 'delayed', state: 'unreachable' }),
    nodeOf({ id: 'n2', lastIndex: 120 }),
    nodeOf({ id: 'n3', lastIndex: 90 }),
  ]

  expect(bestCandidate(shardOf({ nodes }))?.id).toBe('n2')
  expect(votersAway(shardOf({ nodes })).map(({ id }) => id)).toEqual(['n4'])
  // Without a majority it is the one to add voters to.
  expect(bestCandidate(shardOf({ nodes, voters: 3, votersUp: 1, majority: 2 }))?.id).toBe('n2')
})

test('with the quorum lost, no new leader is promised and no further loss is counted', () => {
  const lost = shardOf({ voters: 3, votersUp: 1, majority: 2, spare: 0 })
  const last = shardOf({ voters: 3, votersUp: 2, majority: 2, spare: 0, electionTimeoutMs: 1_800 })

  expect([spareText(lost), electionText(lost)]).toEqual([
    'needs 1 more of 3 voters',
    'No leader can be elected until 1 more voter responds.',
  ])
  expect(spareText(last)).toBe('cannot lose another of 3')
  expect(electionText(last)).toMatch(/^A new leader is usually elected within one election timeout, 1\.8/)
  expect(spareText(shardOf({ voters: 5, votersUp: 5, majority: 3, spare: 2 }))).toBe('can lose 2 of 5')
})

test('only states without writes have causes', () => {
  expect(troubleOf(shardOf({ state: 'quorum-lost' }))?.title).toBe('Quorum lost')
  expect(troubleOf(shardOf({ state: 'no-leader' }))?.causes).toContain('voters cannot reach each other')
  expect(troubleOf(shardOf({ state: 'degraded' }))).toBeUndefined()
})

test('the text summary of a shard has all nodes and missing values', () => {
  const nodes = [nodeOf({ id: 'n1', role: 'leader' }), nodeOf({ id: 'n2', lagEntries: null, answeredAt: null })]

  expect(shardText(shardOf({ nodes }), '2026-11-20T18:31:00.000Z').split('\n')).toEqual([
    's1: Healthy, can lose 1 (3 of 3 voters answer, 2 needed)',
    '  zone eu-1, leader n1 since 2026-11-20T18:30:00.000Z, term 41, state since 2026-11-20T18:30:00.000Z',
    '  n1  leader (voter)  Healthy  lag 0  last response 2026-11-20T18:30:00.000Z',
    '  n2  follower (voter)  Healthy  lag unknown  never responded',
    '  as of 2026-11-20T18:31:00.000Z',
  ])
})

const shards: ShardBrief[] = [
  shardBriefOf({ id: 's1', zone: 'eu-1', leader: 'n1', spare: 1, maxLagEntries: 3 }),
  shardBriefOf({
    id: 's3',
    zone: 'eu-1',
    state: 'attention',
    message: 'Needs attention',
    leader: 'n1',
    spare: 1,
    maxLagEntries: 12_400,
    slots: [
      { node: 'n1', role: 'leader', state: 'healthy', level: 'ok', message: 'Healthy', freshness: 'live' },
      { node: 'n2', role: 'follower', state: 'far-behind', level: 'warn', message: 'Far behind', freshness: 'live' },
    ],
  }),
  shardBriefOf({ id: 's7', zone: 'us-2', state: 'no-leader', leader: null, spare: 0, maxLagEntries: null }),
]

const found = (text: string) =>
  shards.filter((shard) => passes(parseShardFilter(text).filter, shardFields(shard))).map((shard) => shard.id)

test.each([
  ['', ['s1', 's3', 's7']],
  ['s3', ['s3']],
  ['N2', ['s3']],
  ['attention', ['s3']],
  ['state:no-leader', ['s7']],
  ['state:far', ['s3']],
  ['state:healthy', ['s1']],
  ['zone:eu', ['s1', 's3']],
  ['zone:eu state:attention', ['s3']],
  ['leader:none', ['s7']],
  ['leader:n1 lag:<10', ['s1']],
  ['lag:>1000', ['s3']],
  ['spare:0', ['s7']],
  ['zone:mars', []],
])('%j finds %j', (text, ids) => {
  expect(found(text)).toEqual(ids)
})

test('a missing number matches no comparison', () => {
  expect(found('lag:>0')).not.toContain('s7')
  expect(found('lag:<999999')).not.toContain('s7')
})

test('invalid pairs are reported and filter nothing', () => {
  const { faults } = parseShardFilter('colour:red lag:many zone:eu constructor:x')

  expect(faults).toHaveLength(3)
  expect(faults[0]).toContain('unknown key colour; known keys are state, zone')
  expect(faults[1]).toContain('lag:>1000')
  expect(found('colour:red lag:many zone:eu')).toEqual(['s1', 's3'])
})

test('completion has the values in use', () => {
  expect(filterKeys(shards)).toMatchObject({
    zone: ['eu-1', 'us-2'],
    leader: ['n1', 'none'],
    state: ['attention', 'far-behind', 'healthy', 'no-leader'],
    spare: ['0'],
  })
})

const MINUTE = 60_000
const at = (minute: number) => new Date(minute * MINUTE).toISOString()

const leadershipOf = (...spans: ShardLeadership['spans']): ShardLeadership => ({
  ...{ from: at(0), to: at(100), spans, elections: 0, longestGapMs: null, knownMs: 0, isCut: false },
})

test('a period without data is one unknown stretch', () => {
  expect(stretchesOf(leadershipOf())).toEqual([{ kind: 'unknown', from: 0, to: 100 * MINUTE }])
})

test('uncovered time is an unknown stretch, before, between and after spans', () => {
  const stretches = stretchesOf(
    leadershipOf(
      { from: at(10), to: at(40), leader: 'n1', term: 4 },
      { from: at(40), to: at(41), leader: null, term: null },
      { from: at(60), to: at(90), leader: 'n3', term: null },
    ),
  )

  expect(stretches.map(({ kind, from, to }) => [kind, from / MINUTE, to / MINUTE])).toEqual([
    ['unknown', 0, 10],
    ['leader', 10, 40],
    ['none', 40, 41],
    ['unknown', 41, 60],
    ['leader', 60, 90],
    ['unknown', 90, 100],
  ])
})

test('a short gap between spans is not unknown time', () => {
  const late = new Date(50 * MINUTE + 400).toISOString()
  const stretches = stretchesOf(
    leadershipOf(
      { from: at(0), to: at(50), leader: 'n1', term: 1 },
      { from: late, to: at(100), leader: 'n2', term: 2 },
    ),
  )

  expect(stretches.map(({ kind }) => kind)).toEqual(['leader', 'leader'])
})

test.each([
  [undefined, 1_440],
  [0, 1_440],
  [700, 1_440],
  [900, 720],
  [1_250, 240],
  [1_427, 60],
  [1_429, 12],
  [1_439.9, 12],
])('a day of which minute %s is the first that was seen is shown as %s minutes', (first, length) => {
  const spans = first === undefined ? [] : [{ from: at(first), to: at(1_440), leader: 'n1', term: 1 }]

  expect(1_440 - axisFrom({ ...leadershipOf(...spans), to: at(1_440) }) / MINUTE).toBe(length)
})

const leader = nodeOf({ id: 'n1', role: 'leader', firstIndex: 1_000, lastIndex: 2_000, commitIndex: 1_900 })
const scale = { first: 1_000, last: 2_000 }

test('the scale is the log of the leader', () => {
  const ahead = nodeOf({ id: 'n2', firstIndex: 1, lastIndex: 9_999 })

  expect(logScaleOf([leader, ahead], 'n1')).toEqual(scale)
})

test('without a leader the scale spans all nodes, and there is none without reports', () => {
  const other = nodeOf({ id: 'n2', firstIndex: 1_500, lastIndex: 2_400 })
  const silent = nodeOf({ id: 'n3', firstIndex: null, lastIndex: null })

  expect(logScaleOf([leader, other, silent], null)).toEqual({ first: 1_000, last: 2_400 })
  expect(logScaleOf([silent], null)).toBeUndefined()
})

test('the bar of the leader has a committed and an uncommitted part', () => {
  expect(logBarOf(leader, scale)).toEqual({
    committedTo: 0.9,
    uncommittedTo: 1,
    missing: 0,
    needsSnapshot: false,
    position: 2_000,
  })
})

test('the bar of a follower ends at its match index', () => {
  const node = nodeOf({ id: 'n2', lastIndex: 2_000, matchIndex: 1_500, commitIndex: 1_400 })

  expect(logBarOf(node, scale)).toMatchObject({ committedTo: 0.4, uncommittedTo: 0.5, missing: 500 })
})

test('one missing entry of a million is visible', () => {
  const node = nodeOf({ id: 'n2', matchIndex: 999_999, commitIndex: 999_999 })

  expect(logBarOf(node, { first: 0, last: 1_000_000 })).toMatchObject({ uncommittedTo: 0.985, missing: 1 })
})

test('a node before the first entry of the leader needs a snapshot', () => {
  const node = nodeOf({ id: 'n2', matchIndex: 500, commitIndex: 500 })

  expect(logBarOf(node, scale)).toMatchObject({ uncommittedTo: 0, needsSnapshot: true, missing: 1_500 })
})

test('the bar of an empty log is full', () => {
  const node = nodeOf({ id: 'n2', matchIndex: 0, lastIndex: 0, commitIndex: 0 })

  expect(logBarOf(node, { first: 0, last: 0 })).toMatchObject({ committedTo: 1, uncommittedTo: 1, missing: 0 })
})

test('a bar has a text description', () => {
  const node = nodeOf({ id: 'n2', matchIndex: 1_500, commitIndex: 1_400 })
  const silent = nodeOf({ id: 'n4', matchIndex: null, lastIndex: null })

  expect(logBarText(node, logBarOf(node, scale), String)).toBe('log up to 1500, committed to 1400, 500 missing')
  expect(logBarText(silent, logBarOf(silent, scale), String)).toBe('n4 does not report a log position')
})

/** The slots of a rack are drawn by rack.css: its shapes are those of the icons. */

const CSS = readFileSync(new URL('./rack.css', import.meta.url), 'utf8')
const SIDE = 16
const STATES = NODE_STATES.filter((state) => state !== 'healthy')
const SHAPES = [...new Set([...Object.values(ROLE_ICONS), ...STATES.map((state) => STATE_ICONS[state])])]

/** What an icon draws, as it can stand in a style. */
function drawingOf(name: IconName): string {
  const [, inside = ''] = /<svg[^>]*>(.*)<\/svg>/.exec(renderToStaticMarkup(createElement(Icon, { name }))) ?? []
  return inside
    .replaceAll('"', "'")
    .replaceAll(/<\/(path|rect|circle)>/g, '')
    .replaceAll("'>", "'/>")
}

test('one image contains the icons of all roles and states, side by side', () => {
  const size = `viewBox='0 0 ${SIDE * SHAPES.length} ${SIDE}'`
  const pen = "fill='none' stroke='%23000' stroke-width='1.5' stroke-linecap='round' stroke-linejoin='round'"
  const drawn = SHAPES.map((name, at) => `<g transform='translate(${SIDE * at})'>${drawingOf(name)}</g>`).join('')

  expect(CSS).toContain(
    `url("data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' ${size} ${pen}>${drawn}</svg>")`,
  )
  expect(CSS).toContain(`/ calc(14px * ${SHAPES.length}) 14px no-repeat`)
})

test.each(Object.entries(ROLE_ICONS))('the role %s has its shape above', (role, icon) => {
  expect(CSS).toContain(`.slot[data-role="${role}"]::before {\n    --shape: ${SHAPES.indexOf(icon)};`)
})

test.each(STATES)('the state %s has its shape below', (state) => {
  expect(CSS).toContain(`.slot[data-state="${state}"]::after {\n    --shape: ${SHAPES.indexOf(STATE_ICONS[state])};`)
})

const { idsOf: columnIds, defaults: DEFAULT_COLUMNS, parse: parseColumns, shown: shownColumns } = SHARD_TABLE

const idsOf = (columns: ReturnType<typeof shownColumns>) => columns.map(({ id }) => id)

test('without a choice the default columns are shown, less important ones only on wide screens', () => {
  const columns = shownColumns(null, {})

  expect(idsOf(columns)).toEqual(DEFAULT_COLUMNS)
  expect(idsOf(columns)).toEqual([
    ...['shard', 'state', 'zone', 'leader', 'members', 'spare', 'lag', 'queries', 'writes'],
    ...['packages', 'window', 'snapshot'],
  ])
  expect(columns.some(({ rank }) => rank === 4)).toBe(true)
})

test('chosen columns are shown once, in order, after the one that names the row, on every screen', () => {
  const columns = shownColumns(['lag', 'zone', 'lag', 'no-such-column', 'shard', 'term'], {})

  expect(idsOf(columns)).toEqual(['shard', 'lag', 'zone', 'term'])
  expect(columns.every(({ rank }) => rank === undefined)).toBe(true)
})

test('with widths set, content is truncated', () => {
  expect(shownColumns(null, { zone: 60 }).every(({ className }) => className?.includes('text-ellipsis'))).toBe(true)
})

test.each([
  ['', null],
  ['no-such-column', null],
  ['lag,zone', ['shard', 'lag', 'zone']],
  ['zone,shard,zone,nonsense', ['shard', 'zone']],
  ['shard', DEFAULT_COLUMNS],
])('the columns of the URL %j', (text, expected) => expect(parseColumns(text)).toEqual(expected))

test('a column moves among the visible ones, never before the one that names the row', () => {
  const ids = ['shard', 'state', 'lag', 'zone']

  expect(movedColumn(ids, 'lag', -1)).toEqual(['shard', 'lag', 'state', 'zone'])
  expect(movedColumn(ids, 'lag', 1)).toEqual(['shard', 'state', 'zone', 'lag'])
  expect(movedColumn(ids, 'state', -1)).toBe(ids)
  expect(movedColumn(ids, 'zone', 1)).toBe(ids)
  expect(movedColumn(ids, 'shard', 1)).toBe(ids)
  expect(movedColumn(ids, 'term', 1)).toBe(ids)
})

test('only unknown columns are the same as no choice', () => {
  expect(columnIds(['renamed-since'])).toEqual(DEFAULT_COLUMNS)
  expect(new Set(SHARD_COLUMNS.map(({ id }) => id)).size).toBe(SHARD_COLUMNS.length)
})

test('a sort order round-trips through its link', () => {
  for (const sort of [
    { column: 'lag', down: true },
    { column: 'zone', down: false },
  ]) {
    expect(parseSort(formatSort(sort), ['lag', 'zone'])).toEqual(sort)
  }
})

test.each(['', 'nothing', 'lag:up', 'lag:down:down'])('%j is no order', (text) => {
  expect(parseSort(text, ['lag'])).toBeUndefined()
})

const behind: SavedView = {
  name: 'behind',
  filter: 'state:behind lag:>1000',
  sort: 'lag:down',
  columns: ['shard', 'lag'],
}

test('a view is a link', () => {
  expect(viewHref(behind)).toBe('/shards?filter=state%3Abehind+lag%3A%3E1000&sort=lag%3Adown&columns=shard%2Clag')
  expect(viewHref({ filter: '', sort: '', columns: null })).toBe('/shards')
})

test('a view replaces one of the same name, a new one comes last', () => {
  const others = [behind, { ...behind, name: 'zone eu', filter: 'zone:eu' }]

  expect(withView(others, { ...behind, filter: '' }).map(({ name, filter }) => [name, filter])).toEqual([
    ['behind', ''],
    ['zone eu', 'zone:eu'],
  ])
  expect(withView(others, { ...behind, name: 'new' }).map(({ name }) => name)).toEqual(['behind', 'zone eu', 'new'])
})

test.each([
  ['tcp_recv_buffer_size', '33554432', '33.6 MB'],
  ['snapshot_interval_sec', '3600', '1 h'],
  ['tcp_user_timeout_ms', '30000', '30 s'],
  ['tcp_user_timeout_ms', '0', '0'],
  ['query_limit', '10000', '10000'],
  ['memory_max_bytes', 'automatic', 'automatic'],
])('the configured %s of %s reads %s', (key, value, text) => expect(configText(key, value)).toBe(text))
