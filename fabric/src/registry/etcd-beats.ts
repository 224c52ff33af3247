/**
 * Heartbeats and the janitor of a registry on etcd. A heartbeat is written at most once per third of the timeout and
 * component, with a lease a third longer than the timeout: so a component that is alive always has a key. One process at
 * a time is the janitor. It removes components without a key, and parts of values without a reference.
 */

import type { ComponentKind } from '@vacancy/shared/contract'
import { EtcdError, grantLease, keepLease, revokeLease, type Write } from './etcd-client.ts'
import { accepted, ETCD_TIMES, type EtcdStore, type Keeper, put } from './etcd-core.ts'
import { heartbeatText } from './stored.ts'

const BATCH_KEYS_MAX = 120
const BATCH_BYTES_MAX = 512 * 1024
const JANITOR_SECONDS = 10
const JANITOR_RENEW_MS = 3_000
/** A part without a reference for this long belongs to a change that never came. */
const PARTS_ORPHANED_MS = 10 * 60_000

export function createKeeper(name: string): Keeper {
  return { name, heard: new Map(), writtenMs: new Map(), janitor: undefined, orphans: new Map() }
}

export function wasHeard({ heard }: Keeper, kind: ComponentKind, id: string): void {
  heard.set(`${kind}/${id}`, [kind, id])
}

/** One round, each second while etcd answers. @throws EtcdError */
export async function beatAndSweep(store: EtcdStore): Promise<void> {
  if (store.refusal !== '') {
    // A full etcd refuses this too, and it leaves no key.
    await grantLease(store.client, 1, ETCD_TIMES.callMs)
    accepted(store)
  }
  await writeHeartbeats(store)
  await beJanitor(store)
  if (store.keeper.janitor) await removeOrphans(store)
}

async function writeHeartbeats(store: EtcdStore): Promise<void> {
  const { keeper, context, state } = store
  if (state === undefined) return
  const nowMs = context.clock.monotonicMs()
  const thirdMs = context.heartbeatTimeoutMs / 3
  const due: { key: string; text: string }[] = []
  for (const [key, [kind, id]] of keeper.heard) {
    if (nowMs - (keeper.writtenMs.get(key) ?? Number.NEGATIVE_INFINITY) < thirdMs) continue
    const component = state.components[kind].get(id)
    if (component) due.push({ key, text: heartbeatText(component, keeper.name) })
    else keeper.heard.delete(key)
  }
  if (due.length === 0) return
  for (const key of keeper.writtenMs.keys()) if (!isKnown(store, key)) keeper.writtenMs.delete(key)
  const lease = await grantLease(
    store.client,
    Math.ceil((context.heartbeatTimeoutMs + thirdMs) / 1000),
    ETCD_TIMES.callMs,
  )
  for (let from = 0; from < due.length; ) {
    const batch: Write[] = []
    let [to, bytes] = [from, 0]
    for (let next = due[to]; next && batch.length < BATCH_KEYS_MAX; next = due[to]) {
      if (batch.length > 0 && bytes + next.text.length > BATCH_BYTES_MAX) break
      batch.push({ put: `hb/${next.key}`, value: next.text, lease })
      bytes += next.text.length
      to += 1
    }
    // Heard again while this is written: due at the next third anyway.
    for (const { key } of due.slice(from, to)) keeper.heard.delete(key)
    await put(store, [], batch)
    accepted(store)
    for (const { key } of due.slice(from, to)) keeper.writtenMs.set(key, nowMs)
    from = to
  }
}

function isKnown({ state }: EtcdStore, key: string): boolean {
  const [kind, id] = key.split('/') as [ComponentKind, string]
  return state?.components[kind].has(id) === true
}

/** Becomes the janitor when there is none, and stays it. Writing its key shows that etcd accepts writes. */
async function beJanitor(store: EtcdStore): Promise<void> {
  const { keeper, image, context } = store
  const nowMs = context.clock.monotonicMs()
  const { janitor } = keeper
  if (janitor) {
    if (nowMs - janitor.renewedMs < JANITOR_RENEW_MS) return
    keeper.janitor = undefined
    if (!(await keepLease(store.client, janitor.lease, ETCD_TIMES.callMs))) return
    const held = { key: 'janitor', modRevision: janitor.revision }
    const { ok, header } = await put(store, [held], [{ put: 'janitor', value: '', lease: janitor.lease }])
    accepted(store)
    if (ok) keeper.janitor = { lease: janitor.lease, revision: header.revision, renewedMs: nowMs }
    return
  }
  if (image?.isJanitorTaken !== false) return
  const lease = await grantLease(store.client, JANITOR_SECONDS, ETCD_TIMES.callMs)
  const { ok, header } = await put(
    store,
    [{ key: 'janitor', createRevision: 0 }],
    [{ put: 'janitor', value: '', lease }],
  )
  accepted(store)
  if (!ok) return void (await revokeLease(store.client, lease, ETCD_TIMES.callMs))
  keeper.janitor = { lease, revision: header.revision, renewedMs: nowMs }
  context.log.info({}, 'this registry now removes silent components')
}

/** Lets another process take over at once. */
export async function releaseJanitor(store: EtcdStore): Promise<void> {
  const { janitor } = store.keeper
  if (!janitor) return
  store.keeper.janitor = undefined
  try {
    await revokeLease(store.client, janitor.lease, ETCD_TIMES.callMs)
  } catch (error) {
    // The lease ends by itself.
    if (!(error instanceof EtcdError)) throw error
  }
}

async function removeOrphans(store: EtcdStore): Promise<void> {
  const { image, keeper, context } = store
  if (!image) return
  const nowMs = context.clock.monotonicMs()
  const used = new Set([...image.long.values()].map(({ part }) => part))
  for (const part of keeper.orphans.keys()) {
    if (used.has(part) || !image.parts.has(part)) keeper.orphans.delete(part)
  }
  for (const part of image.parts.keys()) {
    if (used.has(part)) continue
    const sinceMs = keeper.orphans.get(part) ?? nowMs
    keeper.orphans.set(part, sinceMs)
    if (nowMs - sinceMs <= PARTS_ORPHANED_MS) continue
    await put(store, [], [{ remove: `parts/${part}/`, isPrefix: true }])
    context.log.info({ part }, 'removed what an interrupted change left in etcd')
  }
}
