/**
 * Plans of leadership and membership changes: their effects, and every check with its level. Pure. A check that cannot
 * be made is listed as not known, never omitted.
 */
import { CATCH_UP, groupDigits } from '@vacancy/shared'
import type { NodeView, Plan, PlanCheck, PlanRequest, ShardView } from '@vacancy/shared/contract'
import { secondsText } from '../history/figures.ts'
import { DERIVE_LIMITS, lagText } from './derive.ts'
import type { PlanContext, PlanDraft } from './operation-types.ts'

const NODE_LEAD_RECENT_MS = 60_000
const MAINTENANCE_NEAR_MS = 5 * 60_000
const DAY_MS = 86_400_000

type Level = PlanCheck['level']
type Picture = Plan['before']

/** The check ids of each operation type, for tests and pages. */
type CheckId =
  | 'leader'
  | 'target'
  | 'target-voter'
  | 'target-answers'
  | 'idle'
  | 'admin'
  | 'token'
  | 'same-data'
  | 'lag'
  | 'spare'
  | 'machine'
  | 'recent-change'
  | 'maintenance'
  | 'quorum'
  | 'learner'
  | 'odd'
  | 'majority-after'
  | 'voter-remains'
  | 'not-leader'
  | 'member-change'
  | 'voter-away'
  | 'machine-apart'
  | 'zone-apart'

export function planTransfer(request: PlanRequest, context: PlanContext): PlanDraft {
  const { shard } = context
  const candidates = transferTargets(context)
  const target = nodeOf(shard, request.node ?? candidates.find(({ blocked }) => !blocked)?.node)
  const name = target?.id ?? request.node ?? ''
  const isWaiting = request.waitForLag === true
  const checks = [
    ...common(context),
    ...transferChecks(context, target, request),
    check('spare', (shard.spare ?? 0) >= 1, 'warn', {
      ok: `can lose ${shard.spare}`,
      bad: 'no voter to spare: if one fails during the change, writes stop',
    }),
    ...machineChecks(shard, target),
    ...timeChecks(context),
  ]
  const before = pictureOf(shard)
  return {
    node: target?.id ?? null,
    title: `Transfer leadership of ${shard.id} to ${name}`,
    action: isWaiting ? `Wait, then transfer to ${name}` : `Transfer leadership to ${name}`,
    before,
    after: target ? withLeader(before, target.id) : before,
    effects: [
      ...pauseEffects(context),
      { text: 'Reads continue on followers.', source: 'how shards work' },
      ...bridgeEffects(context),
    ],
    checks,
    writePause: pauseOf(context),
    commands: commandsOf(context, ['transfer', name], '/cluster/transfer-leader', { target_node_id: name }),
    alternatives: candidates.filter(({ node }) => node !== target?.id),
    isArmed: isWaiting && (target?.lagEntries ?? 0) > CATCH_UP.entriesMax,
  }
}

export function planPromote(request: PlanRequest, context: PlanContext): PlanDraft {
  const { shard } = context
  const learner = nodeOf(shard, request.node)
  const name = learner?.id ?? request.node ?? ''
  const votersAfter = shard.voters + 1
  const lag = learner?.lagEntries ?? null
  const checks = [
    ...common(context),
    ...quorumChecks(shard),
    answersCheck(learner, name),
    check('learner', learner ? (learner.voter === null ? undefined : !learner.voter) : false, 'block', {
      ok: `${name} is a learner`,
      bad: learner ? `${name} is already a voter` : `${shard.id} has no node ${name}`,
      unknown: `whether ${name} is a learner is not known: no node reports the members`,
    }),
    sameDataCheck(shard, learner),
    check('lag', lag === null ? undefined : lag <= CATCH_UP.entriesMax, 'warn', {
      ok: `lag ${lagText(lag ?? 0, learner?.lagSeconds ?? null)}`,
      bad: `${name} lacks ${lagText(lag ?? 0, learner?.lagSeconds ?? null)}: it counts toward the majority before it has the data`,
      unknown: `how far ${name} is behind is not known`,
    }),
    oddCheck(votersAfter),
  ]
  const before = pictureOf(shard)
  return {
    node: learner?.id ?? null,
    title: `Promote ${name} of ${shard.id} to voter`,
    action: `Promote ${name}`,
    before,
    after: withRole(before, shard, name, 'follower', +1),
    effects: [
      {
        text: `${majorityOf(votersAfter)} of ${votersAfter} voters must acknowledge a write, now ${shard.majority} of ${shard.voters}.`,
        source: '/cluster/info',
      },
      {
        text: `The leader waits up to ${CATCH_UP.waitText} until ${name} is ${CATCH_UP.entriesText}.`,
        source: 'how shards work',
      },
    ],
    checks,
    writePause: null,
    commands: commandsOf(context, ['promote', name], '/cluster/promote-learner', { node_id: name }),
    alternatives: others(shard, name, (node) => node.voter === false),
  }
}

export function planDemote(request: PlanRequest, context: PlanContext): PlanDraft {
  const { shard } = context
  const voter = nodeOf(shard, request.node)
  const name = voter?.id ?? request.node ?? ''
  const checks = [
    ...common(context),
    ...quorumChecks(shard),
    check('not-leader', shard.leader !== name, 'block', {
      ok: `${name} is not the leader`,
      bad: `${name} leads ${shard.id}`,
      fix: { label: 'Transfer, then demote', plan: { kind: 'transfer-then-demote', shard: shard.id, node: name } },
    }),
    ...demoteChecks(context, voter, name),
  ]
  return demotion(context, voter, name, checks, {
    title: `Demote ${name} of ${shard.id} to learner`,
    action: `Demote ${name}`,
    leader: shard.leader,
    effects: [],
    command: ['demote', name],
  })
}

export function planTransferThenDemote(request: PlanRequest, context: PlanContext): PlanDraft {
  const { shard } = context
  const voter = nodeOf(shard, request.node)
  const name = voter?.id ?? request.node ?? ''
  const targetId = transferTargets(context).find(({ blocked, node }) => !blocked && node !== name)?.node
  const target = nodeOf(shard, targetId)
  const checks = [
    ...common(context),
    check('not-leader', shard.leader === name, 'block', {
      ok: `${name} leads ${shard.id}`,
      bad: `${name} does not lead ${shard.id}`,
      fix: { label: `Demote ${name}`, plan: { kind: 'demote', shard: shard.id, node: name } },
    }),
    ...(target ? transferChecks(context, target, {}) : [blocked('target', 'no voter can take over now')]),
    ...demoteChecks(context, voter, name),
    ...timeChecks(context),
  ]
  return demotion(context, voter, name, checks, {
    title: `Transfer leadership of ${shard.id} to ${target?.id ?? 'another voter'}, then demote ${name}`,
    action: `Transfer, then demote ${name}`,
    leader: target?.id ?? shard.leader,
    effects: [...pauseEffects(context), ...bridgeEffects(context)],
    command: ['demote', name],
  })
}

function demotion(
  context: PlanContext,
  voter: NodeView | undefined,
  name: string,
  checks: PlanCheck[],
  more: {
    readonly title: string
    readonly action: string
    readonly leader: string | null
    readonly effects: PlanDraft['effects']
    readonly command: readonly string[]
  },
): PlanDraft {
  const { shard } = context
  const before = pictureOf(shard)
  const demoted = withRole(before, shard, name, 'learner', -1)
  const votersAfter = demoted.voters
  return {
    node: voter?.id ?? null,
    title: more.title,
    action: more.action,
    before,
    after: more.leader === null || more.leader === shard.leader ? demoted : withLeader(demoted, more.leader, name),
    effects: [
      ...more.effects,
      {
        text: `${majorityOf(votersAfter)} of ${votersAfter} voters must acknowledge a write, now ${shard.majority} of ${shard.voters}.`,
        source: '/cluster/info',
      },
      {
        text:
          voter?.freshness === 'gone' || voter?.freshness === 'never'
            ? `${name} is away: it is listed as a learner, and no longer counts toward majorities. A second demotion removes it.`
            : `${name} continues as a learner: it holds the data and answers reads, but does not count toward majorities.`,
        source: 'how shards work',
      },
    ],
    checks,
    writePause: more.leader === shard.leader ? null : pauseOf(context),
    commands: commandsOf(context, more.command, '/cluster/demote-voter', { node_id: name }),
    alternatives: others(shard, name, (node) => node.voter === true && node.id !== shard.leader),
  }
}

/** Voters that could lead, best first, with the reasons against each. */
function transferTargets(context: PlanContext): { node: string; message: string; blocked: boolean }[] {
  const { shard } = context
  return shard.nodes
    .filter((node) => node.voter === true && node.id !== shard.leader)
    .sort((a, b) => (a.lagEntries ?? Number.MAX_SAFE_INTEGER) - (b.lagEntries ?? Number.MAX_SAFE_INTEGER))
    .map((node) => {
      const against = transferChecks(context, node, {}).filter(({ level }) => level === 'block')
      const lag = node.lagEntries === null ? 'lag not known' : behindText(node.lagEntries, node.lagSeconds)
      return { node: node.id, message: against[0]?.text ?? lag, blocked: against.length > 0 }
    })
    .sort((a, b) => Number(a.blocked) - Number(b.blocked))
}

function behindText(entries: number, seconds: number | null): string {
  return entries === 0 ? 'no lag' : `lag ${lagText(entries, seconds)}`
}

function transferChecks(
  context: PlanContext,
  target: NodeView | undefined,
  request: Partial<PlanRequest>,
): PlanCheck[] {
  const { shard } = context
  const name = target?.id ?? request.node ?? ''
  const lag = target?.lagEntries ?? null
  const far = DERIVE_LIMITS.farBehind.entries
  const behind = lagText(lag ?? 0, target?.lagSeconds ?? null)
  const isFar = lag !== null && lag > far
  const isBehind =
    lag !== null && (lag > DERIVE_LIMITS.behind.entries || (target?.lagSeconds ?? 0) > DERIVE_LIMITS.behind.seconds)
  const waits = request.waitForLag === true
  return [
    check('leader', shard.leader !== null && shard.state !== 'disagree', 'block', {
      ok: `one leader, ${shard.leader}, named by ${namedBy(shard)} of ${shard.voters} voters`,
      bad: shard.leader === null ? 'nothing to transfer: no leader' : 'nodes disagree about the leader',
    }),
    check('target', target !== undefined && target.id !== shard.leader, 'block', {
      ok: `${name} does not lead yet`,
      bad: target
        ? `${name} is already the leader`
        : name === ''
          ? 'no voter can take over now'
          : `${shard.id} has no node ${name}`,
    }),
    check('target-voter', target?.voter ?? undefined, 'block', {
      ok: `${name} is a voter`,
      bad: `${name} is a learner: only voters lead`,
      unknown: `whether ${name} is a voter is not known`,
      ...(target?.voter === false && {
        fix: { label: `Promote ${name} first`, plan: { kind: 'promote', shard: shard.id, node: name } },
      }),
    }),
    check('target-answers', target?.freshness === 'live' && target.health === 'active_follower', 'block', {
      ok: `${name} answers`,
      bad: `${name} does not respond as an active follower: ${target?.message ?? 'not known'}`,
    }),
    sameDataCheck(shard, target),
    waits && lag !== null
      ? {
          id: 'lag',
          level: 'info',
          text: `starts once ${name} is ${CATCH_UP.entriesText}, now ${behind}; waits up to ${CATCH_UP.waitText}`,
        }
      : {
          ...check('lag', lag === null ? undefined : !isFar && !isBehind, isFar ? 'block' : 'warn', {
            ok: behindText(lag ?? 0, target?.lagSeconds ?? null),
            bad: isFar ? `${name} is far behind, ${behind}: the leader would abort` : `${name} is behind, ${behind}`,
            unknown: `how far ${name} is behind is not known`,
          }),
          ...((isFar || isBehind) && {
            fix: {
              label: 'Wait, then transfer',
              plan: { kind: 'transfer' as const, shard: shard.id, node: name, waitForLag: true },
            },
          }),
        },
  ]
}

export function common(context: PlanContext): PlanCheck[] {
  const { running, shard } = context
  return [
    check('admin', context.isAdmin, 'block', { ok: 'you may do this', bad: 'needs the admin role' }),
    check('token', context.hasAdminToken, 'block', {
      ok: 'this control plane has an admin token for the nodes',
      bad: 'this control plane has no admin token for the nodes: set node_admin_token',
    }),
    check('idle', running === undefined, 'block', {
      ok: 'no other operation',
      bad: `${running?.title ?? 'another operation'} is running`,
      ...(running && { fix: { label: 'Show it', href: `/operations/${running.id}` } }),
    }),
    check('member-change', shard.change === null, 'block', {
      ok: 'no change runs in the shard',
      bad: `the shard itself runs another change: ${shard.change?.kind} ${shard.change?.node}`,
    }),
  ]
}

export function quorumChecks(shard: ShardView): PlanCheck[] {
  return [
    check('quorum', shard.votersUp >= shard.majority && shard.voters > 0, 'block', {
      ok: `${shard.votersUp} of ${shard.voters} voters answer`,
      bad: `only ${shard.votersUp} of ${shard.voters} voters answer, ${shard.majority} needed: ${shard.waitsFor}`,
    }),
    check('leader', shard.leader !== null && shard.state !== 'disagree', 'block', {
      ok: `one leader, ${shard.leader}`,
      bad: shard.leader === null ? 'no leader' : 'nodes disagree about the leader',
    }),
  ]
}

function demoteChecks(context: PlanContext, voter: NodeView | undefined, name: string): PlanCheck[] {
  const { shard } = context
  const after = shard.voters - 1
  const upAfter = shard.votersUp - (voter && voter.freshness !== 'gone' && voter.freshness !== 'never' ? 1 : 0)
  const spareAfter = upAfter - majorityOf(after)
  return [
    check('target-voter', voter?.voter ?? undefined, 'block', {
      ok: `${name} is a voter`,
      bad: `${name} is already a learner; use vacancy cluster demote to remove it from the shard`,
      unknown: voter ? `whether ${name} is a voter is not known` : `${shard.id} has no node ${name}`,
    }),
    check('voter-remains', after >= 1, 'block', { ok: `${after} voters remain`, bad: 'it is the last voter' }),
    check('majority-after', upAfter >= majorityOf(after), 'block', {
      ok: `${upAfter} of the ${after} voters that remain answer, ${majorityOf(after)} needed`,
      bad: `only ${upAfter} of the ${after} voters that remain answer, ${majorityOf(after)} needed: writes would stop`,
    }),
    check('spare', spareAfter >= 1, 'warn', {
      ok: `can lose ${spareAfter} afterwards`,
      bad: 'afterwards no voter can be lost without stopping writes',
    }),
    oddCheck(after),
    {
      id: 'initial-voter',
      level: 'info',
      text: `if ${name} is among --initial-voters, it counts again when the shard is formed from a snapshot after all nodes were stopped`,
    },
  ]
}

export function answersCheck(node: NodeView | undefined, name: string): PlanCheck {
  return check('target-answers', node?.freshness === 'live' && node.health !== 'unavailable', 'block', {
    ok: `${name} answers`,
    bad: node ? `${name} does not respond: ${node.message}` : `the shard has no node ${name}`,
  })
}

export function sameDataCheck(shard: ShardView, node: NodeView | undefined): PlanCheck {
  const leader = nodeOf(shard, shard.leader)
  const isKnown = Boolean(leader?.orderedHash && node?.orderedHash)
  return check('same-data', isKnown ? node?.state !== 'different-data' : undefined, 'block', {
    ok: 'same codec list and data as the leader',
    bad: node?.message ?? '',
    unknown: 'whether codec list and data match the leader is not known',
  })
}

function machineChecks(shard: ShardView, target: NodeView | undefined): PlanCheck[] {
  const leader = nodeOf(shard, shard.leader)
  const [own, other] = [leader?.cores?.now, target?.cores?.now]
  const name = target?.id ?? ''
  return [
    check('machine', own === undefined || other === undefined ? undefined : other >= own, 'warn', {
      ok: `${name} has ${other} cores, as many as ${leader?.id} or more`,
      bad: `${name} has ${other} ${other === 1 ? 'core' : 'cores'}, ${leader?.id} has ${own}`,
      unknown: 'how many cores the nodes have is not known',
    }),
  ]
}

function timeChecks(context: PlanContext): PlanCheck[] {
  const { shard, now, observations } = context
  const since = shard.leaderSince === null ? undefined : now - Date.parse(shard.leaderSince)
  const hour = observations.find(({ limits }) => limits)?.limits?.maintenanceHour
  const intoDay = now % DAY_MS
  const distance = hour === undefined ? undefined : Math.abs(intoDay - hour * 3_600_000)
  const near = distance === undefined ? undefined : Math.min(distance, DAY_MS - distance)
  return [
    check('recent-change', since === undefined || since >= NODE_LEAD_RECENT_MS, 'warn', {
      ok: 'no change of leader in the last minute',
      bad: 'leadership changed within the last minute',
    }),
    ...(near === undefined
      ? []
      : [
          check('maintenance', near > MAINTENANCE_NEAR_MS, 'warn', {
            ok: 'not near the maintenance window',
            bad: `the daily maintenance at ${String(hour).padStart(2, '0')}:00 UTC is less than 5 minutes away`,
          }),
        ]),
  ]
}

export function oddCheck(voters: number): PlanCheck {
  const loses = voters - majorityOf(voters)
  return check('odd', voters % 2 === 1, 'warn', {
    ok: `${voters} voters: an odd number`,
    bad: `${voters} voters tolerate ${loses} ${loses === 1 ? 'failure' : 'failures'}, as ${voters - 1} do, but need ${majorityOf(voters)} acknowledgements`,
  })
}

/** @param holds undefined when it cannot be determined: then it is a warning, whatever its level would be */
export function check(
  id: CheckId,
  holds: boolean | undefined,
  level: Exclude<Level, 'ok'>,
  text: { readonly ok: string; readonly bad: string; readonly unknown?: string; readonly fix?: PlanCheck['fix'] },
): PlanCheck {
  if (holds === undefined)
    return { id, level: level === 'block' && id === 'target-voter' ? 'block' : 'warn', text: text.unknown ?? text.bad }
  if (holds) return { id, level: 'ok', text: text.ok }
  return { id, level, text: text.bad, ...(text.fix && { fix: text.fix }) }
}

export function blocked(id: CheckId, text: string): PlanCheck {
  return { id, level: 'block', text }
}

// Pictures

export function majorityOf(voters: number): number {
  return Math.floor(voters / 2) + 1
}

export function nodeOf(shard: ShardView, id: string | null | undefined): NodeView | undefined {
  return shard.nodes.find((node) => node.id === id)
}

export function pictureOf(shard: ShardView): Picture {
  return {
    nodes: shard.nodes.map(({ id, role, level, message }) => ({ node: id, role, level, message })),
    leader: shard.leader,
    voters: shard.voters,
    majority: shard.majority,
    spare: shard.spare ?? 0,
    data: null,
  }
}

function withLeader(picture: Picture, leader: string, except = ''): Picture {
  const roleOf = (node: Picture['nodes'][number]) =>
    node.node === leader ? 'leader' : node.role === 'leader' && node.node !== except ? 'follower' : node.role
  return { ...picture, leader, nodes: picture.nodes.map((node) => ({ ...node, role: roleOf(node) })) }
}

function withRole(picture: Picture, shard: ShardView, id: string, role: 'follower' | 'learner', more: 1 | -1): Picture {
  const voters = Math.max(0, picture.voters + more)
  const node = nodeOf(shard, id)
  const isUp = node !== undefined && node.freshness !== 'gone' && node.freshness !== 'never'
  const votersUp = shard.votersUp + (isUp ? more : 0)
  return {
    ...picture,
    nodes: picture.nodes.map((each) => (each.node === id ? { ...each, role } : each)),
    voters,
    majority: majorityOf(voters),
    spare: votersUp - majorityOf(voters),
  }
}

function namedBy(shard: ShardView): number {
  return shard.nodes.filter(({ voter, namesLeader }) => voter && namesLeader === shard.leader).length
}

function others(shard: ShardView, name: string, fits: (node: NodeView) => boolean): PlanDraft['alternatives'] {
  return shard.nodes
    .filter((node) => node.id !== name && fits(node))
    .map((node) => ({ node: node.id, message: node.message, blocked: node.freshness !== 'live' }))
}

// Effects

function pauseOf(context: PlanContext): Plan['writePause'] {
  const { shard, clusterPause } = context
  const reported = shard.writePause ?? clusterPause
  if (!reported) return null
  const transfers = reported.count === 1 ? 'last transfer' : `last ${reported.count} transfers`
  const source = `${transfers} of ${shard.writePause ? shard.id : 'other shards'}`
  return { expected: reported.median, worst: reported.worst, source }
}

function pauseEffects(context: PlanContext): PlanDraft['effects'] {
  const { shard } = context
  const pause = pauseOf(context)
  const writes = shard.rates.writes
  const waiting =
    writes === null || !pause?.expected
      ? ''
      : ` ${groupDigits(Math.round(writes))} writes/s now, so about ${groupDigits(Math.round((writes * pause.expected) / 1000))} wait.`
  const most = secondsText(shard.electionTimeoutMs / 1000)
  return [
    pause
      ? {
          text: `Writes to ${shard.id} pause: ${Math.round(pause.expected ?? 0)} ms typical, ${Math.round(pause.worst ?? 0)} ms worst.${waiting}`,
          source: pause.source,
        }
      : {
          text: `Writes to ${shard.id} pause: not measured here; at most one election timeout, ${most}.`,
          source: 'configuration of the nodes',
        },
  ]
}

function bridgeEffects({ bridges }: PlanContext): PlanDraft['effects'] {
  if (bridges.length === 0) return []
  const names = bridges.slice(0, 5).join(', ')
  const them =
    bridges.length === 1 ? `1 bridge (${names}) changes its` : `${bridges.length} bridges (${names}) change their`
  return [{ text: `${them} write target; open connections stay.`, source: 'registry' }]
}

export function commandsOf(
  context: PlanContext,
  words: readonly string[],
  path: string,
  body: object,
): Plan['commands'] {
  const { shard, baseUrl } = context
  const node = nodeOf(shard, shard.leader) ?? shard.nodes[0]
  const host = node && node.apiUrl !== '' ? new URL(node.apiUrl).host : '127.0.0.1:8080'
  return {
    cli: `vacancy cluster ${words.join(' ')} --node ${host} --token-file admin.token --wait`,
    curl: `curl -X POST '${baseUrl}${path}?shard=${encodeURIComponent(shard.id)}' -H "authorization: Bearer $TOKEN" -H 'content-type: application/json' -d '${JSON.stringify(body)}'`,
  }
}
