/** One core among peers that the test simulates: shortcuts for logs, elections and responses. */

import { assert } from '@vacancy/shared'
import { ENTRY_KIND, type EntryBatch, encodeEntry, entryKind, sliceBatch, viewOf } from '../raft/entry.ts'
import { decodeConfiguration } from '../raft/membership.ts'
import type { AppendMessage, Configuration, Message } from '../raft/messages.ts'
import {
  applied,
  applyConfiguration,
  campaign,
  createRaft,
  hasReady,
  nextCommitted,
  persisted,
  propose,
  type Raft,
  type RaftConfig,
  type Ready,
  type RestoredState,
  step,
  takeReady,
} from '../raft/raft.ts'

export const E = 10

type Places = {
  readonly voters: readonly number[]
  readonly outgoing?: readonly number[]
  readonly learners?: readonly number[]
  readonly staged?: readonly number[]
  readonly autoLeave?: boolean
  /** Nodes without an incarnation. */
  readonly unbound?: readonly number[]
}

export function configurationOf(places: Places): Configuration {
  const { voters, outgoing = [], learners = [], staged = [], autoLeave = false, unbound = [] } = places
  const ids = [...new Set([...voters, ...outgoing, ...learners])].sort((a, b) => a - b)
  const members = ids.map((id) => ({ id, node: `n${id}`, incarnation: unbound.includes(id) ? '' : incarnationOf(id) }))
  return { members, voters, outgoing, learners, staged, autoLeave }
}

export function incarnationOf(id: number): string {
  return id.toString(16).padStart(32, '0')
}

/** A command whose payload is its own number. */
export function command(term: number, value = 0): Uint8Array {
  return encodeEntry(term, ENTRY_KIND.command, Uint8Array.of(value))
}

/** One-entry batches with these terms, starting at `firstIndex`. */
export function logOf(terms: readonly number[], firstIndex = 1): EntryBatch[] {
  return terms.map((term, at) => ({ firstIndex: firstIndex + at, count: 1, bytes: command(term, firstIndex + at) }))
}

/** The same as one batch; all terms must be equal. */
export function batchOf(term: number, count: number, firstIndex: number): EntryBatch {
  const parts = logOf(new Array<number>(count).fill(term), firstIndex)
  return { firstIndex, count, bytes: Uint8Array.from(parts.flatMap(({ bytes }) => [...bytes])) }
}

type Options = Partial<RaftConfig> & {
  /** Terms of entries 1 … n, durable, not applied. */
  readonly log?: readonly number[]
  readonly restored?: Partial<RestoredState>
}

/** A member, by default of the shard 1, 2, 3; its log is in memory and its term is that of the last entry. */
export function memberOf(places: Places | Configuration = { voters: [1, 2, 3] }, options: Options = {}): Raft {
  const { log = [], restored, ...config } = options
  const term = log.at(-1) ?? 0
  return createRaft(
    {
      id: 1,
      electionTicks: E,
      heartbeatTicks: 1,
      random: () => 0,
      preVote: true,
      checkQuorum: true,
      stepDownOnRemoval: true,
      validateChanges: true,
      ...config,
    },
    {
      term,
      vote: 0,
      commit: 0,
      lastIndex: log.length,
      lastTerm: term,
      applied: 0,
      appliedTerm: 0,
      firstIndex: 1,
      terms: [{ term: 0, firstIndex: 0 }],
      configuration: 'members' in places ? places : configurationOf(places),
      entries: logOf(log),
      ...restored,
    },
  )
}

/** Takes everything that is ready, persists and applies it. @returns the messages in sending order */
export function drain(raft: Raft): Message[] {
  return drainReadies(raft).flatMap((ready) => [...ready.sendNow, ...ready.sendAfterPersist])
}

export function drainReadies(raft: Raft): Ready[] {
  const readies: Ready[] = []
  applyAll(raft)
  while (hasReady(raft)) {
    const ready = takeReady(raft)
    readies.push(ready)
    persisted(raft, ready.token)
    applyAll(raft)
  }
  return readies
}

export function applyAll(raft: Raft): void {
  for (let batch = nextCommitted(raft); batch; batch = nextCommitted(raft)) {
    for (let index = batch.firstIndex; index < batch.firstIndex + batch.count; index++) {
      const { bytes } = sliceBatch(batch, index, index)
      if (entryKind(viewOf(bytes), 0) !== ENTRY_KIND.configuration) continue
      applyConfiguration(raft, index, decodeConfiguration(bytes.subarray(13)))
    }
    applied(raft, batch.firstIndex + batch.count - 1, batch.count, batch.bytes.length)
  }
}

const UNKNOWN = { commit: 0, commitTerm: 0 } as const

export function grant(raft: Raft, from: number, type: 'voteReply' | 'preVoteReply' = 'voteReply'): void {
  const term = type === 'preVoteReply' ? raft.term + 1 : raft.term
  step(raft, { type, from, to: raft.id, term, isGranted: true, ...UNKNOWN })
}

export function refuse(raft: Raft, from: number, type: 'voteReply' | 'preVoteReply' = 'voteReply'): void {
  step(raft, { type, from, to: raft.id, term: raft.term, isGranted: false, ...UNKNOWN })
}

type VoteRequest = {
  readonly term: number
  readonly lastIndex: number
  readonly lastTerm: number
  readonly isForced?: boolean
}

export function ask(raft: Raft, from: number, type: 'vote' | 'preVote', request: VoteRequest): void {
  step(raft, { type, from, to: raft.id, isForced: false, ...UNKNOWN, ...request })
}

export function acknowledge(raft: Raft, from: number, index = raft.lastIndex): void {
  const none = { isRejected: false, hintIndex: 0, hintTerm: 0 }
  step(raft, { type: 'appendReply', from, to: raft.id, term: raft.term, index, ...none })
}

export function reject(raft: Raft, from: number, index: number, hintIndex: number, hintTerm: number): void {
  step(raft, { type: 'appendReply', from, to: raft.id, term: raft.term, index, isRejected: true, hintIndex, hintTerm })
}

export function answerHeartbeat(raft: Raft, from: number, readRound = raft.readRound): void {
  step(raft, { type: 'heartbeatReply', from, to: raft.id, term: raft.term, readRound })
}

type Sent = Partial<AppendMessage>

/** A message from leader 2 to member 1. */
export function appendTo(raft: Raft, sent: Sent = {}): void {
  const { from = 2, term = Math.max(1, raft.term), prevIndex = raft.lastIndex, entries = [], commit = 0 } = sent
  const prevTerm = sent.prevTerm ?? raft.lastTerm
  step(raft, { type: 'append', from, to: raft.id, term, prevIndex, prevTerm, entries, commit })
}

export function heartbeatTo(raft: Raft, term = Math.max(1, raft.term), commit = 0, from = 2): void {
  step(raft, { type: 'heartbeat', from, to: raft.id, term, commit, readRound: 0 })
}

/** Elects it with all votes, without an acknowledgement of its first entry. */
export function elect(raft: Raft): Raft {
  campaign(raft)
  drain(raft)
  const others = raft.configuration.members.map(({ id }) => id).filter((id) => id !== raft.id)
  for (const id of others) if (raft.role === 'preCandidate') grant(raft, id, 'preVoteReply')
  drain(raft)
  for (const id of others) if (raft.role === 'candidate') grant(raft, id)
  assert(raft.role === 'leader', 'it is elected')
  return raft
}

/** A leader whose first entry is replicated to all members and applied. */
export function leaderOf(places?: Places | Configuration, options?: Options): Raft {
  const raft = elect(memberOf(places, options))
  drain(raft)
  for (const { id } of raft.configuration.members) if (id !== raft.id) acknowledge(raft, id)
  drain(raft)
  return raft
}

export function give(raft: Raft, count = 1): ReturnType<typeof propose> {
  const bytes = batchOf(raft.term, count, 1).bytes
  return propose(raft, count, bytes)
}

export function ofType<Type extends Message['type']>(
  messages: readonly Message[],
  type: Type,
  to?: number,
): Extract<Message, { type: Type }>[] {
  const isWanted = (message: Message): message is Extract<Message, { type: Type }> =>
    message.type === type && (to === undefined || message.to === to)
  return messages.filter(isWanted)
}

/** The indexes of an append as [first, last]; undefined when it has no entries. */
export function rangeOf({ entries }: AppendMessage): [number, number] | undefined {
  const first = entries[0]
  const last = entries.at(-1)
  return first && last && [first.firstIndex, last.firstIndex + last.count - 1]
}
