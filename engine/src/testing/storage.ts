/**
 * Crashes a scenario at every disk operation, with every possible outcome of the disk, and checks the result
 * (docs/design/testing.md#storage-tests, tests 3 and 4).
 *
 * A scenario is a run of a node on one disk that records promises and pending work in a ledger. A check opens the
 * remaining disk, compares it with the ledger, continues working, crashes once more and compares again, so that
 * recovered data must itself be durable.
 */

import { assert } from '@vacancy/shared'
import type { Random } from '@vacancy/testkit/random'
import {
  crash,
  crashOutcomes,
  createSimulatedDisk,
  type DiskOperation,
  type Fault,
  fillDisk,
  fork,
  restart,
  type SimulatedDisk,
} from './disk.ts'

export type Scenario<Ledger> = {
  readonly name: string
  createLedger(): Ledger
  /** Runs to its end unless the disk stops. */
  run(disk: SimulatedDisk, ledger: Ledger): void
  /**
   * Opens the disk and compares it with the ledger. With `continues` it then writes, records that in the ledger, and
   * leaves the disk like a running node. Throws with the difference.
   */
  check(disk: SimulatedDisk, ledger: Ledger, continues: boolean): void
  /** Checks the operations of a run without faults; throws with the violation. */
  checkRun(operations: readonly DiskOperation[]): void
  copyLedger(ledger: Ledger): Ledger
}

/** Called for every operation of every disk of a run, for example to disable a sync. */
export type Watcher = (disk: SimulatedDisk, operation: DiskOperation) => Fault | undefined

export type CrashOptions = {
  readonly random: Random
  /** Number of random crash outcomes, besides none, all, and each effect alone or missing. */
  readonly samples: number
  /** Crash before every n-th operation, from a random start; before each one when absent. */
  readonly every?: number
  /** Kill only the process: cheap, and sufficient for syncs of a recovery. */
  readonly killsOnly?: boolean
  /** The first operation to crash before. */
  readonly from?: number
  readonly watcher?: Watcher
}

export type Violation = { readonly at: number; readonly how: string; readonly error: Error }

const PASSES: Watcher = () => undefined

/** The operations of a run that nothing disturbs. */
function operationsOf<Ledger>(scenario: Scenario<Ledger>, watcher = PASSES): DiskOperation[] {
  const disk = watched(createSimulatedDisk(), watcher)
  scenario.run(disk, scenario.createLedger())
  return disk.operations
}

/** Test 3: crashes before each operation. @returns the first violation; undefined when all promises hold */
export function crashEverywhere<Ledger>(scenario: Scenario<Ledger>, options: CrashOptions): Violation | undefined {
  const { watcher = PASSES, every = 1, from = 0 } = options
  const operations = operationsOf(scenario, watcher)
  try {
    scenario.checkRun(operations)
  } catch (error) {
    return { at: operations.length, how: 'nothing happened', error: asError(error) }
  }
  for (let at = from + options.random.below(every); at <= operations.length; at += every) {
    const ledger = scenario.createLedger()
    const disk = runUntil(scenario, ledger, at, watcher)
    const violation = checkOutcomes(scenario, disk, ledger, options, at)
    if (violation) return violation
  }
  return undefined
}

function runUntil<Ledger>(scenario: Scenario<Ledger>, ledger: Ledger, at: number, watcher: Watcher): SimulatedDisk {
  const disk = watched(createSimulatedDisk(), (self, operation) => {
    const fault = watcher(self, operation)
    return operation.number === at ? { kind: 'crash' } : fault
  })
  try {
    scenario.run(disk, ledger)
  } catch (error) {
    // The crash may have been wrapped in another error.
    if (!disk.crashed) throw error
  }
  return disk
}

function checkOutcomes<Ledger>(
  scenario: Scenario<Ledger>,
  disk: SimulatedDisk,
  ledger: Ledger,
  options: CrashOptions,
  at: number,
): Violation | undefined {
  const { random, samples, watcher = PASSES } = options
  const attempt = (how: string, after: SimulatedDisk, modes = [false, true]): Violation | undefined => {
    try {
      // Recovered data must survive another power loss, with and without further writes.
      for (const continues of modes) {
        const found = watched(fork(after), watcher)
        const again = scenario.copyLedger(ledger)
        scenario.check(found, again, continues)
        const later = crash(found, () => false)
        scenario.check(watched(later, watcher), again, false)
      }
      return undefined
    } catch (error) {
      return { at, how, error: asError(error) }
    }
  }
  const killed = attempt('the process was killed', restart(fork(disk)))
  if (killed) return killed
  const killedWhenFull = attempt('the process was killed and the disk is full', fillDisk(restart(fork(disk))))
  if (killedWhenFull) return killedWhenFull
  if (options.killsOnly) return undefined
  let number = 0
  for (const after of crashOutcomes(disk, random, samples)) {
    // After a power loss everything left is on the disk, so one of the two modes suffices.
    const violation = attempt(`power loss, outcome ${number++}`, after, [true])
    if (violation) return violation
  }
  return undefined
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error))
}

/** Test 4: each operation fails in turn. @returns how the run ended, by operation */
export function failEverywhere<Ledger>(
  scenario: Scenario<Ledger>,
  options: CrashOptions,
  faultFor: (operation: DiskOperation) => Fault | undefined,
  look: (operation: DiskOperation, thrown: unknown, disk: SimulatedDisk) => void,
): Violation | undefined {
  const operations = operationsOf(scenario)
  for (const operation of operations) {
    const fault = faultFor(operation)
    if (!fault) continue
    const ledger = scenario.createLedger()
    const disk = watched(createSimulatedDisk(), (_, { number }) => (number === operation.number ? fault : undefined))
    let thrown: unknown
    try {
      scenario.run(disk, ledger)
    } catch (error) {
      thrown = error
    }
    look(operation, thrown, disk)
    const violation = checkOutcomes(scenario, disk, ledger, options, operation.number)
    if (violation) return { ...violation, how: `${operation.call} ${operation.path} failed, then ${violation.how}` }
  }
  return undefined
}

/** The call sites of syncs in a scenario or its recovery, each with the first operation that calls it. */
export function syncSites<Ledger>(scenario: Scenario<Ledger>): Map<string, number> {
  const sites = new Map<string, number>()
  let isRecovery = false
  const note: Watcher = (disk, operation) => {
    const site = disk.sites.get(operation.number)
    if (site && !sites.has(site)) sites.set(site, operation.number)
    // A recovery calls it as well, which can happen at any time.
    if (site && isRecovery) sites.set(site, 0)
    return undefined
  }
  const ledger = scenario.createLedger()
  const disk = watched(createSimulatedDisk(), note)
  scenario.run(disk, ledger)
  isRecovery = true
  scenario.check(watched(restart(fork(disk)), note), scenario.copyLedger(ledger), true)
  scenario.check(watched(fillDisk(restart(fork(disk))), note), scenario.copyLedger(ledger), true)
  return sites
}

/** A watcher that disables every sync from one call site. */
export function withoutSync(site: string): Watcher {
  return (disk, operation) => (disk.sites.get(operation.number) === site ? { kind: 'ignore' } : undefined)
}

function watched(disk: SimulatedDisk, watcher: Watcher): SimulatedDisk {
  assert(!disk.crashed, 'a stopped disk can only be crashed')
  disk.recordSites = watcher !== PASSES
  disk.fault = (operation) => watcher(disk, operation)
  return disk
}
