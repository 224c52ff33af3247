/**
 * Membership changes of the running core (docs/design/consensus.md#membership). A configuration is in force from the
 * moment its entry is applied (docs/design/consensus.md#when-a-configuration-takes-effect); that is safe together with
 * one change at a time (docs/design/consensus.md#when-a-configuration-takes-effect), commit indexes that are stored
 * with the entries (docs/design/consensus.md#when-a-configuration-takes-effect) and no campaign while a committed
 * change is unapplied (docs/design/consensus.md#when-a-node-does-not-campaign).
 */

import { assert } from '@vacancy/shared'
import { ENTRY_KIND, encodeEntry } from './entry.ts'
import { commitByCounting } from './leader.ts'
import { appendEntries } from './log.ts'
import {
  assertConfiguration,
  type Change,
  type ChangeFault,
  encodeConfiguration,
  isJoint,
  isVoter,
  JOINED_ID_BASE,
  resultOf,
} from './membership.ts'
import type { Configuration } from './messages.ts'
import { confirmReads } from './reads.ts'
import { becomeFollower, isElectable, placePeers, type Raft } from './state.ts'
import { abortTransfer } from './transfer.ts'

export type ChangeRefusal = ChangeFault | 'not-leader' | 'no-leader' | 'transferring' | 'change-in-flight'

/**
 * Appends the configuration that results from a change. The raft id of a member it adds is 1,000 + the index of the
 * entry.
 *
 * @returns index of the entry, or why nothing was appended (docs/design/consensus.md#when-a-configuration-takes-effect)
 */
export function proposeChange(raft: Raft, change: Change): number | ChangeRefusal {
  if (raft.role !== 'leader') return raft.leader === 0 ? 'no-leader' : 'not-leader'
  if (!isVoter(raft.configuration, raft.id)) return 'not-leader'
  if (raft.transferTarget !== 0) return 'transferring'
  // docs/design/consensus.md#when-a-configuration-takes-effect: at most one change is unapplied. A new leader first
  // applies its own empty entry, which covers all inherited entries.
  if (raft.changeIndex > raft.applied && !isOverridden(raft)) return 'change-in-flight'
  const result = resultOf(raft.configuration, change, JOINED_ID_BASE + raft.lastIndex + 1)
  return typeof result === 'string' ? result : appendConfiguration(raft, result)
}

function isOverridden(raft: Raft): boolean {
  return !raft.config.validateChanges
}

function appendConfiguration(raft: Raft, configuration: Configuration): number {
  assert(raft.configurations.length === 0 || isOverridden(raft), 'at most one change is unapplied')
  const bytes = encodeEntry(raft.term, ENTRY_KIND.configuration, encodeConfiguration(configuration))
  raft.changeIndex = appendEntries(raft, raft.term, 1, bytes)
  raft.configurations.push(raft.changeIndex)
  raft.mustBroadcast = true
  return raft.changeIndex
}

/**
 * The entry at `index`, which holds `configuration`, is being applied
 * (docs/design/consensus.md#when-a-configuration-takes-effect). Called before `applied` confirms it, by every member.
 */
export function applyConfiguration(raft: Raft, index: number, configuration: Configuration): void {
  assert(index > raft.applied && index <= raft.handedOut, 'a configuration is applied with its entry')
  assert(raft.configurations.includes(index), 'the entry is a configuration')
  assertConfiguration(configuration)
  raft.configuration = configuration
  raft.configurationIndex = index
  for (const id of raft.counts.keys()) {
    if (!configuration.members.some((member) => member.id === id)) raft.counts.delete(id)
  }
  placePeers(raft)
  if (raft.role !== 'leader') {
    // docs/design/consensus.md#invariants: a member that may no longer lead stops campaigning.
    if (raft.role !== 'follower' && !isElectable(raft)) becomeFollower(raft, raft.term, 0)
    return
  }
  if (raft.transferTarget !== 0 && !isVoter(configuration, raft.transferTarget)) abortTransfer(raft) // docs/design/consensus.md#when-a-configuration-takes-effect
  if (!isVoter(configuration, raft.id) && raft.config.stepDownOnRemoval) {
    return becomeFollower(raft, raft.term, 0) // docs/design/consensus.md#when-a-configuration-takes-effect
  }
  // A smaller quorum may already allow a commit; new peers learn of their leader.
  commitByCounting(raft)
  confirmReads(raft)
  raft.mustBroadcast = true
}

/**
 * This member was removed and admitted again under a later id (docs/design/consensus.md#joining). Term, vote and log
 * stay: what was promised under the earlier id is still kept.
 */
export function takeId(raft: Raft, id: number): void {
  assert(id > raft.id, 'raft ids are never reused')
  if (raft.role !== 'follower') becomeFollower(raft, raft.term, 0)
  raft.id = id
  placePeers(raft)
}

/**
 * The leader proposes the end of the joint phase once, after the phase has taken effect
 * (docs/design/consensus.md#when-a-configuration-takes-effect).
 */
export function leaveJointPhase(raft: Raft): void {
  const { configuration } = raft
  if (raft.role !== 'leader' || !isJoint(configuration) || !configuration.autoLeave) return
  if (raft.changeIndex > raft.applied) return
  const result = resultOf(configuration, 'leave', 0)
  assert(typeof result !== 'string', 'a joint phase can be left')
  appendConfiguration(raft, result)
}
