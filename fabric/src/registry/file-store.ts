/**
 * The embedded store: the whole state as one text, written at most once per interval (docs/design/http.md#registry-storage).
 * A change counts at once and is on disk within the interval.
 */

import { VacancyError } from '@vacancy/shared'
import { isChange, recorded } from './journal.ts'
import type { RegistryState } from './model.ts'
import * as registry from './state.ts'
import type { RegistryStorage } from './storage.ts'
import type { OpenStore, RegistryStore, StoreContext } from './store.ts'
import { restoreState, storedOf } from './stored.ts'

/**
 * Versions that are skipped after a start from anything but the last state of an orderly stop: a crash lost the changes
 * of up to an interval, and an older copy many more, but their versions were given to callers. No version may be given
 * twice.
 */
const VERSIONS_SKIPPED = 2 ** 20
/** A save that takes longer is reported. */
const SAVE_SECONDS_MAX = 3
/** A file written by an orderly stop longer ago may be a copy that an operator put back. */
const FRESH_STOP_MS = 10 * 60_000

type FileStore = {
  readonly options: FileStoreOptions
  readonly context: StoreContext
  readonly state: RegistryState
  readonly sinceMs: number
  /** Number of changes so far, and of those on disk. */
  changes: number
  saved: number
  saving: Promise<void> | undefined
  savingSinceMs: number
  timer: NodeJS.Timeout | undefined
}

type FileStoreOptions = {
  readonly storage: RegistryStorage
  /** Milliseconds between writes. */
  readonly bufferMs: number
  /** Unreadable state is set aside instead of failing the start. */
  readonly resetsState: boolean
}

export function fileStore(options: FileStoreOptions): RegistryStore {
  return {
    name: options.storage.name,
    async open(context) {
      const { storage } = options
      await orFail(storage, () => storage.open())
      const state = await loadState(options, context).catch((error) => {
        storage.close()
        throw error
      })
      return opened({
        options,
        context,
        state,
        sinceMs: context.clock.monotonicMs(),
        changes: 1,
        saved: 0,
        saving: undefined,
        savingSinceMs: 0,
        timer: undefined,
      })
    },
  }
}

function opened(store: FileStore): OpenStore {
  const { state, context, options } = store
  const isWarming = () => context.clock.monotonicMs() - store.sinceMs <= context.heartbeatTimeoutMs
  return {
    state: () => state,
    async start() {
      // An unwritable location is detected now, not with the first change.
      await orFail(options.storage, () => save(store, undefined))
      store.timer = setInterval(() => void keep(store), options.bufferMs)
    },
    async change(rule) {
      const { result, journal } = recorded(state, rule)
      if (isChange(journal)) {
        store.changes += 1
        context.onChange()
      }
      return result
    },
    heard: () => undefined,
    staleSeconds: () => undefined,
    isWarming,
    isSweeping: () => true,
    maySweep: () => !isWarming(),
    sweptAtOnceMax: Number.POSITIVE_INFINITY,
    async close() {
      clearInterval(store.timer)
      await store.saving?.catch(() => undefined)
      // Also without changes: a state from an orderly stop keeps its versions.
      try {
        if (store.saved > 0) await orFail(options.storage, () => save(store, context.clock.wallMs()))
      } finally {
        options.storage.close()
      }
    },
  }
}

async function orFail({ name }: RegistryStorage, act: () => Promise<void>): Promise<void> {
  try {
    await act()
  } catch (cause) {
    if (cause instanceof VacancyError) throw cause
    throw new VacancyError(
      'disk_failed',
      { operation: 'write', file: name, reason: (cause as Error).message },
      { cause },
    )
  }
}

async function loadState({ storage, resetsState }: FileStoreOptions, context: StoreContext): Promise<RegistryState> {
  const { codecs, clock, log } = context
  let state: RegistryState | undefined
  let closedMs: number | undefined
  const isUsable = (source: string): string => {
    const restored = restoreState(source, clock.monotonicMs())
    if ('fault' in restored) return restored.fault
    state = restored.state
    closedMs = restored.closedMs
    return ''
  }
  try {
    await storage.load(isUsable)
  } catch (error) {
    if (!(error instanceof VacancyError) || error.code !== 'data_conflict' || !resetsState) throw error
    await storage.setAside(`reset-${new Date(clock.wallMs()).toISOString().replaceAll(/[:.]/g, '-')}`)
    log.error({ err: error }, 'unreadable state set aside (--reset-state); components must register again')
  }
  if (state === undefined) {
    const firstVersion = Math.floor(clock.wallMs() / 1000)
    const fresh = registry.createState({ epoch: context.newEpoch(), firstVersion, codecs: codecs.names })
    log.info({ epoch: fresh.epoch, storage: storage.name }, 'starts with an empty state')
    return fresh
  }
  if (closedMs === undefined || Math.abs(clock.wallMs() - closedMs) > FRESH_STOP_MS) {
    registry.skipVersions(state, VERSIONS_SKIPPED)
    log.warn({ storage: storage.name }, 'the last shutdown was not clean: all lists get new versions')
  }
  const before = state.codecs
  if (registry.setCodecs(state, codecs.names)) {
    log.warn(
      { before, now: codecs.names },
      'the codec list changed: nodes keep theirs until they restart, then their data is set aside',
    )
  }
  log.info(
    {
      epoch: state.epoch,
      components: registry.componentCount(state),
      shards: state.claims.size,
      storage: storage.name,
    },
    'state restored; every component has a fresh heartbeat',
  )
  return state
}

async function keep(store: FileStore): Promise<void> {
  const { context, options } = store
  if (store.saving) {
    // A disk may neither work nor fail.
    const seconds = Math.floor((context.clock.monotonicMs() - store.savingSinceMs) / 1000)
    if (seconds >= SAVE_SECONDS_MAX)
      context.onTrouble(`${options.storage.name} does not get written: the disk has not answered for ${seconds} s`)
    return
  }
  if (store.saved === store.changes) return
  store.savingSinceMs = context.clock.monotonicMs()
  store.saving = save(store, undefined)
  try {
    await store.saving
    context.onTrouble('')
  } catch (error) {
    // Retried at the next interval. Until then the served state is correct, but not on disk.
    const { name } = options.storage
    context.onTrouble(`${name} cannot be written: ${(error as Error).message}`)
    context.log.error({ err: error, storage: name }, 'the state cannot be written, trying again')
  } finally {
    store.saving = undefined
  }
}

/** @param closedMs wall time of the orderly stop that this save is part of */
async function save(store: FileStore, closedMs: number | undefined): Promise<void> {
  const { context, options, state, changes } = store
  const startMs = context.clock.monotonicMs()
  await options.storage.save(`${JSON.stringify(storedOf(state, closedMs), undefined, 2)}\n`)
  store.saved = changes
  context.onWrite((context.clock.monotonicMs() - startMs) / 1000)
}
