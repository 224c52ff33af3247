/**
 * Where does a segment go, and why: the registry, each router and each bridge on the way are queried, and each one's
 * own reply is shown. Nothing is derived from replies of another component.
 */

import type { Level, RouteHop, RouteView, ShardView } from '@vacancy/shared/contract'
import { sentence, zoneText } from '@vacancy/shared/numbers'
import { z } from 'zod'
import { NodeHttpError } from '../http/node-http.ts'
import type { Fabric, Polled } from './fabric.ts'
import { FABRIC } from './fabric.ts'
import { parsed } from './replies.ts'

const BODY_KEPT = 4_096
/** Of a kind; the others are named. */
const HOPS_MAX = 20

const ownerBody = z.object({
  shard: z.string(),
  zone: z.string(),
  claims: z.array(z.object({ shard: z.string() })).default([]),
  reserved_until: z.string().optional(),
})
const lookupBody = z.object({
  route: z.string(),
  zone: z.string().optional(),
  shard: z.string().optional(),
  hops: z.array(z.object({ id: z.string(), connections: z.number().default(0), fault: z.string().default('') })),
})
const bridgeBody = z.object({
  shard: z.string(),
  leader: z.string().nullish(),
  nodes: z.array(
    z.object({
      id: z.string(),
      role: z.string(),
      health: z.string(),
      lag: z.number().nullish(),
      connections: z.number(),
      fault: z.string().default(''),
    }),
  ),
})

type Reply = Pick<RouteHop, 'url' | 'status' | 'milliseconds' | 'body'> & { readonly error: string }
type Verdict = { readonly level: Level; readonly answer: string; readonly why: string }

/** @param shards the observed shards: the nodes at the end of the way */
export async function routeOfSegment(
  fabric: Fabric,
  segment: string,
  shards: readonly ShardView[],
): Promise<RouteView> {
  const all = [...fabric.components.values()].sort((a, b) => NATURAL.compare(a.key, b.key))
  const of = (kind: Polled['kind']) => all.filter((each) => each.kind === kind)
  const name = encodeURIComponent(segment)
  const [registry] = of('registry')
  const owner = registry && (await requestOwner(fabric, registry, name))
  const zone = owner?.found?.zone
  const shard = owner?.found?.shard
  const routers = zone === undefined ? of('zone-router') : of('zone-router').filter((each) => each.zone === zone)
  const bridges = shard === undefined ? [] : of('bridge').filter((each) => each.shard === shard)
  const lookup = (component: Polled) => requestRouter(fabric, component, name, component.kind === 'edge' ? zone : shard)
  const [edgeHops, routerHops, bridgeHops] = await Promise.all([
    Promise.all(of('edge').slice(0, HOPS_MAX).map(lookup)),
    Promise.all(routers.slice(0, HOPS_MAX).map(lookup)),
    Promise.all(bridges.slice(0, HOPS_MAX).map((bridge) => requestBridge(fabric, bridge))),
  ])
  const view = shards.find(({ id }) => id === shard)
  const hops = [...(owner ? [owner.hop] : []), ...edgeHops, ...routerHops, ...bridgeHops, ...nodeHops(view)]
  return { segment, zone: zone ?? null, shard: shard ?? null, hops, ...concluded(segment, hops, shard, view) }
}

async function requestOwner(fabric: Fabric, registry: Polled, name: string) {
  const reply = await request(fabric, registry, `/segments/${name}`, fabric.config.token)
  const found = reply.status === 200 ? parsed(ownerBody, reply.body) : undefined
  const others = (found?.claims ?? []).map(({ shard }) => shard).filter((shard) => shard !== found?.shard)
  const verdict: Verdict = found
    ? {
        level: others.length > 0 ? 'warn' : 'ok',
        answer: `Shard ${found.shard} in ${zoneText(found.zone)}`,
        why:
          others.length > 0
            ? `Also claimed by ${others.join(', ')}: the first claim counts`
            : found.reserved_until === undefined
              ? 'Claimed by its leader'
              : `Reserved until ${found.reserved_until}, not claimed yet`,
      }
    : reply.status === 404
      ? { level: 'crit', answer: 'Unknown segment', why: 'No shard claims it, and it is not reserved' }
      : noVerdict(reply)
  return { found, hop: hopOf(registry, reply, verdict) }
}

async function requestRouter(
  fabric: Fabric,
  router: Polled,
  name: string,
  expected: string | undefined,
): Promise<RouteHop> {
  const reply = await request(fabric, router, `/routes?segment=${name}`)
  return hopOf(router, reply, routerVerdict(router, reply, expected))
}

function routerVerdict(router: Polled, reply: Reply, expected: string | undefined): Verdict {
  const found = reply.status === 200 || reply.status === 404 ? parsed(lookupBody, reply.body) : undefined
  if (!found) return noVerdict(reply)
  const via = router.kind === 'edge' ? found.zone : found.shard
  const what = router.kind === 'edge' ? sentence(zoneText(via ?? '')) : `Shard ${via}`
  const next = router.kind === 'edge' ? 'zone router' : 'bridge'
  switch (found.route) {
    case 'unknown':
      return { level: 'crit', answer: 'Unknown segment: 404', why: 'Its routes do not have this segment' }
    case 'unloaded':
      return { level: 'crit', answer: 'No routes yet: 503', why: 'It has not loaded routes from the registry' }
    case 'no_hops':
      return {
        level: 'crit',
        answer: `${via ? what : 'No shard'}: 503`,
        why: via ? `No ${next} of it is registered` : 'The zone lists the segment, and no shard with a bridge has it',
      }
  }
  const open = found.hops.filter(({ connections }) => connections > 0)
  const answer = `${what}, through ${listOf(found.hops.map(({ id }) => id))}`
  if (via !== expected && expected !== undefined)
    return { level: 'warn', answer, why: `The registry has ${expected}: these routes are of another version` }
  if (open.length === 0) {
    const faults = found.hops.map(({ id, fault }) => `${id}: ${fault || 'connecting'}`)
    return { level: 'crit', answer, why: `No connection: ${faults.join('; ')}` }
  }
  if (open.length < found.hops.length) {
    const closed = found.hops.filter(({ connections }) => connections === 0).map(({ id }) => id)
    return { level: 'warn', answer, why: `Not connected to ${listOf(closed)}` }
  }
  return { level: 'ok', answer, why: 'Connected to each of them' }
}

async function requestBridge(fabric: Fabric, bridge: Polled): Promise<RouteHop> {
  const reply = await request(fabric, bridge, '/topology')
  const found = reply.status === 200 ? parsed(bridgeBody, reply.body) : undefined
  if (!found) return hopOf(bridge, reply, noVerdict(reply))
  const readers = found.nodes.filter(({ role }) => role === 'follower')
  const others = found.nodes.filter(({ role }) => role !== 'follower' && role !== 'leader')
  const left = others.map(({ id, health, fault }) => `${id} is left out: ${fault || health}`)
  const leader = found.nodes.find(({ id }) => id === found.leader)
  const writes = leader ? `Writes to ${leader.id}` : 'Writes wait: no leader'
  const reads = readers.length > 0 ? `reads to ${listOf(readers.map(({ id }) => id))}` : 'reads to the leader'
  const isConnected = leader !== undefined && leader.connections > 0
  return hopOf(bridge, reply, {
    level: isConnected ? (left.length > 0 ? 'warn' : 'ok') : 'crit',
    answer: `${writes}, ${reads}`,
    why:
      [
        leader
          ? isConnected
            ? `A majority names ${leader.id}`
            : `Not connected to ${leader.id}: ${leader.fault}`
          : '',
        ...left,
      ]
        .filter((part) => part !== '')
        .join('; ') || 'No majority of the voters names a leader',
  })
}

/** From the polls of the collector: nodes have no page about one segment. */
function nodeHops(shard: ShardView | undefined): RouteHop[] {
  return (shard?.nodes ?? []).map((node) => ({
    key: `node ${node.shard}/${node.id}`,
    kind: 'node',
    id: node.id,
    place: node.shard,
    level: node.level,
    answer: node.role === 'unknown' ? 'Role not reported' : `${node.role}`,
    why: node.message,
    url: '',
    status: null,
    milliseconds: null,
    body: '',
  }))
}

function concluded(
  segment: string,
  hops: readonly RouteHop[],
  shard: string | undefined,
  view: ShardView | undefined,
): Pick<RouteView, 'level' | 'conclusion'> {
  const kinds = ['registry', 'edge', 'zone-router', 'bridge'] as const
  for (const kind of kinds) {
    const ofKind = hops.filter((hop) => hop.kind === kind)
    if (ofKind.length === 0) {
      if (kind === 'edge') continue
      return { level: 'warn', conclusion: `${segment} stops before ${PLACES[kind]}: none is known` }
    }
    if (ofKind.every(({ level }) => level === 'crit' || level === 'unk')) {
      const [first] = ofKind as [RouteHop]
      return {
        level: 'crit',
        conclusion: `${segment} stops at ${PLACES[kind]} ${first.id}: ${first.answer}. ${first.why}`,
      }
    }
  }
  const leader = view?.leader
  const worst = hops.some(({ level, kind }) => kind !== 'node' && level !== 'ok') ? 'warn' : 'ok'
  return {
    level: worst,
    conclusion: `${segment} goes to shard ${shard}${leader ? `, led by ${leader}` : ''}${worst === 'ok' ? '' : '; not all components agree or respond'}`,
  }
}

const PLACES = {
  registry: 'the registry',
  edge: 'edge router',
  'zone-router': 'zone router',
  bridge: 'bridge',
} as const

function noVerdict({ error, status }: Reply): Verdict {
  return error === ''
    ? {
        level: 'unk',
        answer: `Answered ${status}`,
        why: 'The component does not serve this request; it may run an older version',
      }
    : { level: 'crit', answer: 'No answer', why: error }
}

function hopOf({ key, kind, id, zone, shard }: Polled, reply: Reply, verdict: Verdict): RouteHop {
  const { url, status, milliseconds, body } = reply
  return {
    ...{ key, kind, id, place: shard ?? zone ?? '' },
    ...verdict,
    ...{ url, status, milliseconds, body: body.slice(0, BODY_KEPT) },
  }
}

async function request(fabric: Fabric, component: Polled, path: string, token?: string): Promise<Reply> {
  const { http } = fabric.deps
  if (component.apiUrl === '')
    return {
      url: '',
      status: null,
      milliseconds: null,
      body: '',
      error: 'It has no api_url, so it cannot be queried',
    }
  const url = component.apiUrl + path
  try {
    const { status, body, milliseconds } = await http.request(url, { timeoutMs: FABRIC.timeoutMs, token })
    return { url, status, body, milliseconds: Math.round(milliseconds * 10) / 10, error: '' }
  } catch (error) {
    if (!(error instanceof NodeHttpError)) throw error
    return { url, status: null, milliseconds: null, body: '', error: error.message }
  }
}

function listOf(ids: readonly string[]): string {
  const last = ids.at(-1) ?? ''
  return ids.length < 2 ? last : `${ids.slice(0, -1).join(', ')} and ${last}`
}

const NATURAL = new Intl.Collator('en', { numeric: true })
