import { dayOf, formatDay } from '@vacancy/shared'
import { expect, test } from 'vitest'
import { viewOf } from '../raft/entry.ts'
import { COMMAND_HEADER_BYTES, KIND } from '../store/command.ts'
import { createSimulatedDisk } from '../testing/disk.ts'
import { startToy, type ToyReplica } from '../testing/toy-replica.ts'
import { startMaintenance, startSnapshot } from './maintenance.ts'

const NOW = Date.parse('2026-11-23T03:00:00Z')
const TODAY = dayOf(NOW)

type Work = {
  /** Steps until all rows are in order, and until all memory is freed. */
  readonly orderingSteps?: number
  readonly sweepSteps?: number
  /** Packages of past nights. */
  readonly packages?: number
  readonly snapshotTakesMs?: number
}

/** A leader whose state machine has the given work, and what it did, in order. */
function leaderWith({ orderingSteps = 0, sweepSteps = 0, packages = 0, snapshotTakesMs = 50 }: Work) {
  const toy = startToy(createSimulatedDisk(), { wallMs: NOW, snapshotTakesMs })
  toy.simulation.settle()
  const done: string[] = []
  const { replica } = toy
  const { apply } = replica.machine
  let last = TODAY - 1
  let sweeps = 0
  Object.assign(replica.machine, {
    apply: (index: number, bytes: Uint8Array, start: number, end: number) => {
      const view = viewOf(bytes)
      if (view.getUint16(start, true) === KIND.dropBefore) {
        last = view.getUint32(start + COMMAND_HEADER_BYTES, true)
        done.push(`dropped before ${formatDay(last)}`)
      }
      return apply(index, bytes, start, end)
    },
    lastMaintenanceDay: () => last,
    packagesBefore: () => packages,
    *orderTables() {
      for (let n = 1; n <= orderingSteps; n++) {
        done.push(`ordered ${n}`)
        yield undefined
      }
    },
    sweep: () => {
      if (sweeps < sweepSteps) done.push(`freed ${++sweeps}`)
      return sweeps < sweepSteps
    },
  })
  Object.assign(replica, {
    maintainedDay: last,
    onMaintained: (day: number, removed: number) => done.push(`maintained ${formatDay(day)}, ${removed} removed`),
  })
  return { toy, replica, done }
}

/** Long enough for all of the work, too short for a periodic snapshot. */
const finish = (toy: ToyReplica) => toy.simulation.advance(20_000)

test.each([
  ['ordering', { orderingSteps: 5, sweepSteps: 1 }, ['ordered 5', 'freed 1']],
  ['freeing memory', { orderingSteps: 1, sweepSteps: 5 }, ['ordered 1', 'freed 5']],
])('maintenance ends after all of its work, also where %s takes longer', (_, work, lasts) => {
  const { toy, replica, done } = leaderWith({ ...work, packages: 12 })

  expect(startMaintenance(replica, 0)).toBe(true)
  finish(toy)

  expect(done[0]).toBe('dropped before 2026-11-23')
  expect(done).toEqual(expect.arrayContaining(lasts))
  expect(done.at(-1)).toBe('maintained 2026-11-23, 12 removed')
  expect(replica.removedPackages).toBe(12)
})

test('a snapshot follows once nights were removed, and none where there were none', () => {
  const withNights = leaderWith({ packages: 1 })
  startMaintenance(withNights.replica, 0)
  finish(withNights.toy)
  expect(withNights.toy.snapshots).toHaveLength(1)

  const without = leaderWith({ packages: 0 })
  startMaintenance(without.replica, 0)
  finish(without.toy)
  expect(without.done.at(-1)).toBe('maintained 2026-11-23, 0 removed')
  expect(without.toy.snapshots).toHaveLength(0)
})

test('rows are ordered after a running snapshot, memory is freed beside it', () => {
  const { toy, replica, done } = leaderWith({ orderingSteps: 2, sweepSteps: 2, snapshotTakesMs: 5_000 })
  startSnapshot(replica, 'periodic')
  toy.simulation.env.schedule.after(4_900, () => done.push('snapshot still runs'))

  startMaintenance(replica, 0)
  finish(toy)

  expect(done.indexOf('freed 2')).toBeLessThan(done.indexOf('snapshot still runs'))
  expect(done.indexOf('ordered 1')).toBeGreaterThan(done.indexOf('snapshot still runs'))
  expect(done.at(-1)).toBe('maintained 2026-11-23, 0 removed')
})

test('a day is maintained once', () => {
  const { toy, replica, done } = leaderWith({})
  expect(startMaintenance(replica, 0)).toBe(true)
  finish(toy)

  expect(startMaintenance(replica, 0)).toBe(false)
  finish(toy)
  expect(done.filter((one) => one.startsWith('dropped'))).toHaveLength(1)
})
