/**
 * Polls every component of the fabric that has an address: `/ready`, its hops, and its metrics. The registry lists zone
 * routers and bridges; edge routers and proxies are configured, because they do not register. A component that names no
 * `api_url` is listed and not polled.
 */

import type { FabricKind } from '@vacancy/shared/contract'
import { createAlarm } from '../http/alarm.ts'
import { NodeHttpError } from '../http/node-http.ts'
import { createOwnTime } from '../http/own-time.ts'
import {
  componentKey,
  FABRIC,
  type Fabric,
  type FabricConfig,
  type FabricDeps,
  newComponent,
  type Polled,
} from './fabric.ts'
import { type Ready, ratesBetween, readCounters, readHops, readReady, readVersion } from './replies.ts'

const TICK_MS = 50

export function createFabric(config: FabricConfig, deps: FabricDeps): Fabric {
  const ownTime = createOwnTime(deps.clock, TICK_MS)
  const alarm = createAlarm(deps.clock, TICK_MS, () => {
    pollDue(fabric)
    return nextLookMs(fabric)
  })
  const fabric: Fabric = { config, deps, ownTime, components: new Map(), alarm, busy: 0, busySilent: 0 }
  return fabric
}

export function startFabric(fabric: Fabric): void {
  const { config, deps } = fabric
  const now = deps.clock.wallMs()
  const add = (kind: FabricKind, id: string, apiUrl: string) => {
    const component = newComponent({ kind, id, zone: undefined, shard: undefined, apiUrl, registered: undefined }, now)
    fabric.components.set(component.key, component)
  }
  for (const url of config.registries) add('registry', new URL(url).host, url)
  if (config.resolver !== undefined) add('resolver', new URL(config.resolver).host, config.resolver)
  // Until it tells what it is.
  for (const url of config.components) add('edge', new URL(url).host, new URL(url).origin)
  fabric.alarm.start()
}

export function stopFabric(fabric: Fabric): void {
  fabric.alarm.stop()
}

/** Takes the components from the last reply of the registry. */
export function listComponents(fabric: Fabric): void {
  const { components, deps } = fabric
  const { topology, isUp, at } = deps.registry()
  if (!topology || at === undefined) return
  const listed = new Set<string>()
  const take = (kind: FabricKind, list: typeof topology.routers, shardOf: (at: number) => string | undefined) => {
    for (const [place, each] of list.entries()) {
      const key = componentKey(kind, each.id)
      listed.add(key)
      const registered = {
        version: each.version,
        startedAt: each.started_at,
        beatAt: at - Math.round(each.age_secs * 1000),
      }
      const apiUrl = reachable(each.api_url)
      const shard = shardOf(place)
      const known = components.get(key)
      if (known && known.zone === each.zone && known.shard === shard) {
        known.registered = registered
        known.listedAt = at
        known.apiUrl = apiUrl
      } else if (components.size < FABRIC.componentsMax) {
        components.set(key, newComponent({ kind, id: each.id, zone: each.zone, shard, apiUrl, registered }, at))
      }
    }
  }
  take('zone-router', topology.routers, () => undefined)
  take('bridge', topology.bridges, (place) => topology.bridges[place]?.shard)
  for (const [key, component] of components) {
    if (listed.has(key) || !registers(component.kind)) continue
    component.registered = undefined
    const isHere = component.failure === undefined && component.reported !== undefined
    if (isUp && !isHere && at - component.listedAt > FABRIC.leftMs) components.delete(key)
  }
  fabric.alarm.set(nextLookMs(fabric))
}

/** Whether the registry lists components of this kind. */
export function registers(kind: FabricKind): boolean {
  return kind === 'zone-router' || kind === 'bridge'
}

/** A wildcard address cannot be connected to. @returns '' then */
function reachable(url: string | undefined): string {
  const parsed = url === undefined ? null : URL.parse(url)
  if (!parsed || !/^https?:$/.test(parsed.protocol) || ['0.0.0.0', '[::]'].includes(parsed.hostname)) return ''
  return parsed.origin
}

function pollDue(fabric: Fabric): void {
  fabric.ownTime.tick()
  const now = fabric.deps.clock.monotonicMs()
  const due = [...fabric.components.values()].filter(
    ({ isBusy, nextAt, apiUrl }) => !isBusy && nextAt <= now && apiUrl !== '',
  )
  for (const component of due.sort((a, b) => a.nextAt - b.nextAt)) {
    if (fabric.busy >= FABRIC.atOnce) return
    const isSilent = component.missed > 1
    if (isSilent && fabric.busySilent >= FABRIC.silentAtOnce) continue
    component.isBusy = true
    fabric.busy++
    if (isSilent) fabric.busySilent++
    pollRound(fabric, component)
      .catch((error) => fabric.deps.log.error({ err: error, component: component.key }, 'polling a component failed'))
      .finally(() => {
        component.isBusy = false
        fabric.busy--
        if (isSilent) fabric.busySilent--
        const pause = component.missed === 1 ? FABRIC.againMs : FABRIC.roundMs
        component.nextAt = Math.max(now + pause, fabric.deps.clock.monotonicMs())
        if (fabric.busy === 0) fabric.alarm.move(nextLookMs(fabric))
      })
  }
}

/** While something is read it looks each tick: others may be due by then, and own-time.ts counts the ticks. */
function nextLookMs({ components, busy }: Fabric): number {
  if (busy > 0) return 0
  return Math.min(...[...components.values()].flatMap(({ apiUrl, nextAt }) => (apiUrl === '' ? [] : [nextAt])))
}

async function pollRound(fabric: Fabric, component: Polled): Promise<void> {
  const { clock, onChange } = fabric.deps
  const wasHeldUp = fabric.ownTime.watch()
  const before = { ready: component.reported?.ready?.ready, missed: component.missed, isRead: component.reported }
  try {
    await poll(fabric, component)
    component.failure = undefined
    component.missed = 0
  } catch (error) {
    if (!(error instanceof NodeHttpError)) throw error
    if (error.code === 'timeout' && wasHeldUp()) return
    component.failure = { code: error.code, message: error.message, at: clock.wallMs() }
    component.missed++
  }
  const { reported, missed } = component
  if (missed !== before.missed || reported?.ready?.ready !== before.ready || !before.isRead) onChange()
}

async function poll(fabric: Fabric, component: Polled): Promise<void> {
  const { clock, http } = fabric.deps
  const isOwn = component.kind === 'registry'
  const get = (path: string) =>
    http.request(component.apiUrl + path, {
      timeoutMs: FABRIC.timeoutMs,
      ...(isOwn && { token: fabric.config.token }),
    })
  const reply = await get('/ready')
  const ready = reply.status === 200 || reply.status === 503 ? readReady(reply.body) : undefined
  // Existing components have no such page. One that serves neither answers all the same.
  if (ready === undefined) await get('/health')
  const known = identified(fabric, component, ready)
  const hopsPath =
    known.kind === 'bridge' ? '/topology' : known.kind === 'edge' || known.kind === 'zone-router' ? '/hops' : ''
  const hops = ready === undefined || hopsPath === '' ? undefined : readHops((await get(hopsPath)).body)
  const before = known.reported
  const at = clock.wallMs()
  let { counters, rates, version } = before ?? {}
  const now = clock.monotonicMs()
  if (now >= component.metricsAt) {
    component.metricsAt = now + FABRIC.metricsMs
    const page = await get('/metrics')
    const reading = page.status === 200 ? readCounters(page.body, clock.wallMs()) : undefined
    rates = reading && ratesBetween(counters, reading)
    counters = reading
    version = ready?.version ?? (hopsPath === '' ? undefined : readVersion((await get('/status')).body))
  }
  known.reported = { at, ready, version, hops, counters, rates }
}

/** A configured component tells what it is: it then is listed under its kind. */
function identified(fabric: Fabric, component: Polled, ready: Ready | undefined): Polled {
  if (component.kind !== 'edge' && component.kind !== 'proxy') return component
  const kind: FabricKind = ready?.component === 'proxy' ? 'proxy' : 'edge'
  if (kind === component.kind) return component
  const { id, zone, shard, apiUrl, registered } = component
  const moved: Polled = { ...newComponent({ kind, id, zone, shard, apiUrl, registered }, fabric.deps.clock.wallMs()) }
  fabric.components.delete(component.key)
  fabric.components.set(moved.key, moved)
  moved.nextAt = fabric.deps.clock.monotonicMs() + FABRIC.againMs
  return moved
}
