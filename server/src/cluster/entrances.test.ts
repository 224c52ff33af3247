/** Where clients enter: edge routers and proxies that respond. */

import type { FabricKind } from '@vacancy/shared/contract'
import { expect, test } from 'vitest'
import { type Fabric, newComponent, type Polled } from '../fabric/fabric.ts'
import { edgeAddresses, proxyUrls } from './entrances.ts'

const NOW = Date.parse('2026-11-22T12:00:00.000Z')

function component(kind: FabricKind, id: string, ready: object | undefined, change: Partial<Polled> = {}): Polled {
  const about = { kind, id, zone: undefined, shard: undefined, apiUrl: `http://${id}:8080`, registered: undefined }
  const reported = { at: NOW, ready, version: '1', hops: undefined, counters: undefined, rates: undefined }
  return { ...newComponent(about, NOW), ...(ready && { reported: reported as Polled['reported'] }), ...change }
}

const fabricOf = (...components: readonly Polled[]) =>
  ({ components: new Map(components.map((each) => [each.key, each])) }) as unknown as Fabric

const READY = { ready: true, reasons: [], tcp_port: 7_000 }
const FAILED = { code: 'refused', message: 'connection refused', at: NOW }

test('edges that are ready and tell their port are entrances of the wire protocol', () => {
  const { tcp_port: _, ...withoutPort } = READY
  const fabric = fabricOf(
    component('edge', 'e1', READY),
    component('edge', 'e2', withoutPort),
    component('edge', 'e3', undefined),
    component('edge', 'e4', READY, { failure: FAILED, missed: 3 }),
    component('proxy', 'p1', READY),
  )
  expect(edgeAddresses(fabric)).toEqual([
    { id: 'edge e1', shard: '', zone: '', apiUrl: 'http://e1:8080', tcp: { host: 'e1', port: 7_000 } },
  ])
})

test('proxies that are ready are entrances of HTTP', () => {
  const fabric = fabricOf(
    component('proxy', 'p1', READY),
    component('proxy', 'p2', undefined),
    component('edge', 'e1', READY),
  )
  expect(proxyUrls(fabric)).toEqual(['http://p1:8080'])
  expect(proxyUrls(fabricOf())).toEqual([])
})
