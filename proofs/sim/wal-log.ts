/**
 * The production log of a simulated core: wal-thread.ts on a disk that loses unsynced data, fills up, fails and rots
 * (docs/design/testing.md#the-simulated-world). Snapshots are small separate files.
 */

import { VacancyError } from '@vacancy/shared'
import { betweenDecades } from '@vacancy/testkit/random'
import { scheduleIn } from '@vacancy/testkit/scheduler'
import { type Env, isDiskFull, replaceFile, syncFolder } from '../../engine/src/env.ts'
import { skipEntries, viewOf } from '../../engine/src/raft/entry.ts'
import type { Configuration } from '../../engine/src/raft/messages.ts'
import type { Ready } from '../../engine/src/raft/raft.ts'
import {
  crash,
  createSimulatedDisk,
  damage,
  restart,
  type SimulatedDisk,
  stopBefore,
} from '../../engine/src/testing/disk.ts'
import { IDENTITY } from '../../engine/src/testing/log-fixture.ts'
import { assertConnects, createWal, openWal, recoveredTerm } from '../../engine/src/wal/open.ts'
import type { LogIdentity } from '../../engine/src/wal/record.ts'
import { listLogFiles, replayEntries, scanLog, termAt } from '../../engine/src/wal/scan.ts'
import { installWal, prepareNext, type Wal } from '../../engine/src/wal/wal.ts'
import { type FromWal, handleWalMessages, type ToWal, type WalThread } from '../../engine/src/wal/wal-thread.ts'
import { batchesFrom, type CoreLog, type CoreSnapshot, type LogEvents, type LogKind } from './core-log.ts'
import type { Fault } from './knobs.ts'
import { committedTerm, violate } from './oracles.ts'
import { type Host, type SimulatedNode, syncUs, type World } from './world.ts'

const FOLDER = '/wal'
const SNAPSHOT_FOLDER = '/'
const SNAPSHOT = `${SNAPSHOT_FOLDER}snapshot`
const FORMED = '/formed'
const CAPACITY = 2 ** 40
/** The retry delay of a full disk varies with each run and each start of a node. */
const RETRY_FULL_MS_MAX = 1_000

type WalStorage = { readonly disk: SimulatedDisk; readonly identity: LogIdentity }

export const walLog: LogKind = {
  name: 'log',
  durableEvery: 16,
  create(_world, node, snapshot): WalStorage {
    const disk = createSimulatedDisk()
    disk.makeDirectory(FOLDER)
    disk.syncDirectory('/')
    replaceFile(disk, SNAPSHOT, encodeSnapshot(snapshot))
    return { disk, identity: { ...IDENTITY, incarnation: new Uint8Array(16).fill(node.number) } }
  },
  afterCrash(world, node, isPowerLoss) {
    const { disk, identity } = node.storage as WalStorage
    const oneIn = betweenDecades(world.diskRandom, 1, 16)
    const left = isPowerLoss ? crash(disk, () => world.diskRandom.below(oneIn) === 0) : restart(disk)
    left.capacityBytes = disk.capacityBytes
    return { disk: left, identity }
  },
  open: (host, events) => openWalLog(host, host.node.storage as WalStorage, events),
  meet(world, node, fault) {
    const { kind, lengthUs, detail } = fault
    const { disk } = node.storage as WalStorage
    if (kind === 'fulldisk') {
      // It may not even be able to create a log.
      node.mayFail = true
      // On some file systems, overwriting a file needs space as well. There a group may fit in part.
      disk.copiesOnWrite = detail % 2 === 0
      const leftBytes = disk.copiesOnWrite ? (detail >>> 1) % 1_500 : detail % 40_000
      disk.capacityBytes = CAPACITY - disk.space('/').freeBytes + leftBytes
      scheduleIn(world.scheduler, lengthUs * 4, () => {
        // The node may have a new disk by then.
        ;(node.storage as WalStorage).disk.capacityBytes = CAPACITY
      })
      return true
    }
    return meetDisk(world, node, disk, fault, FOLDER)
  },
  heal(_world, node) {
    const { disk } = node.storage as WalStorage
    disk.capacityBytes = CAPACITY
    disk.copiesOnWrite = false
    disk.fault = () => undefined
  },
}

/** Faults of any disk that holds a log in a folder. @returns whether it was applied */
export function meetDisk(
  world: World,
  node: SimulatedNode,
  disk: SimulatedDisk,
  { kind, detail }: Fault,
  folder: string,
): boolean {
  if (kind === 'corrupt') return rot(world, node.number, disk, folder, detail)
  if (!node.process) return false
  if (kind === 'cut') {
    stopBefore(disk, detail >>> 1, () => {
      node.stopped = detail % 2 === 0 ? 'killed' : 'power loss'
    })
    return true
  }
  if (kind !== 'diskerror') return false
  node.mayFail = true
  const from = disk.operations.length + (detail % 8)
  disk.fault = ({ number, call }) => {
    if (number < from || (call !== 'write' && call !== 'syncData' && call !== 'syncDirectory')) return undefined
    disk.fault = () => undefined
    return { kind: 'fail', code: 'EIO' }
  }
  return true
}

/**
 * Flips bits in old synced data on a minority of the nodes. Damage to the last group is indistinguishable from a
 * partially written group, so it is left out (docs/design/storage.md#torn-tail-or-corruption).
 */
function rot(world: World, number: number, disk: SimulatedDisk, folder: string, detail: number): boolean {
  const damaged = world.nodes.filter(({ isDamaged }) => isDamaged).length
  const node = world.nodes[number - 1]
  if (!node || node.isDamaged || (damaged + 1) * 2 >= world.knobs.voters) return false
  // The remaining majority is only known without membership changes.
  if (world.counts.membershipChanges > 0) return false
  const reports = disk.stat(folder) ? listLogFiles(disk, folder) : []
  const report = reports[detail % Math.max(1, reports.length)]
  if (!report) return false
  scanLog(disk, reports)
  const valid = Math.floor(report.validBytes / 2)
  if (valid < 64) return false
  node.isDamaged = true
  damage(disk, report.path, (detail >>> 3) % valid, Uint8Array.of((detail >>> 8) & 255))
  return true
}

/**
 * docs/design/consensus.md#when-a-configuration-takes-effect: the commit index of the log is correct. Checked when
 * entries were refused, since the entries they were to replace still exist.
 */
function checkCommitted(world: World, node: number, disk: SimulatedDisk, storage: WalStorage, wal: Wal): void {
  const { commit } = wal.hardState
  const term = termAt(scanOf(disk, storage).terms, commit)
  const known = committedTerm(world.oracles, commit)
  world.oracles.checks.O2++
  if (term !== 0 && known !== 0 && term !== known)
    violate(
      'O2',
      `the log of node ${node} has index ${commit} of term ${term} as committed, but the committed term is ${known}`,
    )
}

function scanOf(disk: SimulatedDisk, { identity }: WalStorage): ReturnType<typeof scanLog> {
  return scanLog(disk, listLogFiles(disk, FOLDER), { identity })
}

function encodeSnapshot({ index, term, configuration, state }: CoreSnapshot): Uint8Array {
  const plain = { index, term, configuration, state: [...state] }
  return new TextEncoder().encode(JSON.stringify(plain))
}

/** @returns false on a full disk: the log is kept and the operation retried */
function writeSnapshot(disk: SimulatedDisk, snapshot: CoreSnapshot): boolean {
  try {
    replaceFile(disk, SNAPSHOT, encodeSnapshot(snapshot))
    return true
  } catch (error) {
    if (isDiskFull(error)) return false
    throw error
  }
}

/**
 * The snapshot that a start builds on. A process that ended while it replaced the file may have left the new name in
 * the page cache only, so it is made durable first, as `makeDurable` does in production.
 */
function readDurableSnapshot(disk: SimulatedDisk): CoreSnapshot {
  syncFolder(disk, SNAPSHOT_FOLDER)
  return readSnapshot(disk)
}

function readSnapshot(disk: SimulatedDisk): CoreSnapshot {
  const { bytes = 0 } = disk.stat(SNAPSHOT) ?? {}
  if (bytes === 0) throw new Error('the snapshot is missing')
  const file = disk.open(SNAPSHOT, 'read')
  const content = new Uint8Array(bytes)
  disk.read(file, content, 0, bytes, 0)
  disk.close(file)
  const plain = JSON.parse(new TextDecoder().decode(content)) as {
    index: number
    term: number
    configuration: Configuration
    state: number[]
  }
  return { ...plain, state: Uint8Array.from(plain.state) }
}

function openWalLog(host: Host, storage: WalStorage, events: LogEvents): CoreLog {
  const { world, node } = host
  const { knobs } = world
  const { disk, identity } = storage
  const env: Env = { ...host.env, disk }
  const options = { fileBytes: knobs.logFileBytes, reserveBytes: 1_024, prepareSyncBytes: 8_192 }
  const retryFullMs = betweenDecades(host.random, 20, RETRY_FULL_MS_MAX)
  let snapshot = readDurableSnapshot(disk)
  let wal: Wal
  let recovered: CoreLog['recovered']
  if (disk.stat(FORMED) === undefined) {
    const { index, term } = snapshot
    wal = createWal(env, FOLDER, identity, { index, term }, options)
    replaceFile(disk, FORMED, Uint8Array.of(1))
    recovered = { term, vote: 0, commit: index, ...nothingAfter(snapshot) }
  } else {
    const opened = openWal(env, FOLDER, identity, { ...options, isClean: false })
    wal = opened.wal
    recovered = recover(disk, opened.recovered, snapshot, wal)
  }
  const queue: ToWal[] = []
  let readies: Ready[] = []
  let isBusy = false
  let pendingFloor = 0
  let refusals = 0
  const thread: WalThread = {
    wal,
    flushThreshold: knobs.flushThreshold,
    send: (message) => answers.push(message),
    monotonicMs: env.clock.monotonicMs,
    isRefusing: false,
    refusals: 0,
  }
  const answers: FromWal[] = []
  const handle = (): void => {
    if (isBusy || queue.length === 0) return
    isBusy = true
    host.later(syncUs(world, node), 'sync', () => {
      isBusy = false
      const { commit } = wal.hardState
      handleWalMessages(thread, queue.splice(0))
      if (thread.isRefusing && wal.hardState.commit > commit) checkCommitted(world, node.number, disk, storage, wal)
      prepareNext(wal, 4_096)
      for (const answer of answers.splice(0)) onAnswer(answer)
      handle()
    })
  }
  const tell = (message: ToWal): void => {
    queue.push(message)
    handle()
  }
  const onAnswer = (answer: FromWal): void => {
    switch (answer.type) {
      case 'stored':
        while (readies.length > 0 && (readies[0] as Ready).token <= answer.token) {
          const ready = readies.shift() as Ready
          events.onStored(ready)
        }
        return
      case 'refused': {
        refusals++
        if (readies[0]?.token !== answer.token) return
        readies = []
        events.onRefused(answer.token, answer.storedTo)
        env.schedule.after(retryFullMs, () => tell({ type: 'resume' }))
        return
      }
      case 'resumed':
        if (!answer.takesEntries) env.schedule.after(retryFullMs, () => tell({ type: 'resume' }))
        return
      case 'marked':
        return tell({ type: 'compact', floor: pendingFloor })
      case 'compacted':
        return events.onCompacted(Math.min(pendingFloor, (wal.files[0]?.lastIndex ?? 0) + 1, snapshot.index + 1))
      case 'installed': {
        if (!answer.isDone) {
          env.schedule.after(retryFullMs, () => tell({ type: 'install', mark: answer.mark }))
          return
        }
        const ready = readies.shift()
        if (!ready) return
        events.onInstalled(snapshot)
        events.onStored(ready)
        return
      }
      default:
        return
    }
  }
  return {
    recovered,
    submit(ready) {
      readies.push(ready)
      const { token, hardState, entries, snapshot: offer } = ready
      if (!offer) return tell({ type: 'append', token, hardState, entries, refusals })
      const { index, snapshotTerm: term, configuration, manifest: state } = offer
      const staged = { index, term, configuration, state }
      const attempt = (): void => {
        if (!writeSnapshot(disk, staged)) {
          env.schedule.after(retryFullMs, attempt)
          return
        }
        snapshot = staged
        tell({ type: 'install', mark: { index, term } })
      }
      attempt()
    },
    snapshot: () => snapshot,
    keep(next, floor) {
      if (next.index > wal.hardState.commit || next.index <= snapshot.index) return
      if (!writeSnapshot(disk, next)) return
      snapshot = next
      pendingFloor = floor
      tell({ type: 'mark', mark: { index: next.index, term: next.term } })
    },
    read(firstIndex, lastIndex, bytesMax) {
      const found = scanOf(disk, storage)
      if (firstIndex < found.firstIndex || firstIndex > found.lastIndex) return 'compacted'
      const last = Math.min(lastIndex, found.lastIndex)
      return batchesFrom(firstIndex, entriesOf(disk, found, firstIndex).slice(0, last - firstIndex + 1), bytesMax)
    },
    isDurable(index, term) {
      if (index <= snapshot.index) return true
      const found = scanOf(
        crash(disk, () => false),
        storage,
      )
      return index <= found.lastIndex && termAt(found.terms, index) === term
    },
    waiting: () => queue.length,
  }
}

type Opened = ReturnType<typeof openWal>['recovered']

/** A log that begins after a snapshot, and has nothing yet. */
function nothingAfter(snapshot: CoreSnapshot) {
  const { index, term } = snapshot
  const terms = [{ term, firstIndex: index }]
  return { snapshot, firstIndex: index + 1, lastIndex: index, lastTerm: term, terms, entries: [] }
}

function recover(disk: SimulatedDisk, opened: Opened, snapshot: CoreSnapshot, wal: Wal): CoreLog['recovered'] {
  const { index, term } = snapshot
  if (index > opened.lastIndex || (recoveredTerm(opened, index) || term) !== term) {
    // The process ended after writing the snapshot and before truncating the log.
    if (!installWal(wal, { index, term })) throw new VacancyError('no_room', { directory: FOLDER })
    return { ...wal.hardState, ...nothingAfter(snapshot) }
  }
  assertConnects(opened, { index, term })
  const { scan, lastIndex } = opened
  const entries =
    lastIndex > index ? batchesFrom(index + 1, entriesOf(disk, scan, index + 1), Number.POSITIVE_INFINITY) : []
  const lastTerm = lastIndex === index ? term : recoveredTerm(opened, lastIndex)
  // Entries before the snapshot are only offered to peers when all of their terms are known.
  return {
    ...opened.hardState,
    commit: Math.max(opened.hardState.commit, index),
    snapshot,
    firstIndex: index + 1,
    lastIndex,
    lastTerm,
    terms: [],
    entries,
  }
}

function entriesOf(disk: SimulatedDisk, scan: Opened['scan'], from: number): Uint8Array[] {
  const entries: Uint8Array[] = []
  replayEntries(disk, scan, from, (_, count, bytes, start) => {
    const view = viewOf(bytes)
    for (let i = 0, at = start; i < count; i++) {
      const end = skipEntries(view, at, 1)
      entries.push(bytes.slice(at, end))
      at = end
    }
  })
  return entries
}
