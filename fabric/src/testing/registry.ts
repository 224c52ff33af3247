/** The registry of this folder, in the process of the test. */

import { createCodecList, systemClock } from '@vacancy/shared'
import { topologyBody } from '@vacancy/shared/contract'
import { onTestFinished } from 'vitest'
import type { z } from 'zod'
import { fileStore } from '../registry/file-store.ts'
import { startRegistry } from '../registry/registry.ts'
import type { RegistryOptions } from '../registry/service.ts'
import type { RegistryStorage } from '../registry/storage.ts'
import type { RegistryStore } from '../registry/store.ts'
import { keepingLog } from './http.ts'

export type TestRegistry = {
  readonly addr: string
  readonly port: number
  topology(): Promise<z.infer<typeof topologyBody>>
  register(kind: 'router' | 'bridge' | 'node', id: string, zone: string, shard?: string, more?: object): Promise<void>
  deregister(kind: 'router' | 'bridge' | 'node', id: string): Promise<void>
  push(shard: string, zone: string, segments: readonly string[]): Promise<void>
  stop(): Promise<void>
}

/** In memory. `text` is the state that another registry can start with. */
export function memoryStorage(): RegistryStorage & { text: string | undefined } {
  const storage = {
    name: 'memory',
    open: async () => undefined,
    close: () => undefined,
    text: undefined as string | undefined,
    async load(isUsable: (text: string) => string) {
      if (storage.text !== undefined && isUsable(storage.text) === '') return storage.text
      return undefined
    },
    async save(text: string) {
      storage.text = text
    },
    async setAside() {
      storage.text = undefined
    },
  }
  return storage
}

/** The store of a registry that keeps its state there. */
export function storeIn(storage: RegistryStorage): RegistryStore {
  return fileStore({ storage, bufferMs: 10, resetsState: false })
}

/**
 * A registry that serves longer than its heartbeat timeout, unless it has a clock of its own: then it is warming.
 */
export async function runningRegistry(options: Partial<RegistryOptions> = {}): Promise<TestRegistry> {
  let aheadMs = 0
  const clock = { wallMs: systemClock.wallMs, monotonicMs: () => systemClock.monotonicMs() + aheadMs }
  const running = await startRegistry({
    host: '127.0.0.1',
    port: 0,
    store: storeIn(memoryStorage()),
    codecs: createCodecList(['breakfast', 'wifi']),
    heartbeatTimeoutMs: 60_000,
    rejectsConflicts: false,
    tokens: () => undefined,
    publicRead: true,
    tls: undefined,
    version: '0.1.0',
    config: {},
    clock,
    log: keepingLog(),
    drainMs: 0,
    newEpoch: () => Math.random().toString(16).slice(2).padEnd(16, '0').slice(0, 16),
    ...options,
  })
  aheadMs = 3_600_000
  let stopped: Promise<void> | undefined
  const stop = (): Promise<void> => {
    stopped ??= running.stop()
    return stopped
  }
  onTestFinished(stop)
  const addr = `127.0.0.1:${running.port}`
  const call = async (method: string, path: string, body?: object): Promise<unknown> => {
    const answer = await fetch(`http://${addr}${path}`, { method, ...(body && { body: JSON.stringify(body) }) })
    const text = await answer.text()
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`)
    return text === '' ? undefined : JSON.parse(text)
  }
  return {
    addr,
    port: running.port,
    topology: async () => topologyBody.parse(await call('GET', '/topology')),
    async register(kind, id, zone, shard, more) {
      await call('POST', '/register', { kind, id, zone, shard: shard ?? null, ...more })
    },
    async deregister(kind, id) {
      await call('DELETE', `/register/${kind}/${id}`)
    },
    async push(shard, zone, segments) {
      await call('POST', `/shards/${shard}/segments`, { zone, segments })
    },
    stop,
  }
}
