/**
 * The plan of a replacement: a learner takes the place of a voter, usually one that is dead. Two changes of the members,
 * in the order that leaves more voters to spare between them. Pure.
 */
import { CATCH_UP } from '@vacancy/shared'
import type { MemberChange, NodeView, PlanCheck, PlanRequest, ShardView } from '@vacancy/shared/contract'
import { zoneText } from '@vacancy/shared/numbers'
import { lagText } from './derive.ts'
import { machineOf } from './impact.ts'
import type { PlanContext, PlanDraft } from './operation-types.ts'
import {
  answersCheck,
  blocked,
  check,
  commandsOf,
  common,
  majorityOf,
  nodeOf,
  oddCheck,
  pictureOf,
  quorumChecks,
  sameDataCheck,
} from './plans.ts'

/** The limit of the nodes. */
const VOTERS_MAX = 7

export function planReplace(request: PlanRequest, context: PlanContext): PlanDraft {
  const { shard } = context
  const old = nodeOf(shard, request.node)
  const name = old?.id ?? request.node ?? ''
  const candidates = replacementsFor(shard, old)
  const spare = request.replacement === undefined ? candidates[0] : nodeOf(shard, request.replacement)
  const other = spare?.id ?? request.replacement ?? 'a learner'
  const changes = old && spare ? changesOf(shard, old, spare) : []
  const [first, last] = changes
  const before = pictureOf(shard)
  const checks = [
    ...common(context),
    ...quorumChecks(shard),
    ...oldChecks(shard, old, name),
    ...(spare || request.replacement !== undefined
      ? spareChecks(shard, spare, other)
      : [
          blocked(
            'learner',
            `${shard.id} has no learner to take the place: start another node of the shard, it joins as one`,
          ),
        ]),
    ...changes.map((change) => majorityCheck(change)),
    ...(old && spare ? [...placeChecks(shard, old, spare)] : []),
    ...(last ? [spareCheck(last), oddCheck(last.voters.length)] : []),
    {
      id: 'initial-voter',
      level: 'info' as const,
      text: `if ${name} is among --initial-voters, put ${other} in its place there: the list counts when the shard is formed from a snapshot after all nodes were stopped`,
    },
  ]
  const isAway = old !== undefined && !isUp(old)
  return {
    node: old?.id ?? null,
    title: `Replace voter ${name} of ${shard.id} by ${other}`,
    action: `Replace ${name} by ${other}`,
    before,
    after: first && last && old && spare ? after(before, last, old.id, spare.id) : before,
    effects: [
      ...changes.map((change, at) => ({ text: stepText(change, at + 1), source: 'failure matrix' })),
      { text: 'Writes continue. The leader stays.', source: 'how shards work' },
      {
        text: isAway
          ? `${name} stays listed as a learner. If it returns it catches up as one; if not, vacancy cluster demote removes it.`
          : `${name} continues as a learner: it holds the data and answers reads.`,
        source: 'how shards work',
      },
    ],
    checks,
    writePause: null,
    commands: commandsOfBoth(context, changes),
    alternatives: candidates
      .filter(({ id }) => id !== spare?.id)
      .map((node) => ({ node: node.id, message: node.message, blocked: !isUp(node) })),
    changes,
    // Another replacement is another plan.
    basis: other,
  }
}

const isUp = ({ freshness }: NodeView) => freshness !== 'gone' && freshness !== 'never'

/** Learners, those that answer first, then those on other machines and in the zone of the old one, then the least behind. */
function replacementsFor(shard: ShardView, old: NodeView | undefined): NodeView[] {
  const machines = new Set(stay(shard, old).map(machineOf))
  const rank = (node: NodeView) =>
    (isUp(node) ? 0 : 4) + (machines.has(machineOf(node)) ? 2 : 0) + (node.zone === old?.zone ? 0 : 1)
  const lag = ({ lagEntries }: NodeView) => lagEntries ?? Number.MAX_SAFE_INTEGER
  return shard.nodes
    .filter(({ voter }) => voter === false)
    .sort((a, b) => rank(a) - rank(b) || lag(a) - lag(b) || (a.id < b.id ? -1 : 1))
}

/** The voters that are voters before and after. */
function stay(shard: ShardView, old: NodeView | undefined): NodeView[] {
  return shard.nodes.filter(({ voter, id }) => voter === true && id !== old?.id)
}

/** Both changes, in the order whose middle has more voters to spare; promoted first if that is equal. */
export function changesOf(shard: ShardView, old: NodeView, spare: NodeView): MemberChange[] {
  const change = (kind: MemberChange['kind'], node: NodeView, members: readonly NodeView[]): MemberChange => ({
    ...{ kind, node: node.id, voters: members.map(({ id }) => id).sort(), majority: majorityOf(members.length) },
    up: members.filter(isUp).length,
  })
  const rest = stay(shard, old)
  const promotedFirst = change('promote', spare, [...rest, old, spare])
  const demotedFirst = change('demote', old, rest)
  const end = [...rest, spare]
  const isPromotedFirst = promotedFirst.voters.length <= VOTERS_MAX && spareOf(promotedFirst) >= spareOf(demotedFirst)
  return isPromotedFirst ? [promotedFirst, change('demote', old, end)] : [demotedFirst, change('promote', spare, end)]
}

function spareOf({ up, majority }: MemberChange): number {
  return up - majority
}

function stepText(change: MemberChange, number: number): string {
  const { kind, node, voters, majority, up } = change
  const spare = spareOf(change)
  const can = spare < 0 ? 'writes would stop' : spare === 0 ? 'none may fail' : `${spare} may fail`
  return `Step ${number}: ${node} ${kind === 'promote' ? 'becomes a voter' : 'becomes a learner'}. Then ${up} of ${voters.length} voters answer, ${majority} needed: ${can}.`
}

function oldChecks(shard: ShardView, old: NodeView | undefined, name: string): PlanCheck[] {
  return [
    check('target-voter', old?.voter ?? undefined, 'block', {
      ok: `${name} is a voter`,
      bad: `${name} is a learner: there is nothing to replace`,
      unknown: old ? `whether ${name} is a voter is not known` : `${shard.id} has no node ${name}`,
    }),
    check('not-leader', shard.leader !== name, 'block', {
      ok: `${name} is not the leader`,
      bad: `${name} leads ${shard.id}`,
      fix: { label: 'Transfer leadership first', plan: { kind: 'transfer', shard: shard.id } },
    }),
    check('voter-away', old && !isUp(old), 'warn', {
      ok: `${name} does not respond: ${old?.message ?? ''}`,
      bad: `${name} responds: a voter that works would be replaced`,
      unknown: `whether ${name} responds is not known`,
    }),
  ]
}

function spareChecks(shard: ShardView, spare: NodeView | undefined, name: string): PlanCheck[] {
  const lag = spare?.lagEntries ?? null
  const behind = lagText(lag ?? 0, spare?.lagSeconds ?? null)
  return [
    check('learner', spare ? (spare.voter === null ? undefined : !spare.voter) : false, 'block', {
      ok: `${name} is a learner`,
      bad: spare ? `${name} is a voter already` : `${shard.id} has no node ${name}`,
      unknown: `whether ${name} is a learner is not known: no node reports the members`,
    }),
    answersCheck(spare, name),
    sameDataCheck(shard, spare),
    check('lag', lag === null ? undefined : lag <= CATCH_UP.entriesMax, 'warn', {
      ok: `${name} has caught up: lag ${behind}`,
      bad: `${name} lacks ${behind}: the leader waits up to ${CATCH_UP.waitText} until it is ${CATCH_UP.entriesText}`,
      unknown: `how far ${name} is behind is not known`,
    }),
  ]
}

function majorityCheck({ kind, node, voters, majority, up }: MemberChange): PlanCheck {
  const when = `once ${node} is a ${kind === 'promote' ? 'voter' : 'learner'}`
  return {
    ...check('majority-after', up >= majority, 'block', {
      ok: `${when}, ${up} of ${voters.length} voters answer, ${majority} needed`,
      bad: `${when}, only ${up} of ${voters.length} voters would answer, ${majority} needed: writes would stop`,
    }),
    id: `majority-after-${kind}`,
  }
}

function spareCheck(last: MemberChange): PlanCheck {
  const spare = spareOf(last)
  return check('spare', spare >= 1, 'warn', {
    ok: `can lose ${spare} afterwards`,
    bad: 'afterwards no voter can be lost without stopping writes',
  })
}

/** Where the voters are afterwards: the loss of one place should not take a majority. */
function placeChecks(shard: ShardView, old: NodeView, spare: NodeView): PlanCheck[] {
  const others = stay(shard, old)
  const machine = machineOf(spare)
  const beside = others.filter((node) => machineOf(node) === machine)
  const left = others.filter(({ zone }) => zone !== spare.zone)
  const isSpread = others.some(({ zone }) => zone !== spare.zone)
  const majority = majorityOf(others.length + 1)
  const names = beside.map(({ id }) => id).join(', ')
  return [
    check('machine-apart', machine === '' ? undefined : beside.length === 0, 'warn', {
      ok: `${spare.id} is on a machine of its own`,
      bad: `${spare.id} is on the same machine as ${names} (${machine}): they fail together`,
      unknown: `on which machine ${spare.id} runs is not known`,
    }),
    ...(isSpread
      ? [
          check('zone-apart', left.length >= majority, 'info', {
            ok: `without ${zoneText(spare.zone)}, ${left.length} ${left.length === 1 ? 'voter remains' : 'voters remain'}, ${majority} needed`,
            bad: `without ${zoneText(spare.zone)}, ${left.length} ${left.length === 1 ? 'voter' : 'voters'} would remain, ${majority} needed: writes stop if it goes`,
          }),
        ]
      : []),
  ]
}

function after(before: PlanDraft['before'], last: MemberChange, old: string, spare: string): PlanDraft['after'] {
  const roleOf = (node: PlanDraft['before']['nodes'][number]) =>
    node.node === spare ? 'follower' : node.node === old ? 'learner' : node.role
  return {
    ...before,
    nodes: before.nodes.map((node) => ({ ...node, role: roleOf(node) })),
    voters: last.voters.length,
    majority: last.majority,
    spare: spareOf(last),
  }
}

/** As two commands: the second is to run once the first is done. */
function commandsOfBoth(context: PlanContext, changes: readonly MemberChange[]): PlanDraft['commands'] {
  const commands = changes.map(({ kind, node }) =>
    commandsOf(context, [kind, node], kind === 'promote' ? '/cluster/promote-learner' : '/cluster/demote-voter', {
      node_id: node,
    }),
  )
  return {
    cli: commands.map(({ cli }) => cli).join(' && \\\n'),
    curl: commands.map(({ curl }) => curl).join('\n# once a majority lists it:\n'),
  }
}
