/**
 * The log over a disk whose every operation fails in turn: what was stored stays, an error ends the process with
 * `disk_failed`, a full disk is an answer (docs/design/storage.md#disk-errors, docs/design/storage.md#group-commit).
 * The long form, with the replica, is cluster/storage.test.ts.
 */

import { VacancyError } from '@vacancy/shared'
import { expect, test } from 'vitest'
import { CrashError, crash, createSimulatedDisk, type Fault, restart, type SimulatedDisk } from '../testing/disk.ts'
import { entries, IDENTITY, tryOpen } from '../testing/log-fixture.ts'
import { createSimulation } from '../testing/simulation.ts'
import { createWal, openWal } from './open.ts'
import { appendGroup, closeWal, compactWal, installWal, isFull, prepareNext, retryNext, type Wal } from './wal.ts'

const OPTIONS = { fileBytes: 8_192, reserveBytes: 512, prepareSyncBytes: 2_048 }

type Reported = { lastIndex: number; commit: number; installed: number }

/** Writes several files, with marks, compaction, a restart, and a snapshot that restarts the log. */
function live(disk: SimulatedDisk, reported: Reported): void {
  const { env } = createSimulation({ disk })
  const store = (wal: Wal, from: number, count: number, term = 1): void => {
    const hardState = { term, vote: 1, commit: Math.max(wal.hardState.commit, from - 1) }
    const group = { hardState, batches: [entries(from, count, term, 40)] }
    if (appendGroup(wal, group) === 'full') {
      expect(isFull(wal) || wal.next.state === 'nameless').toBe(true)
      disk.capacityBytes = 2 ** 40
      if (!retryNext(wal) || appendGroup(wal, group) === 'full') return
    }
    reported.lastIndex = from + count - 1
    reported.commit = hardState.commit
  }
  const next = (wal: Wal): number => wal.lastIndex + 1
  let wal = createWal(env, '/wal', IDENTITY, { index: 0, term: 0 }, OPTIONS)
  for (let i = 0; i < 12; i++) {
    store(wal, next(wal), 12)
    prepareNext(wal, 4_096)
  }
  const mark = { index: wal.hardState.commit, term: 1 }
  if (appendGroup(wal, { mark, batches: [] }) === 'stored') compactWal(wal, mark.index)
  // The process ends and begins again; what it left is copied.
  wal = openWal(env, '/wal', IDENTITY, { ...OPTIONS, isClean: false }).wal
  for (let i = 0; i < 4; i++) store(wal, next(wal), 12, 2)
  const index = wal.lastIndex + 50
  if (installWal(wal, { index, term: 2 })) reported.installed = index
  if (reported.installed > 0) store(wal, index + 1, 3, 2)
  closeWal(wal)
}

/** The same, with an end that the disk explains. */
function liveToTheEnd(disk: SimulatedDisk, reported: Reported, where: string): void {
  try {
    live(disk, reported)
  } catch (error) {
    const isExplained = error instanceof CrashError || error instanceof VacancyError || 'code' in (error as object)
    expect(isExplained, `${where}: ${String(error)}`).toBe(true)
  }
}

function fresh(): SimulatedDisk {
  const disk = createSimulatedDisk()
  disk.makeDirectory('/wal')
  disk.syncDirectory('/')
  return disk
}

const FAULTS: { readonly [name: string]: Fault } = {
  EIO: { kind: 'fail', code: 'EIO' },
  ENOSPC: { kind: 'fail', code: 'ENOSPC' },
  'a short write, then ENOSPC': { kind: 'short', bytes: 100, code: 'ENOSPC' },
  'the machine stops': { kind: 'crash' },
}

for (const [name, fault] of Object.entries(FAULTS)) {
  test(`${name} at any operation loses nothing that was stored`, () => {
    const whole = fresh()
    live(whole, { lastIndex: 0, commit: 0, installed: 0 })
    const calls = whole.operations.map(({ call }) => call)
    for (const [number, call] of calls.entries()) {
      if (fault.kind === 'short' && call !== 'write') continue
      const disk = fresh()
      disk.fault = (operation) => (operation.number === number ? fault : undefined)
      const reported: Reported = { lastIndex: 0, commit: 0, installed: 0 }
      const where = `operation ${number}, ${call} ${whole.operations[number]?.path}`
      liveToTheEnd(disk, reported, where)
      const left = fault.kind === 'crash' ? crash(disk, () => false) : restart(disk)
      left.capacityBytes = 2 ** 40
      const found = tryOpen(createSimulation({ disk: left }).env, '/wal', OPTIONS)
      // Before the first group there may be no log at all.
      if (reported.lastIndex === 0) continue
      expect(found.code, `${where}: ${found.message}`).toBe('')
      const last = Math.max(found.markIndex, Number(found.texts.at(-1)?.split('@')[0] ?? 0))
      expect(last, where).toBeGreaterThanOrEqual(reported.lastIndex)
      expect(found.commit, where).toBeGreaterThanOrEqual(reported.commit)
    }
  })
}

test('on a disk that copies on write, groups and votes wait for room and nothing stored is lost', () => {
  for (let roomBytes = 0; roomBytes <= 24_576; roomBytes += 512) {
    const disk = fresh()
    const reported: Reported = { lastIndex: 0, commit: 0, installed: 0 }
    disk.fault = ({ number }) => {
      if (number !== 30) return undefined
      disk.copiesOnWrite = true
      disk.capacityBytes = 2 ** 40 - disk.space('/').freeBytes + roomBytes
      return undefined
    }
    live(disk, reported)
    const found = tryOpen(createSimulation({ disk: restart(disk) }).env, '/wal', OPTIONS)
    expect(found.code, `${roomBytes}: ${found.message}`).toBe('')
    const last = Math.max(found.markIndex, Number(found.texts.at(-1)?.split('@')[0] ?? 0))
    expect(last, `${roomBytes}`).toBeGreaterThanOrEqual(reported.lastIndex)
  }
})
