import { globSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { PAGES, pageAt } from './pages.ts'
import { routes } from './routes.ts'

const APP = path.join(import.meta.dirname, '../app/(console)')

test('the server has the same pages', () => {
  const folders = globSync('**/page.tsx', { cwd: APP }).map((file) => `/${path.dirname(file)}`.replace(/^\/\.$/, '/'))

  const shapeOf = (one: string) => one.replaceAll(/:\w+|\[\w+\]/g, '*')
  expect(folders.map(shapeOf).sort()).toEqual(
    Object.values(PAGES)
      .map((page) => shapeOf(page.path))
      .sort(),
  )
})

test('path parameters are decoded', () => {
  const partsOf = (one: string) => pageAt(one)?.params

  expect(partsOf('/shards/eu%2Fwest/nodes/n%201')).toEqual({ id: 'n 1', shard: 'eu/west', segment: '', topic: '' })
  expect(partsOf('/shards/s3/config')).toEqual({ id: 's3', shard: '', segment: '', topic: '' })
  expect(partsOf('/queue/topics/a%3Ab/jobs/x%2Fy')).toEqual({ id: 'x/y', shard: '', segment: '', topic: 'a:b' })
  expect(pageAt('/imports/new')?.name).toBe('newImport')
  expect(pageAt('/snapshots/compare')?.name).toBe('compareSnapshots')
})

test('sections redirect to their first page, other paths are left to the browser', () => {
  expect(pageAt('/registry')).toMatchObject({ name: 'services', path: '/registry/services' })
  expect(pageAt('/settings')).toMatchObject({ name: 'profile', path: '/settings/profile' })
  for (const other of ['/sign-in', '/api/v1/me', '/docs', '/shards/s3/nothing', '/shards/', '/nothing'])
    expect(pageAt(other)).toBeUndefined()
})

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
