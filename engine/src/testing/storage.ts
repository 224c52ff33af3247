/**
 * Crashes a scenario at every disk operation, in every way a disk may come back, and looks whether anything was broken
 * (docs/design/testing.md#storage-tests, tests 3 and 4).
 *
 * A scenario is a run of a node over one disk that notes in a ledger what it was promised and what it is just doing. A
 * check opens what is left of the disk, compares it with the ledger, goes on working, crashes once more and compares
 * again: so what a recovery returned must itself be durable.
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
  /** Runs to its end unless the disk stops it. */
  run(disk: SimulatedDisk, ledger: Ledger): void
  /**
   * Opens what is on the disk and compares it with the ledger. With `goesOn` it then writes, notes that in the ledger,
   * and leaves the disk as a running node would. Throws with what is wrong.
   */
  check(disk: SimulatedDisk, ledger: Ledger, goesOn: boolean): void
  /** Looks at the operations of a run that nothing stopped; throws with what is wrong. */
  checkRun(operations: readonly DiskOperation[]): void
  copyLedger(ledger: Ledger): Ledger
}

/** Looks at every operation of every disk of a run, for instance to take a sync out. */
export type Watcher = (disk: SimulatedDisk, operation: DiskOperation) => Fault | undefined

export type CrashOptions = {
  readonly random: Random
  /** Random outcomes of a crash, besides none, all, and each effect alone or missing. */
  readonly samples: number
  /** Crash before every so many operations, beginning anywhere; before each one when absent. */
  readonly every?: number
  /** Kill the process only, as a first look: cheap, and enough for syncs of a recovery. */
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

/** Test 3: crashes before each operation. @returns the first violation, undefined when all outcomes are as promised */
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
    // On its way out the crash may have been wrapped in the error of whoever met it.
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
      // What the recovery gave must survive another power loss, with and without something written after it.
      for (const goesOn of modes) {
        const found = watched(fork(after), watcher)
        const again = scenario.copyLedger(ledger)
        scenario.check(found, again, goesOn)
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
    // Everything that is left after a power loss is on the disk, so one of the two ways says enough.
    const violation = attempt(`the power was lost, outcome ${number++}`, after, [true])
    if (violation) return violation
  }
  return undefined
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error))
}

/** Test 4: each operation fails in turn. @returns what the run ended with, by operation */
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

/** Where a scenario, or a recovery from it, calls a sync: what can be taken out, and before which operation it first is. */
export function syncSites<Ledger>(scenario: Scenario<Ledger>): Map<string, number> {
  const sites = new Map<string, number>()
  let isRecovery = false
  const note: Watcher = (disk, operation) => {
    const site = disk.sites.get(operation.number)
    if (site && !sites.has(site)) sites.set(site, operation.number)
    // A recovery meets it as well, and that can come at any time.
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

/** A watcher under which every sync called from one place does nothing. */
export function withoutSync(site: string): Watcher {
  return (disk, operation) => (disk.sites.get(operation.number) === site ? { kind: 'ignore' } : undefined)
}

function watched(disk: SimulatedDisk, watcher: Watcher): SimulatedDisk {
  assert(!disk.crashed, 'a disk that stopped is only good for its crash')
  disk.recordSites = watcher !== PASSES
  disk.fault = (operation) => watcher(disk, operation)
  return disk
}
