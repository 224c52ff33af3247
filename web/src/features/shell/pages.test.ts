import { globSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { KNOWN_PAGES, pageAt, paramsOf } from './pages.ts'

const APP = path.join(import.meta.dirname, '../../app/(console)')

test('the shell has every page of the server', () => {
  const folders = globSync('**/page.tsx', { cwd: APP }).map((file) => `/${path.dirname(file)}`.replace(/^\/\.$/, '/'))
  const paths = folders.map((folder) => folder.replaceAll(/\[\w+\]/g, 'a%20b'))

  expect(paths.length).toBeGreaterThan(20)
  expect(paths.filter((one) => KNOWN_PAGES.resolve(one) === undefined)).toEqual([])
})

test('path parameters are decoded', () => {
  const partsOf = (one: string) => {
    const page = pageAt(one)
    return page && paramsOf(page, one)
  }

  expect(partsOf('/shards/eu%2Fwest/nodes/n%201')).toEqual({ id: 'n 1', shard: 'eu/west', segment: '', topic: '' })
  expect(partsOf('/shards/s3/config')).toEqual({ id: 's3', shard: '', segment: '', topic: '' })
  expect(partsOf('/queue/topics/a%3Ab/jobs/x%2Fy')).toEqual({ id: 'x/y', shard: '', segment: '', topic: 'a:b' })
  expect(pageAt('/imports/new')).not.toBe(pageAt('/imports/other'))
  expect(pageAt('/snapshots/compare')).not.toBe(pageAt('/snapshots/other'))
})

test('sections redirect to their first page, other paths are left to the browser', () => {
  expect(KNOWN_PAGES.resolve('/registry')).toBe('/registry/services')
  expect(KNOWN_PAGES.resolve('/settings')).toBe('/settings/profile')
  for (const other of ['/sign-in', '/api/v1/me', '/docs', '/shards/s3/nothing', '/shards/', '/nothing'])
    expect(KNOWN_PAGES.resolve(other)).toBeUndefined()
})
