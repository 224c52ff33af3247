/**
 * What the HTTP proxy costs: real searches of a real node, beside a bare `node:http` that reads the same body and
 * answers with as many bytes.
 */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from '@vacancy/client'
import { dayOf, formatDay } from '@vacancy/shared'
import { freePort } from '@vacancy/testkit/free-port'
import type { Program } from '@vacancy/testkit/program'
import { type RowReport, rowOf } from '../format.ts'
import { inTurns } from '../in-turns.ts'
import { median, ratios } from '../pauses.ts'
import { processSeconds } from '../process-time.ts'
import { lastJson, runProgram, startProgram, stopProgram } from '../programs.ts'
import { judged, type Measure } from '../verdict.ts'
import type { HttpPlan, HttpResult } from './http-clients.ts'
import { SEGMENT } from './names.ts'

export const PROXY_ROWS = [
  { id: 6, hits: 20, max: 2.5 },
  { id: 7, hits: 200, max: 4 },
] as const
/** Row 9 of the targets of one node. */
export const PROXY_LOAD_ROW = 8
const CONNECTIONS = 50
const LOAD_CONNECTIONS = 200
const LOAD_HITS = 20
const PROPERTIES = 200
const NIGHTS = 3

type Options = { readonly requests: number; readonly rounds: number }
type Say = (text: string) => void
type Opened = { readonly program: Program; readonly port: number }

/** A node with 200 properties that a search finds, and the proxy in front of it. */
export type Proxied = { readonly node: Opened; readonly proxy: Opened; readonly close: () => Promise<void> }

export async function openProxied(): Promise<Proxied> {
  const dir = mkdtempSync(join(tmpdir(), 'vacancy-bench-proxy-'))
  const codecs = join(dir, 'codecs.yml')
  writeFileSync(codecs, 'rate_features:\n  - breakfast\n')
  const [tcp, api] = await Promise.all([freePort(), freePort()])
  const node = startProgram([
    ...['bin/vacancy.mjs', 'run', '--shard-id', 's1', '--codecs', codecs, '--data-dir', join(dir, 'data')],
    ...['--tcp-port', String(tcp), '--api-port', String(api), '--log-level', 'error'],
  ])
  await node.printed(/^serving: tcp/m)
  await fill(tcp)
  const port = await freePort()
  const proxy = startProgram([
    ...['bin/vacancy.mjs', 'proxy', '--mode', 'standalone', '--upstream-addr', '127.0.0.1'],
    ...['--upstream-port', String(tcp), '--listening-addr', '127.0.0.1', '--http-port', String(port)],
    ...['--log-level', 'error'],
  ])
  await proxy.printed(/^serving: http/m)
  await search({ port, connections: 1, requests: 100, body: bodyOf(1) })
  return {
    node: { program: node, port: tcp },
    proxy: { program: proxy, port },
    close: async () => {
      await stopProgram(proxy)
      await stopProgram(node)
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

const dates = () => Array.from({ length: NIGHTS }, (_, n) => formatDay(dayOf(Date.now()) + 1 + n))

async function fill(port: number): Promise<void> {
  const client = await connect({ port })
  const place = { area: 'centre', propertyType: 'hotel', category: 'standard', stars: 4, amenities: ['wifi'] }
  // Writes of one connection keep their order.
  const writes = Array.from({ length: PROPERTIES }, (_, n) => {
    const propertyId = `hotel_${String(n).padStart(5, '0')}`
    const night = { propertyId, roomType: 'double', availability: 9, finalPrice: 100, rateFeatures: ['breakfast'] }
    return [
      client.setProperty({ segment: SEGMENT, propertyId, ...place, latitude: 48.8, longitude: 2.3 }),
      ...dates().map((date) => client.setPackage({ ...night, date })),
    ]
  })
  await Promise.all(writes.flat())
  await client.close()
}

function bodyOf(hits: number): string {
  const search = { segment: SEGMENT, room_type: 'double', date: dates(), final_price: 150, limit: hits }
  return JSON.stringify({ command: 'SEARCHAVAIL', body: search })
}

async function search(plan: HttpPlan): Promise<HttpResult> {
  return lastJson(await runProgram(['bench/src/fabric/http-clients.ts', JSON.stringify(plan)])) as HttpResult
}

async function openBare(bytes: number): Promise<Opened> {
  const program = startProgram(['bench/src/fabric/baselines.ts', 'http', String(bytes)])
  const [line] = await program.printed(/^\{.*\}$/m)
  return { program, port: (lastJson(line ?? '') as { tcp: number }).tcp }
}

type Cost = HttpResult & { readonly micros: number; readonly perSecond: number }

async function costOf({ program, port }: Opened, plan: Omit<HttpPlan, 'port'>): Promise<Cost> {
  const before = processSeconds(program.pid)
  const result = await search({ ...plan, port })
  const micros = ((processSeconds(program.pid) - before) / plan.requests) * 1e6
  return { ...result, micros, perSecond: plan.requests / result.seconds }
}

/** The proxy and a bare server in turns. */
async function costsOf(
  { proxy }: Proxied,
  { rounds }: Options,
  plan: Omit<HttpPlan, 'port'>,
): Promise<{ readonly ours: Cost[]; readonly bare: Cost[] }> {
  const { bodyBytes } = await search({ ...plan, port: proxy.port, requests: plan.connections })
  const server = await openBare(bodyBytes)
  try {
    return await inTurns(rounds, { ours: () => costOf(proxy, plan), bare: () => costOf(server, plan) })
  } finally {
    await stopProgram(server.program)
  }
}

const medianOf = (costs: readonly Cost[], which: 'micros' | 'perSecond' | 'p50' | 'p99') =>
  median(costs.map((cost) => cost[which]))

export async function measureProxyCost(
  proxied: Proxied,
  options: Options,
  { id, hits, max }: (typeof PROXY_ROWS)[number],
  say: Say,
): Promise<RowReport> {
  const requests = Math.round(options.requests / (hits > 100 ? 10 : 2))
  const { ours, bare } = await costsOf(proxied, options, { connections: CONNECTIONS, requests, body: bodyOf(hits) })
  const micros = (costs: readonly Cost[]) => costs.map((cost) => cost.micros)
  const baseline = { name: 'bare', value: medianOf(bare, 'micros') }
  const over = ratios(micros(ours), micros(bare))
  say(`proxy, ${hits} hits: done`)
  return rowOf(id, `proxy, searches with ${hits} hits`, [
    { name: 'processor time of a request', value: medianOf(ours, 'micros'), unit: 'µs', baseline },
    judged({ name: 'processor time over a bare server', ...over, unit: '×', target: { atMost: max } }),
  ])
}

/** Searches through the proxy on 200 connections, and straight to the node. */
export async function measureProxyLoad(proxied: Proxied, options: Options, say: Say): Promise<RowReport> {
  const requests = Math.round(options.requests / 2)
  const plan = { connections: LOAD_CONNECTIONS, requests, body: bodyOf(LOAD_HITS) }
  const { ours, bare } = await costsOf(proxied, options, plan)
  const straight = await searchesStraight(proxied.node.port, requests)
  const share = (medianOf(ours, 'perSecond') / medianOf(bare, 'perSecond')) * 100
  const beside = (name: string, which: 'perSecond' | 'p50') => {
    return { name, value: medianOf(ours, which), baseline: { name: 'bare', value: medianOf(bare, which) } }
  }
  const measures: Measure[] = [
    judged({ ...beside('searches', 'perSecond'), unit: '/s', target: { atLeast: 30_000 } }),
    judged({ name: 'share of a bare server', value: share, unit: '%', target: { atLeast: 50 } }),
    judged({ ...beside('p50', 'p50'), unit: 'ms', target: { atMost: 4 } }),
    {
      name: 'share of searches straight to the node, by one client process',
      value: (medianOf(ours, 'perSecond') / straight) * 100,
      unit: '%',
      baseline: { name: 'straight, /s', value: straight },
    },
  ]
  say('proxy, 200 connections: done')
  const what = `proxy, ${LOAD_CONNECTIONS} connections, ${LOAD_HITS} hits`
  return rowOf(PROXY_LOAD_ROW, what, measures)
}

/** @returns searches a second, as many in flight as through the proxy */
async function searchesStraight(port: number, requests: number): Promise<number> {
  const client = await connect({ port, connections: 4 })
  const fields = { segment: SEGMENT, roomType: 'double', dates: dates(), finalPrice: 150, limit: LOAD_HITS }
  let left = requests
  const lane = async () => {
    while (left-- > 0) await client.searchAvailability(fields)
  }
  const begun = performance.now()
  await Promise.all(Array.from({ length: LOAD_CONNECTIONS }, lane))
  const perSecond = requests / ((performance.now() - begun) / 1000)
  await client.close()
  return perSecond
}
