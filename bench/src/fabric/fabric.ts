/**
 * `npm run bench -- fabric`: what a router and a bridge cost for each request, beside a relay that passes bytes on, in
 * turns on the same machine.
 */

import { EXIT } from '@vacancy/shared'
import { defineCommand, whole } from '@vacancy/shared/node'
import type { Program } from '@vacancy/testkit/program'
import { failure } from '../failure.ts'
import { type RowReport, rowOf } from '../format.ts'
import { inTurns } from '../in-turns.ts'
import { median, ratios } from '../pauses.ts'
import { processSeconds } from '../process-time.ts'
import { lastJson, runProgram, startProgram, stopProgram } from '../programs.ts'
import { measureSection, RECORD_FLAGS, type SectionHead, storeSection } from '../record-section.ts'
import { refusePartialWrite } from '../results.ts'
import { judged, type Measure } from '../verdict.ts'
import type { LoadPlan, LoadResult } from './clients.ts'
import { BRIDGE, ROUTER, SHARD, ZONE } from './names.ts'
import { measureProxyCost, measureProxyLoad, openProxied, PROXY_LOAD_ROW, PROXY_ROWS } from './proxy.ts'

type Hop = 'router' | 'bridge'

type CostRow = {
  readonly id: number
  readonly hop: Hop
  readonly replyBytes: number
  /** Processor time of a request, as a multiple of the relay's. */
  readonly max: number
}

const COST_ROWS: readonly CostRow[] = [
  { id: 1, hop: 'router', replyBytes: 2_000, max: 0.8 },
  { id: 2, hop: 'router', replyBytes: 20_000, max: 1.25 },
  { id: 3, hop: 'bridge', replyBytes: 2_000, max: 0.8 },
  { id: 4, hop: 'bridge', replyBytes: 20_000, max: 1.25 },
]
const PATH_ROW = 5
const ROWS = [...COST_ROWS, ...PROXY_ROWS]
  .map(({ id }) => id)
  .concat(PATH_ROW, PROXY_LOAD_ROW)
  .sort()
const PATH_RATE = 1_000
const PATH_RATIO_MAX = 1.5
const CONNECTIONS = 50

export const fabricCommand = defineCommand({
  name: 'bench fabric',
  component: 'fabric',
  summary: 'Sends requests through routers and bridges, and through relays that pass bytes on, in turns.',
  flags: {
    requests: { ...whole(100_000, 1_000, 10_000_000), summary: 'Requests of a run.' },
    rounds: { ...whole(5, 1, 100), summary: 'Runs of each; figures are their medians.' },
    only: { type: 'list', value: '1,3', summary: 'These rows only.' },
    ...RECORD_FLAGS,
  },
  run: async ({ flags }) => {
    refusePartialWrite(flags)
    const unknown = flags.only?.find((id) => !ROWS.includes(Number(id)))
    if (unknown !== undefined) throw failure(`there is no row ${unknown}: ${ROWS.join(', ')}`)
    const { section } = await measureSection(headOf(flags), async () => ({
      rows: await measureFabric(flags, (text) => process.stderr.write(`${text}\n`)),
    }))
    storeSection(section, flags)
    return EXIT.ok
  },
})

type FabricBenchOptions = {
  readonly requests: number
  readonly rounds: number
  readonly only: readonly string[] | undefined
}

const headOf = ({ requests, rounds }: FabricBenchOptions): SectionHead => ({
  name: 'fabric',
  title: 'Routers and bridges',
  command: `npm run bench -- fabric --requests ${requests} --rounds ${rounds}`,
  scope: `${requests.toLocaleString('en')} requests over ${CONNECTIONS} connections with one request in flight each`,
  how: [
    'The relay has one upstream socket for each client and parses nothing. Behind both is the same program, which answers every request with the same bytes.',
    'Processor time is that of the hop, user and system. Ours and the relay run in turns; figures are medians.',
    'The proxy is in front of a real node with 200 properties; the bare server is `node:http` that reads the same body and answers with as many bytes. Row 8 has the targets of one node for the proxy.',
    'The whole path is edge router, zone router and bridge, beside three relays in a row.',
  ],
})

/** Measures every row. */
async function measureFabric(options: FabricBenchOptions, say: (text: string) => void): Promise<RowReport[]> {
  const isWanted = (id: number) => options.only?.includes(String(id)) ?? true
  const rows: RowReport[] = []
  for (const row of COST_ROWS) if (isWanted(row.id)) rows.push(await measureCost(options, row, say))
  if (isWanted(PATH_ROW)) rows.push(await measurePath(options, say))
  if ([...PROXY_ROWS.map(({ id }) => id), PROXY_LOAD_ROW].some(isWanted)) {
    const proxied = await openProxied()
    try {
      for (const row of PROXY_ROWS) if (isWanted(row.id)) rows.push(await measureProxyCost(proxied, options, row, say))
      if (isWanted(PROXY_LOAD_ROW)) rows.push(await measureProxyLoad(proxied, options, say))
    } finally {
      await proxied.close()
    }
  }
  return rows
}

/** Processor time of the hop for a request, µs, and requests a second. */
type Cost = { readonly micros: number; readonly perSecond: number }

async function measureCost(
  { requests, rounds }: FabricBenchOptions,
  row: CostRow,
  say: (text: string) => void,
): Promise<RowReport> {
  const amount = Math.round(requests / (row.replyBytes > 10_000 ? 2 : 1))
  const loads = { ours: () => costOf(row.hop, row, amount), relay: () => costOf('relay', row, amount) }
  const { ours, relay } = await inTurns(rounds, loads, (round) =>
    say(`${row.hop}, replies of ${row.replyBytes} bytes: round ${round} of ${rounds}`),
  )
  const all = (costs: readonly Cost[], which: keyof Cost) => costs.map((cost) => cost[which])
  const beside = (name: string, which: keyof Cost, unit: 'µs' | '/s'): Measure => {
    const baseline = { name: 'relay', value: median(all(relay, which)) }
    return { name, value: median(all(ours, which)), unit, baseline }
  }
  const over = ratios(all(ours, 'micros'), all(relay, 'micros'))
  return rowOf(row.id, `${row.hop}, replies of ${row.replyBytes.toLocaleString('en')} bytes`, [
    beside('processor time of a request', 'micros', 'µs'),
    judged({ name: 'processor time over the relay', ...over, unit: '×', target: { atMost: row.max } }),
    beside('requests', 'perSecond', '/s'),
  ])
}

async function costOf(kind: Hop | 'relay', { hop, replyBytes }: CostRow, requests: number): Promise<Cost> {
  const upstream = await openUpstream(replyBytes, hop)
  const measured = kind === 'relay' ? await openRelay(upstream.tcp) : await openHop(hop, upstream)
  try {
    const before = processSeconds(measured.program.pid)
    const load = await runLoad({ port: measured.tcp, connections: CONNECTIONS, requests, rate: 0 })
    const cpu = processSeconds(measured.program.pid) - before
    return { micros: (cpu / requests) * 1e6, perSecond: requests / load.seconds }
  } finally {
    await stopProgram(measured.program)
    await stopProgram(upstream.program)
  }
}

/** Latency at a fixed rate through all hops, beside relays. */
async function measurePath({ rounds }: FabricBenchOptions, say: (text: string) => void): Promise<RowReport> {
  const requests = PATH_RATE * 10
  const ours: LoadResult[] = []
  const relays: LoadResult[] = []
  for (let round = 0; round < rounds; round++) {
    for (const [kind, into] of [
      ['ours', ours],
      ['relays', relays],
    ] as const) {
      const path = kind === 'ours' ? await openPath() : await openRelays()
      try {
        into.push(await runLoad({ port: path.tcp, connections: CONNECTIONS, requests, rate: PATH_RATE }))
      } finally {
        for (const program of path.programs) await stopProgram(program)
      }
    }
    say(`whole path: round ${round + 1} of ${rounds}`)
  }
  const at = (results: readonly LoadResult[], which: 'p50' | 'p99') => median(results.map((each) => each[which]))
  const ratio = at(ours, 'p50') / at(relays, 'p50')
  const measures: Measure[] = [
    { name: 'p50', value: at(ours, 'p50'), unit: 'ms', baseline: { name: 'three relays', value: at(relays, 'p50') } },
    judged({ name: 'p50 over three relays', value: ratio, unit: '×', target: { atMost: PATH_RATIO_MAX } }),
    { name: 'p99', value: at(ours, 'p99'), unit: 'ms', baseline: { name: 'three relays', value: at(relays, 'p99') } },
  ]
  const what = `edge, zone router and bridge at ${PATH_RATE.toLocaleString('en')} requests a second`
  return rowOf(PATH_ROW, what, measures)
}

// --- Programs ---

type Opened = { readonly program: Program; readonly tcp: number; readonly http: number }

async function openUpstream(replyBytes: number, before: Hop): Promise<Opened> {
  const status =
    before === 'router' ? { component: 'bridge', id: BRIDGE, zone: ZONE, shard: SHARD, version: '0' } : undefined
  return await opened(startProgram(['bench/src/fabric/upstream.ts', JSON.stringify({ replyBytes, status })]))
}

async function openRelay(port: number): Promise<Opened> {
  return await opened(startProgram(['bench/src/fabric/baselines.ts', 'relay', String(port)]))
}

async function opened(program: Program): Promise<Opened> {
  const [line] = await program.printed(/^\{.*\}$/m)
  const { tcp, http = 0 } = lastJson(line ?? '') as { tcp: number; http?: number }
  return { program, tcp, http }
}

async function openHop(hop: Hop, upstream: Opened): Promise<Opened> {
  const around = [
    ...['--registry-addr', `127.0.0.1:${upstream.http}`, '--resolver-addr', `127.0.0.1:${upstream.http}`],
    ...['--listen-host', '127.0.0.1', '--api-host', '127.0.0.1', '--api-port', '0', '--log-level', 'error'],
  ]
  const own =
    hop === 'router'
      ? ['router', '--mode', 'zone', '--zone-id', ZONE, '--router-id', ROUTER, '--tcp-port', '0']
      : ['bridge', '--zone-id', ZONE, '--shard-id', SHARD, '--bridge-id', BRIDGE, '--listen-port', '0']
  return await ready(startProgram(['bin/vacancy.mjs', ...own, ...around]))
}

async function ready(program: Program): Promise<Opened> {
  const [, tcp, http] = await program.printed(/^serving: tcp \S+:(\d+), http \S+:(\d+)$/m)
  const untilMs = performance.now() + 15_000
  for (;;) {
    const response = await fetch(`http://127.0.0.1:${http}/ready`)
    const body = await response.text()
    if (response.ok) return { program, tcp: Number(tcp), http: Number(http) }
    if (performance.now() > untilMs) throw failure(`a component is not ready after 15 s: ${body}`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

type Path = { readonly tcp: number; readonly programs: readonly Program[] }

const PATH_REPLY_BYTES = 2_000

/** Each hop finds the next one by its own upstream's registry and resolver. */
async function openPath(): Promise<Path> {
  const node = await openUpstream(PATH_REPLY_BYTES, 'bridge')
  const bridge = await openHop('bridge', node)
  const directory = await openDirectory(bridge.tcp)
  const zone = await openHop('router', directory)
  const entry = await openDirectory(zone.tcp)
  const edge = await ready(
    startProgram([
      ...['bin/vacancy.mjs', 'router', '--mode', 'edge', '--tcp-port', '0'],
      ...['--registry-addr', `127.0.0.1:${entry.http}`, '--resolver-addr', `127.0.0.1:${entry.http}`],
      ...['--listen-host', '127.0.0.1', '--api-host', '127.0.0.1', '--api-port', '0', '--log-level', 'error'],
    ]),
  )
  return { tcp: edge.tcp, programs: [edge, entry, zone, directory, bridge, node].map(({ program }) => program) }
}

/** Registry and resolver that lead to a port. */
async function openDirectory(port: number): Promise<Opened> {
  return await opened(startProgram(['bench/src/fabric/upstream.ts', JSON.stringify({ replyBytes: 100, port })]))
}

async function openRelays(): Promise<Path> {
  const node = await openUpstream(PATH_REPLY_BYTES, 'bridge')
  const third = await openRelay(node.tcp)
  const second = await openRelay(third.tcp)
  const first = await openRelay(second.tcp)
  return { tcp: first.tcp, programs: [first, second, third, node].map(({ program }) => program) }
}

async function runLoad(plan: LoadPlan): Promise<LoadResult> {
  return lastJson(await runProgram(['bench/src/fabric/clients.ts', JSON.stringify(plan)])) as LoadResult
}
