import { expect, test } from 'vitest'
import { servingAll, servingBehind, servingHops, servingOf, textOf, toldOf } from './serving.ts'
import type { Hop } from './state.ts'
import { readStatusReply, type Status, statusFrame } from './status.ts'

const BRIDGE: Status = { component: 'bridge', id: 'b1', zone: 'z1', shard: 's1', version: '1' }

/** A reachable hop that says this of itself; one of another maker says nothing. */
const hop = (told: Pick<Status, 'faults' | 'serves'> | undefined): Hop =>
  ({
    links: [{ state: 'open' }],
    // As it arrives.
    status: told && readStatusReply(statusFrame(0, { ...BRIDGE, ...told }).subarray(9)),
  }) as unknown as Hop
const away = { links: [{ state: 'connecting' }] } as unknown as Hop
const down = (shard: string) => hop(toldOf(servingOf(shard, 'down')))
const noLeader = (shard: string) => hop(toldOf(servingOf(shard, 'no_leader')))

test.each([
  ['a bridge that serves', [hop({})], '', true],
  ['a bridge of another maker', [hop(undefined)], '', true],
  ['no bridge', [], 'No node serves the shards: s1.', false],
  ['no reachable bridge', [away], 'No node serves the shards: s1.', false],
  ['bridges that reach no node', [down('s1'), down('s1')], 'No node serves the shards: s1.', false],
  ['one of two bridges that reaches no node', [down('s1'), hop({})], '', true],
  [
    'bridges without a leader',
    [noLeader('s1'), down('s1')],
    'Shards without a leader, which take no writes: s1.',
    true,
  ],
])('a zone router with %s names the shard or not', (_case, bridges, text, serves) => {
  const serving = servingBehind('s1', bridges)
  expect([textOf(serving), serving.serves]).toEqual([text, serves])
})

test('one dead shard is named up to the edge, which stays ready while another one serves', () => {
  const zoneRouter = (...bridges: readonly Hop[]) =>
    hop(toldOf(servingAll(bridges.map((bridge, n) => servingBehind(`s${n + 1}`, [bridge])))))
  const edge = (...routers: readonly Hop[]) => servingAll([servingBehind('zone z1', routers)])
  const one = edge(zoneRouter(down('s1'), hop({})))
  expect([textOf(one), one.serves]).toEqual(['No node serves the shards: s1.', true])
  const all = edge(zoneRouter(down('s1'), down('s2')))
  expect([textOf(all), all.serves]).toEqual(['No node serves the shards: s1, s2.', false])
  const cutOff = servingAll([edge(zoneRouter(hop({}))), servingBehind('zone z2', [away])])
  expect([textOf(cutOff), cutOff.serves]).toEqual(['No node serves the shards: zone z2.', true])
})

test('requests take a bridge that serves them, and any open one when none says so', () => {
  const isOpen = ({ links }: Hop) => links.some(({ state }) => state === 'open')
  const [well, other, leaderless, cutOff] = [hop({}), hop(undefined), noLeader('s1'), down('s1')]
  expect(servingHops([leaderless, well, cutOff, other], true, isOpen)).toEqual([well, other])
  expect(servingHops([leaderless, well, cutOff, other], false, isOpen)).toEqual([leaderless, well, other])
  expect(servingHops([leaderless, cutOff, away], true, isOpen)).toEqual([leaderless, cutOff, away])
})

test('the answer to __status__ has the bytes of before while all shards serve', () => {
  expect(statusFrame(1, { ...BRIDGE, ...toldOf(servingOf('s1', undefined)) })).toEqual(statusFrame(1, BRIDGE))
})
