/**
 * Configurations as values: applying a change, validation, encoding (docs/design/consensus.md#membership,
 * docs/design/consensus.md#when-a-configuration-takes-effect). When it takes effect is decided in changes.ts.
 */

import { assert } from '@vacancy/shared'
import { readU64, viewOf, writeU64 } from './entry.ts'
import type { Configuration, Member } from './messages.ts'

/** docs/design/consensus.md#limits */
export const MEMBER_LIMITS = { voters: 7, learners: 16, nodeBytes: 255 } as const
/**
 * The raft id of a member that joins later is this number plus the index of the entry that adds it
 * (docs/design/consensus.md#identities).
 */
export const JOINED_ID_BASE = 1_000
const INCARNATION_DIGITS = 32

export type Step =
  | { readonly type: 'addLearner'; readonly node: string; readonly incarnation: string }
  | { readonly type: 'addVoter'; readonly node: string; readonly incarnation: string }
  | { readonly type: 'promote' | 'demote' | 'remove'; readonly id: number }
  | { readonly type: 'bind'; readonly id: number; readonly incarnation: string }

/**
 * Steps that are taken together, or the end of a joint phase. Without `phase` a change of at most one voter takes one
 * step and any other goes through a joint phase (docs/design/consensus.md#when-a-configuration-takes-effect), which is
 * left automatically unless `autoLeave` is false.
 */
export type Change =
  | { readonly steps: readonly Step[]; readonly phase?: 'single' | 'joint'; readonly autoLeave?: boolean }
  | 'leave'

/** Why a change does not lead to a configuration (docs/design/consensus.md#when-a-configuration-takes-effect). */
export type ChangeFault =
  | 'is-joint'
  | 'not-joint'
  | 'several-voters'
  | 'several-additions'
  | 'no-voter'
  | 'unknown-member'
  | 'known-member'
  | 'too-many-members'
  | 'no-effect'

/** A shard whose initial voters are these, bound or not. */
export function votersOnly(members: readonly Member[]): Configuration {
  const configuration = {
    members: [...members].sort((a, b) => a.id - b.id),
    voters: ascending(members.map(({ id }) => id)),
    outgoing: [],
    learners: [],
    staged: [],
    autoLeave: false,
  }
  assertConfiguration(configuration)
  return configuration
}

export function isJoint({ outgoing }: Configuration): boolean {
  return outgoing.length > 0
}

/** Whether it votes in either half. */
export function isVoter({ voters, outgoing }: Configuration, id: number): boolean {
  return voters.includes(id) || outgoing.includes(id)
}

/**
 * The configuration that results from a change, or why the change is invalid. `newId` is the raft id of an added
 * member.
 */
export function resultOf(before: Configuration, change: Change, newId: number): Configuration | ChangeFault {
  const after = change === 'leave' ? left(before) : entered(before, change, newId)
  if (typeof after !== 'string') assertConfiguration(after)
  return after
}

/** The joint phase is over: staged learners become learners, members of neither half are removed. */
function left(before: Configuration): Configuration | ChangeFault {
  if (!isJoint(before)) return 'not-joint'
  const learners = ascending([...before.learners, ...before.staged])
  const { voters } = before
  const members = before.members.filter(({ id }) => voters.includes(id) || learners.includes(id))
  return { members, voters, outgoing: [], learners, staged: [], autoLeave: false }
}

function entered(before: Configuration, change: Exclude<Change, 'leave'>, newId: number): Configuration | ChangeFault {
  if (isJoint(before)) return 'is-joint'
  const members = new Map(before.members.map((member) => [member.id, member]))
  const voters = new Set(before.voters)
  const learners = new Set(before.learners)
  let additions = 0
  for (const step of change.steps) {
    if (step.type === 'addLearner' || step.type === 'addVoter') {
      const { node, incarnation } = step
      const known = (member: Member) => member.node === node && member.incarnation === incarnation
      if (before.members.some(known)) return 'known-member'
      if (++additions > 1) return 'several-additions'
      members.set(newId, { id: newId, node, incarnation })
      ;(step.type === 'addVoter' ? voters : learners).add(newId)
      continue
    }
    const member = members.get(step.id)
    if (!member) return 'unknown-member'
    if (step.type === 'bind') members.set(step.id, { ...member, incarnation: step.incarnation })
    voters.delete(step.type === 'demote' || step.type === 'remove' ? step.id : 0)
    learners.delete(step.type === 'promote' || step.type === 'remove' ? step.id : 0)
    if (step.type === 'promote') voters.add(step.id)
    if (step.type === 'demote') learners.add(step.id)
    if (step.type === 'remove') members.delete(step.id)
  }
  if (voters.size === 0) return 'no-voter'
  if (voters.size > MEMBER_LIMITS.voters || learners.size > MEMBER_LIMITS.learners) return 'too-many-members'
  const moved = before.voters.filter((id) => !voters.has(id)).length + [...voters].filter(isNew(before)).length
  if (moved > 1 && change.phase === 'single') return 'several-voters'
  if (moved <= 1 && change.phase !== 'joint') {
    const after = {
      members: [...members.values()].sort((a, b) => a.id - b.id),
      voters: ascending([...voters]),
      outgoing: [],
      learners: ascending([...learners]),
      staged: [],
      autoLeave: false,
    }
    return sameBytes(encodeConfiguration(before), encodeConfiguration(after)) ? 'no-effect' : after
  }
  // Voters of the outgoing half stay members until the joint phase ends.
  for (const member of before.members) {
    if (before.voters.includes(member.id) && !members.has(member.id)) members.set(member.id, member)
  }
  const wasVoter = (id: number) => before.voters.includes(id)
  return {
    members: [...members.values()].sort((a, b) => a.id - b.id),
    voters: ascending([...voters]),
    outgoing: before.voters,
    learners: ascending([...learners].filter((id) => !wasVoter(id))),
    staged: ascending([...learners].filter(wasVoter)),
    autoLeave: change.autoLeave ?? true,
  }
}

function isNew(before: Configuration): (id: number) => boolean {
  return (id) => !before.voters.includes(id)
}

function ascending(ids: readonly number[]): number[] {
  return [...ids].sort((a, b) => a - b)
}

function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, at) => byte === b[at])
}

/** docs/design/consensus.md#invariants: the sets satisfy docs/design/consensus.md#membership. */
export function assertConfiguration(configuration: Configuration): void {
  const { members, voters, outgoing, learners, staged } = configuration
  const ids = members.map(({ id }) => id)
  for (const list of [ids, voters, outgoing, learners, staged]) {
    for (let i = 1; i < list.length; i++) {
      assert(list[i - 1] < list[i], 'ids ascend, each once')
    }
  }
  assert(voters.length > 0, 'a configuration has a voter')
  assert(
    learners.every((id) => !isVoter(configuration, id)),
    'a learner is not a voter of either half',
  )
  assert(
    staged.every((id) => outgoing.includes(id) && !voters.includes(id)),
    'a staged learner belongs to the outgoing half',
  )
  assert(outgoing.length > 0 || staged.length === 0, 'only a joint configuration has staged learners')
  assert(outgoing.length > 0 || !configuration.autoLeave, 'only a joint configuration is left')
  const placed = new Set([...voters, ...outgoing, ...learners])
  assert(placed.size === ids.length && ids.every((id) => placed.has(id)), 'the members are exactly those in a set')
}

/*
 * Bytes of a configuration, the payload of its entry:
 *
 *   version u8 (1) · autoLeave u8
 *   count u8 · per member: id u64 · node length u8 · node, UTF-8 · isBound u8 · 16 bytes of incarnation when bound
 *   voters, outgoing, learners, staged: count u8 · ids u64
 */

const VERSION = 1
const utf8 = new TextEncoder()
const fromUtf8 = new TextDecoder('utf-8', { fatal: true })

/** Equal configurations have equal bytes: all lists ascend. At most about 12 KiB. */
export function encodeConfiguration(configuration: Configuration): Uint8Array {
  const { members, voters, outgoing, learners, staged } = configuration
  const names = members.map(({ node }) => utf8.encode(node))
  const lists = [voters, outgoing, learners, staged]
  let length = 3
  members.forEach(({ incarnation }, at) => {
    const name = names[at] as Uint8Array
    assert(name.length <= MEMBER_LIMITS.nodeBytes, 'node names have at most 255 bytes')
    assert(incarnation === '' || incarnation.length === INCARNATION_DIGITS, 'an incarnation has 128 bits')
    length += 8 + 1 + name.length + 1 + incarnation.length / 2
  })
  for (const list of lists) length += 1 + 8 * list.length
  const bytes = new Uint8Array(length)
  const view = viewOf(bytes)
  bytes[0] = VERSION
  bytes[1] = configuration.autoLeave ? 1 : 0
  bytes[2] = members.length
  let at = 3
  members.forEach(({ id, incarnation }, member) => {
    const name = names[member] as Uint8Array
    writeU64(view, at, id)
    bytes[at + 8] = name.length
    bytes.set(name, at + 9)
    at += 9 + name.length
    bytes[at++] = incarnation === '' ? 0 : 1
    for (let digit = 0; digit < incarnation.length; digit += 2) {
      bytes[at++] = Number.parseInt(incarnation.slice(digit, digit + 2), 16)
    }
  })
  for (const list of lists) {
    bytes[at++] = list.length
    for (const id of list) {
      writeU64(view, at, id)
      at += 8
    }
  }
  assert(at === length, 'the encoded configuration has the computed length')
  return bytes
}

/** @throws AssertionError for bytes not produced by `encodeConfiguration`: entries have their own checksum */
export function decodeConfiguration(bytes: Uint8Array): Configuration {
  const view = viewOf(bytes)
  assert(view.getUint8(0) === VERSION, 'the version of the configuration is known')
  const autoLeave = view.getUint8(1) === 1
  const count = view.getUint8(2)
  let at = 3
  const members: Member[] = []
  for (let i = 0; i < count; i++) {
    const id = readU64(view, at)
    const length = view.getUint8(at + 8)
    const node = fromUtf8.decode(bytes.subarray(at + 9, at + 9 + length))
    at += 9 + length
    const digits = view.getUint8(at++) === 0 ? 0 : INCARNATION_DIGITS / 2
    let incarnation = ''
    for (let i = 0; i < digits; i++) incarnation += view.getUint8(at++).toString(16).padStart(2, '0')
    members.push({ id, node, incarnation })
  }
  const lists = [0, 1, 2, 3].map(() => {
    const list: number[] = []
    for (let left = view.getUint8(at++); left > 0; left--, at += 8) list.push(readU64(view, at))
    return list
  })
  const [voters = [], outgoing = [], learners = [], staged = []] = lists
  assert(at === bytes.length, 'a configuration fills its bytes exactly')
  const configuration = { members, voters, outgoing, learners, staged, autoLeave }
  assertConfiguration(configuration)
  return configuration
}
