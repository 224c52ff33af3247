/**
 * The shared store: any number of equal registries on one etcd (docs/design/http.md#registry-on-etcd).
 *
 * Each process has the whole state in memory. It reads all keys once, then follows them by a watch. A change is drafted
 * on the state, taken back, and written in one transaction that compares `serial`, which every change writes: if it
 * succeeds, the draft was made on the latest state, and its values are set. If not, another process was first; after
 * its change has arrived, the rule runs again.
 */

import { VacancyError } from '@vacancy/shared'
import { COMPONENT_KINDS, type ComponentKind } from '@vacancy/shared/contract'
import { beatAndSweep, createKeeper, releaseJanitor, wasHeard } from './etcd-beats.ts'
import {
  type Compare,
  createEtcdClient,
  EtcdError,
  endOf,
  type Header,
  range,
  type WatchEvent,
  type Write,
  watch,
} from './etcd-client.ts'
import {
  accepted,
  createEtcdStore,
  ETCD_TIMES,
  type EtcdStore,
  type EtcdStoreOptions,
  failed,
  isUp,
  pause,
  put,
  SERIAL,
  settle,
  trouble,
  unchanged,
  until,
  untilUp,
  type Waiting,
  wake,
} from './etcd-core.ts'
import {
  codecsOf,
  documentOf,
  ETCD_LIMITS,
  encodeChange,
  FORMAT,
  type Image,
  type Meta,
  metaOf,
  type Row,
  RowFault,
  readEvents,
} from './etcd-rows.ts'
import { isChange, mergeJournal, recorded, valuesAfter, valuesBefore } from './journal.ts'
import type { Component, Journal, RegistryState, Values } from './model.ts'
import * as registry from './state.ts'
import { type OpenStore, type RegistryStore, type Rule, StorageUnavailable } from './store.ts'
import { heartbeatOf, restoreValue } from './stored.ts'

/** Keys in one answer: pieces of long values have up to 512 KiB each. */
const PAGE_KEYS = 200

export function etcdStore(options: EtcdStoreOptions): RegistryStore {
  const name = `${options.endpoints.join(',')} ${options.prefix}`
  return {
    name,
    async open(context) {
      const client = createEtcdClient(options)
      const store = createEtcdStore(options, context, client, createKeeper(options.newName()))
      try {
        await load(store, ETCD_TIMES.firstLoadMs)
      } catch (error) {
        if (!(error instanceof EtcdError)) throw error
        trouble(store, error.message)
      }
      return opened(store)
    },
  }
}

function opened(store: EtcdStore): OpenStore {
  const { context, keeper } = store
  const { clock, heartbeatTimeoutMs } = context
  const since = (ms: number) => clock.monotonicMs() - ms
  return {
    state: () => store.state,
    async start() {
      store.loops.push(follow(store), pulseLoop(store))
      await untilUp(store, clock.monotonicMs() + (store.state ? ETCD_TIMES.firstLoadMs : 0))
    },
    change: <T>(rule: Rule<T>, silent: readonly Component[] = []) =>
      new Promise<T>((resolve, reject) => {
        const untilMs = clock.monotonicMs() + ETCD_TIMES.changeMs
        store.queue.push({ run: rule, silent, untilMs, resolve: resolve as (result: unknown) => void, reject })
        void writeQueue(store)
      }),
    heard: (kind, id) => wasHeard(keeper, kind, id),
    staleSeconds: () => (isUp(store) ? undefined : Math.max(0, Math.floor(since(store.currentMs) / 1000))),
    isWarming: () => since(store.readMs) <= heartbeatTimeoutMs,
    isSweeping: () => isUp(store) && keeper.janitor !== undefined && store.refusal === '',
    maySweep: ({ kind, id }) =>
      since(store.steadyMs) > heartbeatTimeoutMs && store.image?.beating.has(`${kind}/${id}`) === false,
    // A removal writes a key, compares one and may bump a version.
    sweptAtOnceMax: 40,
    async close() {
      store.ending.abort()
      store.watching.abort()
      wake(store)
      for (const { reject } of store.queue.splice(0)) reject(new StorageUnavailable())
      await Promise.all(store.loops)
      await releaseJanitor(store)
    },
  }
}

// Reading everything.

/**
 * Reads all keys. Fills an empty prefix.
 *
 * @throws EtcdError; VacancyError data_conflict when the keys cannot be used, or the codec list differs at the start
 */
async function load(store: EtcdStore, withinMs: number): Promise<void> {
  const deadline = performance.now() + withinMs
  for (;;) {
    const { rows, header } = await readAll(store, deadline)
    try {
      if (await isComplete(store, rows, header)) {
        take(store, rows, header)
        return
      }
    } catch (error) {
      if (!(error instanceof RowFault)) throw error
      const reason = `etcd ${store.options.prefix}${error.message}. Restore a backup of etcd, or remove that key: what components report comes back by itself`
      throw new VacancyError('data_conflict', { reason }, { cause: error })
    }
  }
}

async function readAll(store: EtcdStore, deadline: number): Promise<{ rows: Row[]; header: Header }> {
  const { prefix } = store.options
  const rows: Row[] = []
  let [key, header]: [string, Header | undefined] = [prefix, undefined]
  for (;;) {
    const left = deadline - performance.now()
    if (left <= 0) throw new EtcdError('unreachable', 'reading all keys takes too long')
    const page = await range(
      store.client,
      { key, end: endOf(prefix), limit: PAGE_KEYS, ...(header && { revision: header.revision }) },
      Math.ceil(left),
    )
    header ??= page.header
    for (const kv of page.kvs) rows.push({ ...kv, key: kv.key.slice(prefix.length) })
    const last = page.kvs.at(-1)
    if (!page.more || last === undefined) return { rows, header }
    key = `${last.key}\0`
  }
}

/** Whether the prefix has what a state needs. Else writes it; then everything is to be read again. */
async function isComplete(store: EtcdStore, rows: readonly Row[], header: Header): Promise<boolean> {
  const { context, options, meta: known } = store
  const { codecs, clock, log } = context
  const meta = metaOf(rows)
  const inForce = codecsOf(rows)
  // Versions that callers know must not occur again: not those of a lost state, and not those of an etcd restored from
  // a backup.
  const wentBack = store.cluster !== '' && (store.cluster !== header.cluster || header.revision < store.revision)
  if (meta === undefined || (wentBack && known?.epoch === meta.epoch)) {
    const base = Math.max(Math.floor(clock.wallMs()), (store.state?.globalVersion ?? 0) + 1, (meta?.base ?? 0) + 1)
    const fresh = { format: FORMAT, epoch: context.newEpoch(), base }
    const compare: Compare = meta ? { key: 'meta', modRevision: meta.modRevision } : { key: 'meta', createRevision: 0 }
    const writes: Write[] = [{ put: 'meta', value: JSON.stringify(fresh) }]
    if (inForce === undefined) writes.push({ put: 'codecs', value: JSON.stringify(codecs.names) })
    const { ok } = await put(store, [compare], writes)
    if (ok)
      log.warn({ epoch: fresh.epoch, rows: rows.length }, wentBack ? 'etcd went back in time: new epoch' : 'new epoch')
    return false
  }
  if (inForce === undefined) {
    await put(store, [{ key: 'codecs', createRevision: 0 }], [{ put: 'codecs', value: JSON.stringify(codecs.names) }])
    return false
  }
  const isSame = inForce.length === codecs.names.length && inForce.every((name, i) => name === codecs.names[i])
  if (isSame || store.state !== undefined) return true
  if (!options.acceptsCodecChange) {
    throw new VacancyError('data_conflict', {
      reason: `the codec list in etcd differs from the codec file: ${inForce.join(', ')} there, ${codecs.names.join(', ')} here. Use the same file for all registries, or replace the list with --accept-codec-change`,
    })
  }
  const codecsRow = rows.find(({ key }) => key === 'codecs') as Row
  const serial = rows.find(({ key }) => key === 'serial')
  const { ok } = await put(
    store,
    [{ key: 'codecs', modRevision: codecsRow.modRevision }, unchanged('serial', serial?.modRevision ?? 0)],
    [{ put: 'codecs', value: JSON.stringify(codecs.names) }, SERIAL],
  )
  if (ok)
    log.warn({ before: inForce, now: codecs.names }, 'the codec list changed: nodes keep theirs until they restart')
  return false
}

function take(store: EtcdStore, rows: readonly Row[], header: Header): void {
  const { context, state: old, meta: known } = store
  const nowMs = context.clock.monotonicMs()
  const meta = metaOf(rows) as Meta
  const { document, image } = documentOf(rows, meta)
  const restored = restoreValue(document, nowMs)
  if ('fault' in restored) throw new RowFault(restored.fault)
  const { state } = restored
  for (const { key, value } of rows) {
    if (!key.startsWith('hb/')) continue
    const beat = heartbeatOf(value)
    const component = beat && state.components[beat.kind].get(beat.id)
    if (beat && component) registry.noteHeartbeat(state, component, beat.details, nowMs)
  }
  // What this process heard is newer than what is written.
  for (const kind of old ? COMPONENT_KINDS : []) {
    for (const before of old?.components[kind].values() ?? []) {
      const component = state.components[kind].get(before.id)
      if (!component) continue
      registry.noteHeartbeat(state, component, before.details, Math.max(before.seenMs, 0))
      component.instanceBefore = before.instanceBefore
    }
  }
  if (meta.epoch !== known?.epoch) store.readMs = nowMs
  Object.assign(store, {
    state,
    image,
    meta,
    serial: image.revisions.get('serial') ?? 0,
    cluster: header.cluster,
    revision: header.revision,
    watchFrom: header.revision + 1,
  })
  context.log.info(
    {
      epoch: state.epoch,
      components: registry.componentCount(state),
      shards: state.claims.size,
      revision: header.revision,
    },
    'state read from etcd',
  )
  context.onChange()
}

// Following.

/** Reads everything and follows the changes, again and again. */
async function follow(store: EtcdStore): Promise<void> {
  const { ending } = store
  let pauseMs: number = ETCD_TIMES.retryMinMs
  let isLoaded = store.state !== undefined
  while (!ending.signal.aborted) {
    store.watching = new AbortController()
    try {
      if (!isLoaded) await load(store, ETCD_TIMES.loadMs)
      isLoaded = false
      const wanted = { prefix: store.options.prefix, from: store.watchFrom }
      for await (const events of watch(store.client, wanted, store.watching.signal)) {
        if (!store.isFollowing) begin(store)
        pauseMs = ETCD_TIMES.retryMinMs
        if (events.length > 0 && !see(store, events)) break
      }
    } catch (error) {
      if (ending.signal.aborted) break
      // Without a state there is nothing to serve: the process ends with the error.
      if (store.state === undefined && error instanceof VacancyError) throw error
      if (!(error instanceof EtcdError || error instanceof VacancyError || error instanceof RowFault)) throw error
      store.isFollowing = false
      trouble(store, error.message)
      await pause(store, pauseMs)
      pauseMs = Math.min(pauseMs * 2, ETCD_TIMES.retryMaxMs)
    } finally {
      store.isFollowing = false
      store.watching.abort()
    }
  }
}

function begin(store: EtcdStore): void {
  const nowMs = store.context.clock.monotonicMs()
  store.isFollowing = true
  store.isReachable = true
  store.steadyMs = nowMs
  store.currentMs = nowMs
  store.behindMs = undefined
  settle(store)
}

/** Applies events, one revision after the other. @returns false when everything has to be read again */
function see(store: EtcdStore, events: readonly WatchEvent[]): boolean {
  const { context, options } = store
  const { state, image } = store as { state: RegistryState; image: Image }
  let isChanged = false
  for (let from = 0; from < events.length; ) {
    const { revision } = events[from] as WatchEvent
    let to = from
    while (events[to]?.revision === revision) to += 1
    const rows = events.slice(from, to).map((event) => ({ ...event, key: event.key.slice(options.prefix.length) }))
    const seen = readEvents(state, image, rows, context.clock.monotonicMs())
    if (seen.needsLoad) return false
    registry.writeValues(state, seen.values)
    for (const { kind, id, value } of seen.heartbeats) beat(store, kind, id, value)
    store.serial = Math.max(store.serial, image.revisions.get('serial') ?? 0)
    store.revision = Math.max(store.revision, revision)
    isChanged ||= seen.isChanged
    from = to
  }
  if (isChanged) context.onChange()
  wake(store)
  return true
}

function beat(store: EtcdStore, kind: ComponentKind, id: string, value: Buffer): void {
  const { state, context, keeper } = store
  const component = state?.components[kind].get(id)
  const heard = heartbeatOf(value)
  if (!state || !component || !heard) return
  const nowMs = context.clock.monotonicMs()
  keeper.writtenMs.set(`${kind}/${id}`, nowMs)
  // Its own comes back later than what it heard meanwhile.
  if (heard.by === keeper.name) return
  if (registry.noteHeartbeat(state, component, heard.details, nowMs)) context.onClash(component)
}

/** Looks whether etcd answers and the watch keeps up; then writes heartbeats and cares for the janitor. */
async function pulseLoop(store: EtcdStore): Promise<void> {
  while (!store.ending.signal.aborted) {
    await pulse(store)
    if (isUp(store)) await beatAndSweep(store).catch((error: unknown) => failed(store, error))
    await pause(store, ETCD_TIMES.pulseMs)
  }
}

async function pulse(store: EtcdStore): Promise<void> {
  const { context, options } = store
  const knownRevision = store.revision
  try {
    const { header, kvs } = await range(store.client, { key: `${options.prefix}serial` }, ETCD_TIMES.callMs)
    if (store.state === undefined) return
    const nowMs = context.clock.monotonicMs()
    const isOther = header.cluster !== store.cluster || header.revision < knownRevision
    const isBehind = (kvs[0]?.modRevision ?? 0) > store.serial
    store.behindMs = isBehind ? (store.behindMs ?? nowMs) : undefined
    if (isOther || nowMs - (store.behindMs ?? nowMs) > ETCD_TIMES.lagMs) {
      context.log.warn(
        { revision: header.revision, known: knownRevision },
        'the state in memory is not that of etcd: reads it again',
      )
      store.watching.abort()
      return
    }
    if (!store.isReachable) store.steadyMs = nowMs
    store.isReachable = true
    if (isUp(store) && !isBehind) store.currentMs = nowMs
    settle(store)
  } catch (error) {
    failed(store, error)
  }
}

// Changes.

type Draft = {
  readonly journal: Journal
  readonly ran: readonly { readonly waiting: Waiting; readonly result: unknown }[]
}

async function writeQueue(store: EtcdStore): Promise<void> {
  if (store.isWriting) return
  store.isWriting = true
  try {
    while (store.queue.length > 0) {
      const nowMs = store.context.clock.monotonicMs()
      const first = store.queue[0] as Waiting
      const isLate = nowMs >= first.untilMs
      // A watch that is just being opened again is not worth a 503.
      const isHopeless = !isUp(store) && (store.state === undefined || nowMs - store.currentMs > ETCD_TIMES.changeMs)
      if (!isLate && !isHopeless && (await untilUp(store, first.untilMs))) await writeSome(store)
      else store.queue.shift()?.reject(new StorageUnavailable())
    }
  } finally {
    store.isWriting = false
  }
}

async function writeSome(store: EtcdStore): Promise<void> {
  const { state, image, context, options } = store as EtcdStore & { state: RegistryState; image: Image }
  const { journal, ran } = draft(store, state)
  if (ran.length === 0) return
  const silent = ran.flatMap(({ waiting }) => waiting.silent)
  const after = valuesAfter(journal, state)
  const encoded = encodeChange(state, image, journal, after, options.newName)
  registry.writeValues(state, valuesBefore(journal))
  if (!isChange(journal)) {
    for (const { waiting, result } of ran) waiting.resolve(result)
    return
  }
  const startMs = context.clock.monotonicMs()
  try {
    for (const { key, value } of encoded.pieces) await put(store, [], [{ put: key, value }])
    const { serial } = store
    const compare: Compare[] = [unchanged('serial', serial)]
    for (const { kind, id } of silent) compare.push({ key: `hb/${kind}/${id}`, createRevision: 0 })
    const { ok, header, found } = await put(store, compare, [...encoded.writes, SERIAL], 'serial')
    accepted(store)
    if (!ok) {
      await tryAgain(store, ran, serial, found?.modRevision ?? 0)
      return
    }
    if (store.state !== state) {
      // It was read again meanwhile: it has the change, or will have it.
      await until(store, startMs + ETCD_TIMES.changeMs, () => store.serial >= header.revision)
    } else if (store.serial >= header.revision) {
      // The watch was faster: later changes of others may follow already. Only what rows do not have is missing.
      noteDetails(state, after.components)
    } else {
      const values = encoded.valuesAt(header.revision)
      registry.writeValues(state, { ...values, globalVersion: Math.max(values.globalVersion, state.globalVersion) })
      encoded.noteIn(image, header.revision)
      image.revisions.set('serial', header.revision)
      store.serial = header.revision
      store.revision = Math.max(store.revision, header.revision)
    }
    context.onWrite((context.clock.monotonicMs() - startMs) / 1000)
    context.onChange()
    for (const { waiting, result } of ran) waiting.resolve(result)
  } catch (error) {
    for (const { waiting } of ran) waiting.reject(new StorageUnavailable(error))
    failed(store, error)
  }
}

/** What components reported with a change that the state has from its rows. */
function noteDetails(state: RegistryState, components: Values['components']): void {
  for (const [kind, id, reported] of components) {
    const component = state.components[kind].get(id)
    if (!component || !reported) continue
    registry.noteHeartbeat(state, component, reported.details, reported.seenMs)
    component.instanceBefore = reported.instanceBefore
  }
}

/** Another process changed something first, or a component that seemed silent is not. */
async function tryAgain(store: EtcdStore, ran: Draft['ran'], known: number, serial: number): Promise<void> {
  if (serial === known) {
    for (const { waiting } of ran) waiting.reject(new StorageUnavailable())
    return
  }
  store.queue.unshift(...ran.map(({ waiting }) => waiting))
  const nowMs = store.context.clock.monotonicMs()
  await until(store, nowMs + ETCD_TIMES.lagMs, () => store.serial >= serial)
}

/** Runs as many rules as fit into one transaction. The state is as after them. */
function draft(store: EtcdStore, state: RegistryState): Draft {
  const ran: { waiting: Waiting; result: unknown }[] = []
  let whole: Journal | undefined
  for (let next = store.queue[0]; next; next = store.queue[0]) {
    const isAlone = next.silent.length > 0
    if (isAlone && ran.length > 0) break
    let journal: Journal
    let result: unknown
    try {
      ;({ result, journal } = recorded(state, next.run))
    } catch (error) {
      store.queue.shift()
      next.reject(error)
      continue
    }
    if (whole !== undefined && sizeOf(whole) + sizeOf(journal) > ETCD_LIMITS.operationsMax / 2) {
      registry.writeValues(state, valuesBefore(journal))
      break
    }
    store.queue.shift()
    ran.push({ waiting: next, result })
    if (whole === undefined) whole = journal
    else mergeJournal(whole, journal)
    if (isAlone) break
  }
  return { journal: whole ?? recorded(state, () => undefined).journal, ran }
}

/** Operations of a journal, at most: a removed component has two, and a long value replaces another. */
function sizeOf({ components, claims, reservations, versions }: Journal): number {
  const shards = claims.size + Math.min(reservations.size, 1)
  return components.size * 2 + shards * 2 + Math.min(versions.size, ETCD_LIMITS.versionsMax)
}
