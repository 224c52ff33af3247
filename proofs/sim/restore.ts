/**
 * Backups of a simulated shard, and restores of an older one while clients and sources go on: all processes end, and
 * the initial voters start from the backup with new disks. What was acknowledged after the backup is gone, nothing
 * before it is, and the indexes of that life of the data are those of no entry any more (docs/design/consensus.md#indexes).
 */

import { call, complete, type Operation } from './history.ts'
import { isForgotten } from './machine.ts'
import { oraclesFrom } from './oracles.ts'
import { outcomeOf } from './workload.ts'
import { type Backup, endProcess, restartLater, type World } from './world.ts'

/** Before it the properties of registers may be missing. */
const FIRST_INDEX = 100
const RESTORES_MAX = 2
/** Orders the writes of each life behind those of the life before. */
const LIFE = 2 ** 40
/** Process number in the history, distinct from those of clients. */
const RESTORER = 2_000_000

/** One in three times, and at first, a backup is taken instead. @returns whether the shard was restored */
export function backUpOrRestore(world: World, detail: number, downUs: number): boolean {
  if (!world.backup || detail % 3 === 0) {
    takeBackup(world)
    return false
  }
  if (world.lives > RESTORES_MAX) return false
  restore(world, world.backup, downUs)
  return true
}

/** Of a node that has applied all that the oracles know. */
function takeBackup(world: World): void {
  const { nodes, oracles, knobs } = world
  const { timeMs, timeAtUs } = oracles
  const index = oracles.terms.length - 1
  if (index < FIRST_INDEX) return
  for (const { process } of nodes) {
    const taken = process?.running?.backUp?.(index)
    const reference = taken && oracles.reference.restored?.()
    if (!taken || !reference) continue
    const values = Array.from({ length: knobs.registers }, (_, register) => taken.value(register))
    const promised = new Map(world.promised)
    world.backup = { file: taken.file, index: taken.index, reference, values, promised, timeMs, timeAtUs }
    world.counts.backups++
    return
  }
}

function restore(world: World, backup: Backup, downUs: number): void {
  const { nodes, knobs, program, proposed, loadMoments, loaded, sent } = world
  for (const node of nodes) {
    endProcess(world, node, 'restored', false)
    program.restore?.(world, node, node.number <= knobs.voters ? backup.file : undefined)
    Object.assign(node, { wipedAt: 0, hadDurable: undefined, wasVoter: false, isDamaged: false, appliedWhenDamaged: 0 })
  }
  for (const [operation, order] of orderInLog(world)) world.pastOrder.set(operation, order)
  for (const runtime of [proposed, loadMoments, loaded, sent]) runtime.clear()
  const reference = backup.reference.restored?.() ?? backup.reference
  world.oracles = oraclesFrom(world.oracles, backup, reference)
  world.promised = new Map(backup.promised)
  for (const forget of world.onRestored) forget()
  for (const [register, value] of backup.values.entries()) putBack(world, register, value)
  world.lives++
  world.network.life++
  for (const node of nodes) restartLater(world, node, downUs)
}

/** The register has the value of the backup again. */
function putBack({ history, pastOrder, lives }: World, register: number, value: number): void {
  const operation = call(history, RESTORER + history.operations.length, register, 'set', value)
  complete(history, operation, 'done', value)
  pastOrder.set(operation, lives * LIFE)
}

/** The first index of each write in the log, except where it was refused without a stored result. */
export function orderInLog({ oracles, sent, loaded, pastOrder, lives }: World): Map<Operation, number> {
  const order = new Map(pastOrder)
  const begin = (lives - 1) * LIFE
  for (const [operation, index] of loaded) order.set(operation, begin + index)
  for (const [attempt, index] of oracles.attempts) {
    const operation = sent.get(attempt)
    const code = oracles.codes[index]
    if (!operation || isForgotten(code) || outcomeOf(operation.kind, code) === 'none') continue
    order.set(operation, Math.min(begin + index, order.get(operation) ?? Number.POSITIVE_INFINITY))
  }
  return order
}
