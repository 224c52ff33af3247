'use client'
/**
 * Live values in the query cache: `useLive('shard:s3')` is a query whose first value is fetched by HTTP and updated by the
 * live channel. Changes are applied once per frame; pausing stops applying, not receiving them.
 */
import { type QueryClient, type UseQueryResult, useQuery } from '@tanstack/react-query'
import type { ControlRouteName, RouteAnswer } from '@vacancy/shared/contract'
import { applyOps, LIVE } from '@vacancy/shared/live'
import { useEffect, useSyncExternalStore } from 'react'
import { useMoment } from './address.tsx'
import { call, sessionEnded } from './api.ts'
import { createLink, type LinkEvent, type LinkStatus } from './link.ts'
import type { ToWorker } from './live-worker.ts'
import { learnServerNow, serverNow, serverTimeOf } from './server-time.ts'

/** The value of each topic, in the shape of its route. */
export type LiveValue<T extends string> = T extends 'summary'
  ? RouteAnswer<'GET /api/v1/summary'>
  : T extends 'topology'
    ? RouteAnswer<'GET /api/v1/topology'>
    : T extends 'ops'
      ? RouteAnswer<'GET /api/v1/operations'>
      : T extends 'imports'
        ? RouteAnswer<'GET /api/v1/imports'>
        : T extends `shard:${string}`
          ? RouteAnswer<'GET /api/v1/shards/{shard}'>
          : T extends `node:${string}`
            ? RouteAnswer<'GET /api/v1/shards/{shard}/nodes/{node}'>
            : T extends `op:${string}`
              ? RouteAnswer<'GET /api/v1/operations/{id}'>
              : T extends `import:${string}`
                ? RouteAnswer<'GET /api/v1/imports/{id}'>
                : never

export type LiveTopic =
  | 'summary'
  | 'topology'
  | 'ops'
  | 'imports'
  | `shard:${string}`
  | `node:${string}/${string}`
  | `op:${string}`
  | `import:${string}`

export type LiveStatus = {
  /** Times by the control plane's clock. */
  readonly link:
    | { readonly state: Exclude<LinkStatus['state'], 'offline'> }
    | { readonly state: 'offline'; readonly retryAt: number; readonly since: number }
  /** Changes are not applied; `waiting` counts them. */
  readonly paused: boolean
  readonly waiting: number
}

/** The channel sends a newly followed topic well within this time. */
const FRESH_MS = 5_000
const OFF: LiveStatus = { link: { state: 'connecting' }, paused: false, waiting: 0 }

/** Sends a message to the connection. */
type Wire = (message: ToWorker) => void

let queries: QueryClient | undefined
let wire: Wire | undefined
let status = OFF
/** By the browser's clock: that of the control plane may not be known yet. */
let seenAt = 0
let isScheduled = false
const followers = new Map<string, number>()
/** Newest values, possibly not applied yet. */
const newest = new Map<string, unknown>()
const changed = new Set<string>()
const statusReaders = new Set<() => void>()
const topicReaders = new Map<string, Set<() => void>>()

export const liveKey = (topic: string) => ['live', topic] as const

/** Connects the tab. Called by the shell after sign-in. @returns a function that disconnects it */
export function startLive(client: QueryClient): () => void {
  queries = client
  const { send, stop } = connect()
  wire = send
  for (const topic of followers.keys()) send({ t: 'follow', topic })
  const updateVisibility = () => send({ t: 'visible', is: !document.hidden })
  const retry = () => send({ t: 'retry' })
  updateVisibility()
  document.addEventListener('visibilitychange', updateVisibility)
  addEventListener('online', retry)
  return () => {
    document.removeEventListener('visibilitychange', updateVisibility)
    removeEventListener('online', retry)
    stop()
    wire = undefined
    queries = undefined
    newest.clear()
    changed.clear()
    setStatus(OFF)
  }
}

function connect(): { send: Wire; stop: () => void } {
  if (typeof SharedWorker === 'function' && navigator.locks) {
    const worker = new SharedWorker(new URL('./live-worker.ts', import.meta.url), { type: 'module', name: 'live' })
    worker.port.onmessage = ({ data }: MessageEvent<LinkEvent>) => receive(data)
    const lock = `vacancy-tab-${crypto.getRandomValues(new Uint32Array(4)).join('-')}`
    const held = new AbortController()
    let release = () => {}
    navigator.locks
      .request(lock, { signal: held.signal }, () => {
        worker.port.postMessage({ t: 'here', lock } satisfies ToWorker)
        return new Promise<void>((resolve) => {
          release = resolve
        })
      })
      .catch(() => {
        // Aborted before it was granted: the tab disconnected.
      })
    return {
      send: (message) => worker.port.postMessage(message),
      stop: () => {
        held.abort()
        release()
        worker.port.close()
      },
    }
  }
  const link = createLink({
    socketUrl: `${location.origin.replace(/^http/, 'ws')}${LIVE.path}`,
    pollUrl: '/api/v1/poll',
    emit: receive,
    random: Math.random,
    openSocket: (url) => new WebSocket(url),
    fetch: (url) => fetch(url, { credentials: 'same-origin', cache: 'no-store' }),
  })
  return {
    send: (message) => {
      if (message.t === 'follow' || message.t === 'unfollow') link[message.t](message.topic)
      else if (message.t === 'visible') link.setVisible(message.is)
      else if (message.t === 'retry' || message.t === 'restart') link[message.t]()
    },
    stop: () => link.close(),
  }
}

function receive(event: LinkEvent): void {
  if (event.t === 'clock') return learnServerNow(event.now)
  if (event.t === 'status') {
    const { state } = event.status
    const isSame = state === status.link.state
    if ('seenMs' in event.status) seenAt = Date.now() - event.status.seenMs
    // Otherwise all readers of the status would render with each frame.
    if (!isSame || state === 'offline') setStatus({ ...status, link: linkOf(event.status) })
    if (state === 'ended' && !isSame) sessionEnded()
    return
  }
  // An event sent before the unfollow arrived, or a delta of a value that was dropped: following again starts with a
  // snapshot.
  if (!followers.has(event.topic) || (event.t === 'delta' && !newest.has(event.topic))) return
  const before = newest.get(event.topic)
  newest.set(event.topic, event.t === 'snap' ? event.data : applyOps(before, event.ops))
  changed.add(event.topic)
  if (status.paused) setStatus({ ...status, waiting: status.waiting + 1 })
  else apply()
}

function linkOf(status: LinkStatus): LiveStatus['link'] {
  if (status.state !== 'offline') return { state: status.state }
  const now = serverNow()
  return { state: 'offline', retryAt: now + status.retryMs, since: now - status.sinceMs }
}

function apply(): void {
  if (isScheduled) return
  isScheduled = true
  requestAnimationFrame(() => {
    isScheduled = false
    if (status.paused) return
    for (const topic of changed) {
      // Equal parts keep their identity in the cache; the next change is compared with the cached value.
      newest.set(topic, queries?.setQueryData(liveKey(topic), newest.get(topic)))
      for (const reader of topicReaders.get(topic) ?? []) reader()
    }
    changed.clear()
  })
}

function setStatus(next: LiveStatus): void {
  status = next
  for (const reader of statusReaders) reader()
}

/** Time of the last frame from the control plane, for ages. */
export function lastSeenAt(): number {
  return seenAt === 0 ? 0 : serverTimeOf(seenAt)
}

/** Stops applying changes; they are still received. */
export function pauseLive(): void {
  setStatus({ ...status, paused: true, waiting: 0 })
}

export function resumeLive(): void {
  setStatus({ ...status, paused: false, waiting: 0 })
  apply()
}

export function retryLive(): void {
  wire?.({ t: 'retry' })
}

/** After a sign-in, perhaps of another person. */
export function restartLive(): void {
  newest.clear()
  changed.clear()
  wire?.({ t: 'restart' })
}

export function useLiveStatus(): LiveStatus {
  return useSyncExternalStore(
    (reader) => {
      statusReaders.add(reader)
      return () => statusReaders.delete(reader)
    },
    () => status,
    () => OFF,
  )
}

function follow(topic: string): () => void {
  const count = (followers.get(topic) ?? 0) + 1
  followers.set(topic, count)
  if (count === 1) wire?.({ t: 'follow', topic })
  return () => {
    const left = (followers.get(topic) ?? 1) - 1
    if (left > 0) return followers.set(topic, left)
    followers.delete(topic)
    newest.delete(topic)
    changed.delete(topic)
    return wire?.({ t: 'unfollow', topic })
  }
}

/**
 * A value that is kept up to date while it is shown. Without a topic nothing is fetched. With `part`, only changes of that
 * part render the component. In a view of the past it is the value of that moment, where one is recorded.
 */
export function useLive<T extends LiveTopic, V = LiveValue<T>>(
  topic: T | undefined,
  part?: (value: LiveValue<T>) => V,
): UseQueryResult<V> {
  const moment = useMoment()
  const at = topic !== undefined && isRecorded(topic) ? moment : undefined
  useEffect(() => {
    if (topic === undefined || at !== undefined) return
    const leave = follow(topic)
    return () => void leave()
  }, [topic, at])
  return useQuery({
    queryKey: at === undefined ? liveKey(topic ?? '') : ['past', topic, at],
    queryFn: async ({ signal }) => {
      const value = await fetchValue(topic ?? 'summary', at, signal)
      // The channel may have been faster; its value is not older.
      return ((at === undefined && topic && newest.get(topic)) || value) as LiveValue<T>
    },
    enabled: topic !== undefined,
    ...(part && { select: part }),
    // While stepping and playing, the state before stays until the next one is known.
    placeholderData: (before: unknown, query?: { readonly queryKey: readonly unknown[] }) =>
      at !== undefined && isPastOf(query?.queryKey, topic) ? (before as never) : undefined,
    // A value that the channel keeps up to date is never fetched again, nor is the past.
    staleTime: () =>
      at !== undefined || (topic !== undefined && newest.has(topic)) ? Number.POSITIVE_INFINITY : FRESH_MS,
    refetchOnWindowFocus: false,
    refetchOnReconnect: false,
  })
}

const isRecorded = (topic: string) => /^(summary$|topology$|shard:|node:|op:)/.test(topic)

const isPastOf = (key: readonly unknown[] | undefined, topic: string | undefined) =>
  key?.[0] === 'past' && key[1] === topic

/** Calls back when a topic changes, for lists that are fetched again page by page. */
export function useLiveSignal(topic: string, onChange: () => void): void {
  useEffect(() => {
    const leave = follow(topic)
    const readers = topicReaders.get(topic) ?? new Set()
    topicReaders.set(topic, readers)
    readers.add(onChange)
    return () => {
      readers.delete(onChange)
      leave()
    }
  }, [topic, onChange])
}

/** The routes of first values; those of the past have the same shapes. */
const VALUES = {
  summary: 'GET /api/v1/summary',
  topology: 'GET /api/v1/topology',
  ops: 'GET /api/v1/operations',
  imports: 'GET /api/v1/imports',
  shard: 'GET /api/v1/shards/{shard}',
  node: 'GET /api/v1/shards/{shard}/nodes/{node}',
  op: 'GET /api/v1/operations/{id}',
  import: 'GET /api/v1/imports/{id}',
} as const satisfies { readonly [kind: string]: ControlRouteName }

/** The first value of a topic, or its value at a moment. */
function fetchValue(topic: LiveTopic, at: string | undefined, signal: AbortSignal): Promise<unknown> {
  const [kind, ...rest] = topic.split(':') as [keyof typeof VALUES, ...string[]]
  const id = rest.join(':')
  const cut = id.lastIndexOf('/')
  const params = kind === 'node' ? { shard: id.slice(0, cut), node: id.slice(cut + 1) } : { shard: id, id }
  const query = { at, ...(kind === 'ops' && { state: 'running' }) }
  const route = at === undefined ? VALUES[kind] : VALUES[kind].replace('/v1', '/v1/past')
  return call(route as 'GET /api/v1/past/shards/{shard}', { params, query: query as { at: string }, signal })
}
