/** Operator requests: a member forwards them to its leader, which answers. */

import { unreachable } from '@vacancy/shared'
import { BOOKED_AT_LEVEL, STAYS_LEVEL } from '../store/store.ts'
import type { AdminFrame } from '../transport/frames.ts'
import { sendFrame } from '../transport/peers.ts'
import { obtainSnapshot, onDrop, onHold, startDrop, startLoad } from './bulk-load-coordinator.ts'
import { pump } from './hand-over.ts'
import { decideLeave } from './leaves.ts'
import { type AdminAnswer, isReady, type Member, nameOf, nodeOf, viewOf } from './member-state.ts'
import { isCaughtUp, startDemote, startPromote, startTransfer } from './membership.ts'
import { setShardTime } from './set-shard-time.ts'
import { changeSetting } from './settings.ts'

/** Longer than the caller waits, so the caller already knows that the outcome is open (http/cluster.ts). */
const ADMIN_MS = 6_000

const ADMIN_WAITING_MAX = 64

/** An operator's request to a shard. */
export type AdminRequest =
  | { readonly kind: 'promote' | 'demote' | 'transfer'; readonly node: string; readonly term?: number }
  | { readonly kind: 'load'; readonly file: string }
  | { readonly kind: 'load' | 'drop-load'; readonly digest: string }
  | { readonly kind: 'set-time'; readonly confirm: boolean }
  | { readonly kind: 'setting'; readonly name: string; readonly value: number }
  /** This voter wants to end by itself; its process has ended `forMs` after that at the latest. */
  | { readonly kind: 'leave'; readonly forMs: number }

/** The request as the leader receives it. */
type AdminCommand = Pick<AdminFrame, 'kind' | 'node' | 'digest' | 'detail'>

type OnAdmin = (answer: AdminAnswer) => void

/** Requests a change. A node that does not lead forwards it to the leader. Calls back once. */
export function requestAdmin(member: Member, what: AdminRequest, onAnswer: OnAdmin): void {
  switch (what.kind) {
    case 'load':
      // This node brings the snapshot in; the leader only learns its digest.
      return obtainSnapshot(member.loads, what, (result) => {
        if ('status' in result) onAnswer(result)
        else sendToLeader(member, { kind: 'load', node: '', ...result }, onAnswer)
      })
    case 'drop-load':
      return sendToLeader(member, { kind: what.kind, node: '', digest: what.digest, detail: '' }, onAnswer)
    case 'set-time': {
      // A leader of an older version does not know the frame.
      if (member.replica.machine.featureLevel() < 1) return setShardTime(member.replica, false, onAnswer)
      const detail = what.confirm ? CONFIRMED : ''
      return sendToLeader(member, { kind: what.kind, node: '', digest: '', detail }, onAnswer)
    }
    case 'setting': {
      // A leader of an older version does not know the frame.
      const { machine } = member.replica
      if (machine.featureLevel() < STAYS_LEVEL) return onAnswer(changeSetting(member.replica, what.name, what.value))
      const detail = `${what.name}=${what.value}`
      return sendToLeader(member, { kind: what.kind, node: '', digest: '', detail }, onAnswer)
    }
    case 'leave': {
      const { machine, raft } = member.replica
      // A leader of an older version does not know the frame.
      if (raft.role !== 'leader' && machine.featureLevel() < BOOKED_AT_LEVEL)
        return onAnswer({ status: 503, text: 'not all members run this version' })
      return sendToLeader(member, { kind: what.kind, node: member.node, digest: '', detail: `${what.forMs}` }, onAnswer)
    }
    default: {
      const { raft } = member.replica
      if (what.term !== undefined && (raft.role !== 'leader' || raft.term !== what.term)) {
        const now = raft.role === 'leader' ? `this node leads in term ${raft.term}` : 'this node does not lead'
        return onAnswer({ status: 409, text: `the request was for term ${what.term}: ${now}` })
      }
      return sendToLeader(member, { kind: what.kind, node: what.node, digest: '', detail: '' }, onAnswer)
    }
  }
}

function sendToLeader(member: Member, command: AdminCommand, onAnswer: OnAdmin): void {
  const { raft } = member.replica
  if (raft.role === 'leader') {
    decideAdmin(member, command, onAnswer)
    pump(member.replica)
    return
  }
  const leader = nodeOf(member, raft.leader)
  if (leader === undefined || raft.leader === 0) return onAnswer({ status: 503, text: 'no leader' })
  if (member.admin.size >= ADMIN_WAITING_MAX) return onAnswer({ status: 503, text: 'cluster busy, please retry' })
  const id = member.nextAdmin++
  if (!sendFrame(member.peers, leader, { type: 'admin', id, ...command }))
    return onAnswer({ status: 503, text: 'no leader' })
  member.admin.set(id, { onAnswer, deadlineMs: member.env.clock.monotonicMs() + ADMIN_MS })
}

const CONFIRMED = 'confirm'

function decideAdmin(member: Member, command: AdminCommand, onAnswer: OnAdmin): void {
  const { membership, loads, replica } = member
  switch (command.kind) {
    case 'promote':
      return onAnswer(startPromote(membership, command.node))
    case 'demote':
      return onAnswer(startDemote(membership, command.node))
    case 'transfer':
      return onAnswer(startTransfer(membership, command.node))
    case 'load':
      return startLoad(loads, command.digest, command.detail, onAnswer)
    case 'drop-load':
      return startDrop(loads, command.digest, onAnswer)
    case 'set-time':
      if (!isReady(member)) return onAnswer({ status: 503, text: 'no leader' })
      return setShardTime(replica, command.detail === CONFIRMED, onAnswer)
    case 'setting': {
      if (!isReady(member)) return onAnswer({ status: 503, text: 'no leader' })
      const [name = '', value = ''] = command.detail.split('=')
      return onAnswer(changeSetting(replica, name, Number(value)))
    }
    case 'leave':
      return onAnswer(decideLeaveOf(member, command.node, Number(command.detail)))
    default:
      return unreachable(command.kind)
  }
}

function decideLeaveOf(member: Member, node: string, forMs: number): AdminAnswer {
  if (!isReady(member)) return { status: 503, text: 'no leader' }
  const { replica, samples, running, leaves, env } = member
  const view = viewOf(member)
  const away = view.configuration.voters.find((id) => {
    const name = nameOf(view.configuration, id)
    if (name === node || id === view.id) return false
    return !running.has(name) || !isCaughtUp(view, id) || samples.get(id)?.isDiskFull
  })
  const request = { node, isLeader: node === member.node, forMs, away: nameOf(replica.raft.configuration, away ?? 0) }
  return decideLeave(leaves, request, env.clock.monotonicMs())
}

/** Forwarded once, not twice: a leader that has just changed answers that it does not lead. */
export function onAdminFrame(member: Member, peer: string, frame: AdminFrame): void {
  const { id, kind } = frame
  // Not an operator's request but a command of the leader to its members.
  if (id === 0) return kind === 'load' ? onHold(member.loads, peer, frame) : onDrop(member.loads, frame)
  const reply = ({ status: code, text }: AdminAnswer) =>
    void sendFrame(member.peers, peer, { type: 'adminReply', id, ok: code === 202, status: code, text })
  if (member.replica.raft.role === 'leader') decideAdmin(member, frame, reply)
  else reply({ status: 503, text: 'no leader' })
}

export function adminStatus(code: number): AdminAnswer['status'] {
  return code === 202 || code === 404 || code === 409 ? code : 503
}

export function expireAdmin({ admin }: Member, now: number): void {
  for (const [id, { deadlineMs, onAnswer }] of admin) {
    if (now < deadlineMs) continue
    admin.delete(id)
    onAnswer({ status: 503, text: 'the leader did not answer' })
  }
}
