import { expect, test } from 'vitest'
import { routes } from './routes.ts'

test.each([
  [routes.overview(), '/'],
  [routes.dashboard('d', { from: 'now-1h' }), '/dashboards/d?from=now-1h'],
  [routes.topology({ focus: 'edge e' }), '/topology?focus=edge+e'],
  [routes.shards({ filter: 'lag:>5', sort: '', columns: undefined }), '/shards?filter=lag%3A%3E5'],
  [routes.node('s/1', 'n 1'), '/shards/s%2F1/nodes/n%201'],
  [routes.shardSnapshots('s/1'), '/shards/s%2F1/snapshots'],
  [routes.segment('s/1', 'ü', { area: 'a' }), '/shards/s%2F1/segments/%C3%BC?area=a'],
  [
    routes.property('s1', 'a/b', 'h?1', { from: '2026-11-20' }),
    '/shards/s1/segments/a%2Fb/properties/h%3F1?from=2026-11-20',
  ],
  [routes.plan('transfer', 's1', 'n2'), '/shards/s1?plan=transfer%3As1%3An2'],
  [routes.plan('transfer', 's1'), '/shards/s1?plan=transfer%3As1'],
  [routes.signIn(), '/sign-in'],
  [routes.signIn('/shards?a=1'), '/sign-in?next=%2Fshards%3Fa%3D1'],
])('%s', (url, expected) => expect(url).toBe(expected))
