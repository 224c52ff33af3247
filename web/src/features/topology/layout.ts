/**
 * Places of the map: proxies, edge routers, zone routers, bridges and shards from left to right, zones stacked by name,
 * shards by id. Computed, so that a place stays a place. Pure.
 */
import type { FabricEdge, Level } from '@vacancy/shared/contract'
import { isProblem, type Model, type Thing, worstOf } from './model.ts'

export type Box = {
  readonly thing: Thing
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
}
export type Line = {
  readonly from: Box
  readonly to: Box
  readonly state: FabricEdge['state']
  readonly level: Level
  readonly reads: number
  readonly writes: number
}
type ZoneFrame = { readonly zone: string; readonly y: number; readonly height: number; readonly hidden: number }
export type Layout = {
  readonly width: number
  readonly height: number
  readonly boxes: ReadonlyMap<string, Box>
  readonly lines: readonly Line[]
  readonly zones: readonly ZoneFrame[]
}

const ROW = 34
const BOX = { width: 132, height: 26 } as const
const OUTSIDE_WIDTH = 150
const SLOT = 26
const GAP = 12
const COLUMNS = { proxy: 16, edge: 196, 'zone-router': 384, bridge: 556, shard: 728 } as const
export const ZONE_LEFT = 372
const ZONE_HEAD = 24
const WIDTH = 980

export function layoutOf(model: Model, collapsed: ReadonlySet<string>): Layout {
  const boxes = new Map<string, Box>()
  const zones: ZoneFrame[] = []
  const all = [...model.things.values()]
  const put = (thing: Thing, x: number, y: number, width: number = BOX.width) =>
    boxes.set(thing.key, { thing, x, y, width, height: BOX.height })
  let y = GAP
  for (const zone of model.zones) {
    const top = y
    const routers = all.filter((each) => each.kind === 'zone-router' && each.zone === zone)
    const shards = model.shardsOf.get(zone) ?? []
    const rows = shards.filter((id) => !collapsed.has(zone) || isTroubled(model, id))
    y += ZONE_HEAD
    const first = y
    for (const id of rows) y += placeShard(model, id, y, put)
    if (rows.length < shards.length) y += ROW
    const isShort = y - first < routers.length * ROW
    if (isShort) y = first + routers.length * ROW
    const middle = (first + y) / 2 - (routers.length * ROW) / 2
    for (const [at, router] of routers.entries()) put(router, COLUMNS['zone-router'], middle + at * ROW)
    zones.push({ zone, y: top, height: y - top + 4, hidden: shards.length - rows.length })
    y += GAP + 4
  }
  const height = Math.max(y, 200)
  placeOutside(all, height, put)
  const lowest = Math.max(height, ...[...boxes.values()].map((box) => box.y + box.height + GAP))
  return { width: WIDTH, height: lowest, boxes, lines: linesOf(model, boxes), zones }
}

/** A collapsed zone still shows these. */
function isTroubled({ inShard }: Model, shard: string): boolean {
  return (inShard.get(shard) ?? []).some(({ level }) => isProblem(level))
}

type Put = (thing: Thing, x: number, y: number, width?: number) => void

/** @returns its height */
function placeShard({ things, inShard }: Model, id: string, y: number, put: Put): number {
  const inside = inShard.get(id) ?? []
  const bridges = inside.filter(({ kind }) => kind === 'bridge')
  const nodes = inside.filter(({ kind }) => kind === 'node')
  const height = Math.max(1, bridges.length) * ROW
  for (const [at, bridge] of bridges.entries()) put(bridge, COLUMNS.bridge, y + at * ROW)
  const shard = things.get(`shard ${id}`)
  const top = y + (height - ROW) / 2
  if (shard) put(shard, COLUMNS.shard, top, 76)
  for (const [at, node] of nodes.entries()) put(node, COLUMNS.shard + 84 + at * (SLOT + 2), top, SLOT)
  return height
}

/** Edge routers and proxies in the middle of the height; registry and resolver apart, below them. */
function placeOutside(all: readonly Thing[], height: number, put: Put): void {
  const edges = all.filter(({ kind }) => kind === 'edge')
  const proxies = all.filter(({ kind }) => kind === 'proxy')
  const others = all.filter(({ kind }) => kind === 'registry' || kind === 'resolver')
  const space = Math.min(height, 560)
  for (const [list, x] of [
    [edges, COLUMNS.edge],
    [proxies, COLUMNS.proxy],
  ] as const) {
    const top = Math.max(ZONE_HEAD + GAP, space / 2 - (list.length * ROW) / 2)
    for (const [at, thing] of list.entries()) put(thing, x, top + at * ROW, OUTSIDE_WIDTH)
  }
  const under = Math.max(
    space / 2 + (Math.max(edges.length, proxies.length) * ROW) / 2 + ROW,
    space - others.length * ROW,
  )
  for (const [at, thing] of others.entries()) put(thing, COLUMNS.proxy, under + at * ROW, OUTSIDE_WIDTH)
}

/** The connections of a bridge to its nodes are one line to the shard. */
function linesOf({ view }: Model, boxes: ReadonlyMap<string, Box>): Line[] {
  const lines: Line[] = []
  const toShards = new Map<string, FabricEdge[]>()
  for (const edge of view.edges) {
    const { from, to, state, level, reads, writes } = edge
    if (to.startsWith('node ')) {
      const key = `${from}\n${to.slice('node '.length).split('/')[0]}`
      toShards.set(key, [...(toShards.get(key) ?? []), edge])
      continue
    }
    const [a, b] = [boxes.get(from), boxes.get(to)]
    if (a && b) lines.push({ from: a, to: b, state, level, reads: reads ?? 0, writes: writes ?? 0 })
  }
  for (const [key, edges] of toShards) {
    const [from = '', shard = ''] = key.split('\n')
    const [a, b] = [boxes.get(from), boxes.get(`shard ${shard}`)]
    if (!a || !b) continue
    const sum = (of: 'reads' | 'writes') => edges.reduce((total, edge) => total + (edge[of] ?? 0), 0)
    // One lost node does not make the whole connection look lost.
    const state = edges.some((edge) => edge.state === 'live') ? 'live' : (edges[0]?.state ?? 'unknown')
    lines.push({
      from: a,
      to: b,
      state,
      level: worstOf(edges.map(({ level }) => level)),
      reads: sum('reads'),
      writes: sum('writes'),
    })
  }
  return lines
}

/** From the right side of the sender to the left side of the receiver, level at both ends. */
export function curveOf({ from, to }: Pick<Line, 'from' | 'to'>) {
  const [x1, y1] = [from.x + from.width, from.y + from.height / 2]
  const [x2, y2] = [to.x, to.y + to.height / 2]
  return { x1, y1, x2, y2, bend: (x2 - x1) / 2 }
}

/** Requests per second that are shown of a line. */
export function trafficOf({ reads, writes }: Pick<Line, 'reads' | 'writes'>, traffic: Traffic): number {
  return traffic === 'reads' ? reads : traffic === 'writes' ? writes : reads + writes
}

export type Traffic = 'all' | 'reads' | 'writes'

/** Width of a line in pixels: the logarithm of requests per second. */
export function lineWidth(perSecond: number): number {
  return 1 + Math.min(5, Math.log10(1 + Math.max(0, perSecond)) * 1.25)
}
