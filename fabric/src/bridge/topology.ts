/**
 * What a bridge concludes from the responses of its shard's nodes. Pure: no sockets, clock or randomness.
 *
 * A leader is found when enough nodes name it and it answers as leader itself. Without one nothing changes: the
 * connections to the old nodes are kept until there is something better.
 */

import { compareText } from '@vacancy/shared/contract'

type BridgeRole = 'leader' | 'follower' | 'other'

export type NodePlace = { readonly host: string; readonly tcpPort: number; readonly apiPort: number }

export type BridgeNode = {
  readonly id: string
  readonly address: NodePlace
  /** `other`: a learner, a node that loads or follows another leader, or one that did not respond this round. */
  readonly role: BridgeRole
  /** Log entries behind; undefined where `/status` is not served. */
  readonly lag?: number
  /** The response of `/healthz`; `unreachable` without one. */
  readonly health: string
}

export type Topology = {
  /** When present, a key of `nodes` with role `leader`. */
  readonly leader?: string
  readonly nodes: ReadonlyMap<string, BridgeNode>
}

export const NO_TOPOLOGY: Topology = { nodes: new Map() }

/** A node that answered all that is needed. */
export type NodeReport = {
  readonly id: string
  readonly address: NodePlace
  readonly health: string
  /** '' names no leader. */
  readonly leaderId: string
  /** Of `/cluster/info`; undefined where it is not served. */
  readonly members: { readonly voters: readonly string[]; readonly term: number } | undefined
  readonly lag: number | undefined
}

/** What `/node-info` shows; undefined or '' where it does not. */
export type Identity = {
  readonly node: string | undefined
  readonly shard: string | undefined
  readonly zone: string | undefined
}

/**
 * Compares what a node shows of itself with what is expected, '' for anything: the resolver may have named a wrong host.
 *
 * @returns '' or what differs
 */
export function identityFault(shown: Identity, expected: Required<Identity>): string {
  for (const part of ['shard', 'node', 'zone'] as const) {
    const value = shown[part] ?? ''
    if (value !== '' && expected[part] !== '' && value !== expected[part])
      return `it is of ${part} ${value}, not ${expected[part]}`
  }
  return ''
}

/**
 * The leader that the nodes agree on, '' for none.
 *
 * Where `/cluster/info` is served, a strict majority of the voters that answered must name it. Elsewhere the one that
 * most nodes name; with equal counts the present leader stays, then one that answers as leader, then the first by id.
 */
export function electedLeader(reports: readonly NodeReport[], present: string | undefined): string {
  const voters = votersOf(reports)
  const electors = voters ? reports.filter(({ id }) => voters.has(id)) : reports
  const votes = new Map<string, number>()
  for (const { leaderId } of electors) if (leaderId !== '') votes.set(leaderId, (votes.get(leaderId) ?? 0) + 1)
  const most = Math.max(0, ...votes.values())
  if (most === 0 || (voters && most * 2 <= electors.length)) return ''
  const first = [...votes].filter(([, count]) => count === most).map(([id]) => id)
  if (present !== undefined && first.includes(present)) return present
  const rank = (id: string): number => (reports.some((report) => leads(report, id)) ? 0 : 1)
  return first.sort((a, b) => rank(a) - rank(b) || compareText(a, b))[0] ?? ''
}

/** The voters of the newest configuration; undefined when no node reports them, or none of them answered. */
function votersOf(reports: readonly NodeReport[]): ReadonlySet<string> | undefined {
  let newest: NodeReport['members']
  for (const { members } of reports) if (members && (!newest || members.term > newest.term)) newest = members
  const voters = new Set(newest?.voters)
  return reports.some(({ id }) => voters.has(id)) ? voters : undefined
}

function leads({ id, health, leaderId }: NodeReport, leader: string): boolean {
  return id === leader && leaderId === leader && health === 'active_leader'
}

/**
 * The topology after a round.
 *
 * @param probed every id of the round: a node that was probed and did not answer stays known, as `other`
 * @returns `isFound`: there is a leader. Without one the topology is the present one; a bridge that has none yet gets
 *   the followers that agree on a leader, so that it can serve reads.
 */
export function nextTopology(
  present: Topology,
  reports: readonly NodeReport[],
  probed: ReadonlySet<string>,
): { readonly topology: Topology; readonly isFound: boolean } {
  const leader = electedLeader(reports, present.leader)
  const isFound = reports.some((report) => leads(report, leader))
  if (!isFound && present.nodes.size > 0) return { topology: present, isFound }
  const nodes = new Map<string, BridgeNode>()
  for (const { id, address, health, leaderId, lag } of reports) {
    const isFollower = health === 'active_follower' && leaderId === leader && leader !== ''
    const role = isFound && id === leader ? 'leader' : isFollower ? 'follower' : 'other'
    nodes.set(id, { id, address, role, health, ...(lag !== undefined && { lag }) })
  }
  for (const [id, { address }] of present.nodes) {
    if (!nodes.has(id) && probed.has(id)) nodes.set(id, { id, address, role: 'other', health: 'unreachable' })
  }
  return { topology: { ...(isFound && { leader }), nodes }, isFound }
}

/** Whether they are the same in everything but lag. */
export function isSameTopology(a: Topology, b: Topology): boolean {
  if (a.leader !== b.leader || a.nodes.size !== b.nodes.size) return false
  return [...a.nodes].every(([id, node]) => {
    const other = b.nodes.get(id)
    return (
      other !== undefined &&
      node.role === other.role &&
      node.health === other.health &&
      node.address.host === other.address.host &&
      node.address.tcpPort === other.address.tcpPort &&
      node.address.apiPort === other.address.apiPort
    )
  })
}
