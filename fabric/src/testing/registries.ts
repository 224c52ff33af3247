/** Registries for tests, in this process: on an in-memory file, or on an etcd server. */

import { createCodecList, systemClock, turnableClock, VacancyError } from '@vacancy/shared'
import { topologyBody } from '@vacancy/shared/contract'
import { parseTokens } from '@vacancy/shared/node'
import type { Etcd } from '@vacancy/testkit/etcd'
import { onTestFinished } from 'vitest'
import { FABRIC_TOKENS } from '../access.ts'
import { etcdStore } from '../registry/etcd-store.ts'
import { fileStore } from '../registry/file-store.ts'
import { type RunningRegistry, startRegistry } from '../registry/registry.ts'
import type { RegistryOptions } from '../registry/service.ts'
import type { RegistryStorage } from '../registry/storage.ts'
import type { RegistryStore } from '../registry/store.ts'

export const CODECS = createCodecList([
  'free_cancellation',
  'non_refundable',
  'pay_at_property',
  'includes_breakfast',
  'free_wifi',
  'no_prepayment',
  'partial_refund',
  'instant_confirmation',
])
const TIMEOUT_MS = 60_000
export const START_MS = Date.parse('2026-11-20T08:00:00Z')

/** An in-memory store with injected failures. */
export function memoryStorage(kept?: string) {
  const storage = {
    name: 'memory',
    open: async () => undefined,
    close: () => undefined,
    texts: kept === undefined ? [] : [kept],
    fails: false,
    /** A save waits for it. */
    hangs: undefined as Promise<void> | undefined,
    aside: [] as string[],
    async load(isUsable: (text: string) => string) {
      const text = storage.texts.at(-1)
      if (text === undefined) return undefined
      const fault = isUsable(text)
      if (fault !== '') {
        throw new VacancyError('data_conflict', { reason: fault })
      }
      return text
    },
    async save(text: string) {
      await storage.hangs
      if (storage.fails) throw new Error('no space left')
      storage.texts.push(text)
    },
    async setAside(suffix: string) {
      storage.aside.push(suffix)
      storage.texts = []
    },
  }
  return storage satisfies RegistryStorage
}

/** Where a registry keeps its state; a later one with the same place continues it. */
export type Place = () => RegistryStore

export function onFile(
  storage = memoryStorage(),
  { bufferMs = 10, resetsState = false }: { readonly bufferMs?: number; readonly resetsState?: boolean } = {},
): Place {
  return () => fileStore({ storage, bufferMs, resetsState })
}

let names = 0

/** @param endpoint another way to the server, such as a relay */
export function onEtcd(
  etcd: Etcd,
  prefix = etcd.newPrefix(),
  more: { readonly endpoints?: readonly string[]; readonly acceptsCodecChange?: boolean } = {},
): Place {
  const newName = () => {
    names += 1
    return names.toString(16).padStart(16, '0')
  }
  const { endpoints = [etcd.endpoint], acceptsCodecChange = false } = more
  return () => etcdStore({ endpoints, prefix, user: undefined, acceptsCodecChange, newName })
}

let epochs = 0

export type Started = Partial<RegistryOptions> & { readonly auth?: string }

export async function startOn(place: Place, { auth, ...options }: Started = {}) {
  const clock = turnableClock(START_MS)
  const lines: string[] = []
  const note = (_fields: object, text: string) => {
    lines.push(text)
  }
  const tokens = auth === undefined ? undefined : parseTokens(auth, 'auth.yml', FABRIC_TOKENS)
  const registry: RunningRegistry = await startRegistry({
    host: '127.0.0.1',
    port: 0,
    store: place(),
    codecs: CODECS,
    heartbeatTimeoutMs: TIMEOUT_MS,
    rejectsConflicts: false,
    tokens: () => tokens,
    publicRead: true,
    tls: undefined,
    version: '0.1.0',
    config: {},
    clock,
    log: { debug: note, info: note, warn: note, error: note },
    drainMs: 2_000,
    newEpoch() {
      epochs += 1
      return (0x0123_4567 + epochs).toString(16).padStart(16, '0')
    },
    ...options,
  })
  let stopped: Promise<void> | undefined
  const stop = () => {
    stopped ??= registry.stop()
    return stopped
  }
  onTestFinished(stop)
  const base = `http://127.0.0.1:${registry.port}`
  const ask = async (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) => {
    const payload = body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }
    const answer = await fetch(base + path, { method, headers, ...payload })
    const text = await answer.text()
    const isJson = answer.headers.get('content-type') === 'application/json'
    return {
      status: answer.status,
      text,
      json: isJson && text !== '' ? JSON.parse(text) : undefined,
      headers: answer.headers,
    }
  }
  const get = (path: string, headers?: Record<string, string>) => ask('GET', path, undefined, headers)
  const register = (kind: string, id: string, zone: string, shard?: string, more: object = {}) =>
    ask('POST', '/register', { kind, id, zone, shard: shard ?? null, ...more })
  const push = (shard: string, zone: string, segments: readonly string[], more: object = {}) =>
    ask('POST', `/shards/${shard}/segments`, { zone, segments, ...more })
  const metric = async (name: string) =>
    (await get('/metrics')).text.split('\n').find((line) => line.startsWith(`${name} `) || line.startsWith(`${name}{`))
  return { clock, place, lines, registry, base, ask, get, register, push, metric, stop }
}

export type TestRegistry = Awaited<ReturnType<typeof runningRegistry>>

/** A registry that serves longer than its heartbeat timeout, unless it has a clock of its own: then it is warming. */
export async function runningRegistry({ place = onFile(), ...options }: Started & { readonly place?: Place } = {}) {
  let aheadMs = 0
  const clock = { wallMs: systemClock.wallMs, monotonicMs: () => systemClock.monotonicMs() + aheadMs }
  const codecs = createCodecList(['breakfast', 'wifi'])
  const { registry, ask, stop, ...started } = await startOn(place, { codecs, clock, drainMs: 0, ...options })
  aheadMs = 3_600_000
  const done = async (answer: ReturnType<typeof ask>): Promise<unknown> => {
    const { status, text, json } = await answer
    if (status !== 200) throw new Error(`${status} ${text}`)
    return json
  }
  return {
    addr: `127.0.0.1:${registry.port}`,
    port: registry.port,
    topology: async () => topologyBody.parse(await done(ask('GET', '/topology'))),
    register: (...given: Parameters<typeof started.register>) => done(started.register(...given)),
    deregister: (kind: string, id: string) => done(ask('DELETE', `/register/${kind}/${id}`)),
    push: (shard: string, zone: string, segments: readonly string[]) => done(started.push(shard, zone, segments)),
    stop,
  }
}
