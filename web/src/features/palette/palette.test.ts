import type { Me, Summary } from '@vacancy/shared/contract'
import { expect, test } from 'vitest'
import { viewHref } from '../shards/views.ts'
import {
  bestRank,
  clusterEntries,
  type Entry,
  found,
  jobEntries,
  momentEntries,
  pageEntries,
  rankOf,
  routeEntries,
  savedEntries,
  stayEntries,
  topicEntries,
  viewEntries,
} from './entries.ts'

const me = (role: Me['person']['role']) => ({ person: { role } }) as Me
const summary = {
  shards: [
    {
      id: 's3',
      zone: 'eu-1',
      message: 'Healthy',
      slots: [
        { node: 'n1', role: 'leader', message: 'Healthy' },
        { node: 'n2', role: 'follower', message: 'Far behind' },
        { node: 'n4', role: 'learner', message: 'Catching up' },
      ],
    },
  ],
} as unknown as Summary

const first = (typed: string, entries: readonly Entry[]) => found(typed, entries, [])[0]?.entries[0]

test('short words find a plan', () => {
  const entries = [...pageEntries(), ...clusterEntries(summary, me('admin'))]

  expect(first('transfer s3 n2', entries)?.href).toBe('/shards/s3?plan=transfer%3As3%3An2')
  expect(first('promote s3 n4', entries)?.label).toBe('Promote n4 of s3')
  expect(first('s3', entries)?.href).toBe('/shards/s3')
  expect(first('prepare eu-1', entries)?.href).toBe('/operations/handovers/new?zone=eu-1')
  expect(first('playground', entries)?.href).toBe('/playground')
})

test('a leader has no transfer or promotion, and only admins get plans', () => {
  const plans = clusterEntries(summary, me('admin')).filter(({ group }) => group === 'Actions')
  expect(plans.map(({ label }) => label)).toEqual([
    'Prepare zone eu-1 for restart',
    'Transfer leadership of s3 to n2',
    'Demote n2 of s3',
    'Promote n4 of s3',
  ])

  expect(clusterEntries(summary, me('viewer')).some(({ group }) => group === 'Actions')).toBe(false)
})

test('plans of a shard that lost its quorum show the reason', () => {
  const [shard] = summary.shards
  const lost = { shards: [{ ...shard, state: 'quorum-lost', message: 'Quorum lost' }] } as unknown as Summary
  const hints = clusterEntries(lost, me('admin')).flatMap(({ id, hint }) => (id.startsWith('plan ') ? [hint] : []))

  expect(hints).toEqual(['Quorum lost', 'Quorum lost', 'Quorum lost'])
})

test('a typed time leads to the cluster and to the charts of then, but not one that is yet to come', () => {
  const now = Date.parse('2026-11-25T19:00:00Z')
  const entries = momentEntries('18:20', now)
  const { pathname, searchParams } = new URL(entries[1]?.href ?? '', 'http://console')

  expect(first('18:20', [...pageEntries(), ...entries])?.href).toBe('/?at=2026-11-25T18%3A20%3A00.000Z')
  expect(pathname).toBe('/dashboards/engine')
  expect(Object.fromEntries(searchParams)).toEqual({
    from: '2026-11-25T18:05:00.000Z',
    to: '2026-11-25T18:35:00.000Z',
    pin: '2026-11-25T18:20:00.000Z',
  })
  for (const typed of ['', 's3', 'now-3h', '2026-11-26 18:20']) expect(momentEntries(typed, now)).toEqual([])
})

test('nodes keep the shape of their role, and are found by role and state', () => {
  const nodes = clusterEntries(summary, me('viewer')).filter(({ id }) => id.startsWith('node '))

  expect(nodes.map(({ icon }) => icon)).toEqual(['key', 'dot', 'ring'])
  expect(first('learner', nodes)?.label).toBe('s3 / n4')
  expect(first('far behind', nodes)?.label).toBe('s3 / n2')
})

test('entry ids are unique', () => {
  const ids = pageEntries().map(({ id }) => id)
  expect(new Set(ids).size).toBe(ids.length)
})

test('without input recent entries come first, in order', () => {
  const groups = found('', pageEntries(), ['page /audit', 'gone', 'page /shards'])

  expect(groups[0]).toMatchObject({ name: 'Recent', entries: [{ label: 'Audit' }, { label: 'Shards' }] })
})

test('saved queries are found by name', () => {
  const entries = savedEntries({ queries: [{ id: 'q1', name: 'weekend in Paris' }], imports: [] })
  expect(first('run saved: weekend'.replace(':', ''), entries)?.href).toBe('/playground/saved/q1')
})

test('it works before data is loaded', () => {
  expect(clusterEntries(undefined, me('admin'))).toEqual([])
  expect(found('zzz', pageEntries(), [])).toEqual([])
})

test('a saved view is found by name and links to the list in that view', () => {
  const views = viewEntries([{ name: 'lagging', filter: 'lag:>1000', sort: '', columns: null }], 'shards', viewHref)

  expect(found('lagg', views, [])[0]).toMatchObject({
    name: 'Views',
    entries: [{ label: 'lagging', hint: 'lag:>1000', href: '/shards?filter=lag%3A%3E1000' }],
  })
})

test('route and the name of a segment is the best entry, and only then there is one', () => {
  const typed = 'route of paris centre'

  expect(first(typed, [...routeEntries(typed), ...pageEntries()])?.href).toBe('/topology?segment=paris+centre')
  expect(routeEntries('routers')).toEqual([])
  expect(first('topology', pageEntries())?.href).toBe('/topology')
})

test('a topic is found by name, and a job by its id in each topic that has one', () => {
  const topics = topicEntries([
    { topic: 'hotel-sync', dead: 2 },
    { topic: 'mail', dead: 0 },
  ])
  expect(first('hotel', topics)).toMatchObject({ href: '/queue/topics/hotel-sync', hint: '2 dead jobs' })
  expect(first('topic mail', topics)?.href).toBe('/queue/topics/mail')
  const jobs = jobEntries([
    { id: 'order/77', topic: 'mail', state: 'dead' },
    { id: 'order/77', topic: 'hotel-sync', state: 'ready' },
  ])
  expect(found('order/77', jobs, [])[0]?.entries.map(({ href, hint }) => [href, hint])).toEqual([
    ['/queue/topics/mail/jobs/order%2F77', 'dead, mail'],
    ['/queue/topics/hotel-sync/jobs/order%2F77', 'ready, hotel-sync'],
  ])
})

test('a stay is looked for in each shard, or in the one whose name follows', () => {
  const hrefs = (typed: string) => stayEntries(typed, summary).map(({ href }) => href)

  expect(hrefs('find stay order-48121')).toEqual(['/shards/s3/stays?stay=order-48121'])
  expect(hrefs('stay order 7')).toEqual(['/shards/s3/stays?stay=order+7'])
  expect(hrefs('stay order-7 s3')).toEqual(['/shards/s3/stays?stay=order-7'])
  expect(hrefs('find stay')).toEqual(['/shards/s3/stays'])
  expect(hrefs('stay s3')).toEqual(['/shards/s3/stays'])
  expect(hrefs('staying')).toEqual([])
})

const order = (typed: string, names: readonly string[]) =>
  names
    .filter((name) => rankOf(typed, name) !== undefined)
    .toSorted((a, b) => (rankOf(typed, b) ?? 0) - (rankOf(typed, a) ?? 0))

test('a prefix ranks above a word prefix, and that above scattered letters', () => {
  expect(order('sh', ['push', 'new shards', 'shards', 'snapshot s h'])).toEqual([
    'shards',
    'new shards',
    'push',
    'snapshot s h',
  ])
})

test('letters in order match, missing letters do not', () => {
  expect(rankOf('trs3', 'transfer s3 n2')).toBeDefined()
  expect(rankOf('transfer s3 n2', 'transfer leadership of s3 to n2')).toBeDefined()
  expect(rankOf('xyz', 'shards')).toBeUndefined()
  expect(rankOf('aa', 'shards')).toBeUndefined()
})

test('empty input ranks all names equally', () => {
  expect(rankOf('  ', 'shards')).toBe(rankOf('', 'audit'))
})

test('aliases count as well', () => {
  expect(bestRank('upload', ['New import', 'upload csv'])).toBeGreaterThan(900)
  expect(bestRank('upload', ['Audit', undefined])).toBeUndefined()
})
