/** Which leaders a handover moves where, and which stay. Pure. */
import { createHash } from 'node:crypto'
import type { Environment, Handover, HandoverPlan, HandoverScope, NodeView } from '@vacancy/shared/contract'
import { zoneText } from '@vacancy/shared/numbers'
import { isWithin, stopsOf } from './impact.ts'
import type { PlanContext } from './operation-types.ts'
import { planTransfer } from './plans.ts'

type Item = HandoverPlan['items'][number]

/** Moves every leader within the scope to the best voter outside. */
export function planPrepare(
  scope: HandoverScope,
  contexts: readonly PlanContext[],
  environment: Environment,
): HandoverPlan {
  const items = contexts.flatMap((context): Planned[] => {
    const { shard } = context
    const leader = shard.nodes.find(({ id }) => id === shard.leader)
    return leader && isWithin(scope, leader) ? [awayFrom(scope, leader, context)] : []
  })
  const title = `Hand over the leaders of ${placeText(scope)}`
  const plan = completed('prepare', scope, null, title, items, environment)
  return {
    ...plan,
    stops: stopsOf(
      scope,
      contexts.map(({ shard }) => shard),
    ),
  }
}

/** Moves leaders back to where they were before an earlier handover. */
export function planBack(
  earlier: Handover,
  contextOf: (shard: string) => PlanContext | undefined,
  environment: Environment,
): HandoverPlan {
  const items = earlier.items.flatMap(({ shard, from, state }): Planned[] => {
    const context = state === 'done' ? contextOf(shard) : undefined
    if (!context || context.shard.leader === from) return []
    return [transferOf(context, from)]
  })
  const title = `Bring leaders back to ${placeText(earlier.scope)}`
  return completed('bring-back', earlier.scope, earlier.id, title, items, environment)
}

/** Kind and name, for the audit log. */
export function textOf({ kind, name }: HandoverScope): string {
  return `${kind} ${name}`
}

/** The same within a sentence: "zone eu-1", and "zone-1" for a name that says so itself. */
export function placeText(scope: HandoverScope): string {
  return scope.kind === 'zone' ? zoneText(scope.name) : textOf(scope)
}

type Planned = Item & { readonly worstPauseMs: number | null }

function awayFrom(scope: HandoverScope, leader: NodeView, context: PlanContext): Planned {
  const { shard } = context
  const candidates = shard.nodes.filter((node) => node.voter === true && !isWithin(scope, node))
  const plans = candidates
    .map((node) => transferOf(context, node.id))
    .sort((a, b) => Number(a.blocked !== '') - Number(b.blocked !== '') || a.warnings.length - b.warnings.length)
  const [best] = plans
  if (best) return best
  const blocked =
    shard.mode === 'standalone' ? 'a standalone node has no replicas' : `no voter is outside ${placeText(scope)}`
  return { shard: shard.id, from: leader.id, to: null, blocked, warnings: [], worstPauseMs: null }
}

function transferOf(context: PlanContext, to: string): Planned {
  const { shard } = context
  const { checks, writePause } = planTransfer({ kind: 'transfer', shard: shard.id, node: to }, context)
  return {
    shard: shard.id,
    from: shard.leader ?? '',
    to,
    blocked: checks.find(({ level }) => level === 'block')?.text ?? '',
    warnings: checks.flatMap(({ level, text }) => (level === 'warn' ? [text] : [])),
    worstPauseMs: writePause?.worst ?? null,
  }
}

function completed(
  kind: HandoverPlan['kind'],
  scope: HandoverScope,
  back: string | null,
  title: string,
  planned: readonly Planned[],
  environment: Environment,
): HandoverPlan {
  const items = planned
    .map(({ worstPauseMs: _, ...item }) => item)
    .sort((a, b) => (a.shard < b.shard ? -1 : a.shard > b.shard ? 1 : 0))
  const pauses = planned.flatMap(({ worstPauseMs, blocked }) =>
    worstPauseMs === null || blocked !== '' ? [] : [worstPauseMs],
  )
  // Not the targets: among many shards one changes each second, and each is checked again when its turn comes.
  const facts = items.map(({ shard, from }) => [shard, from])
  return {
    ...{ kind, scope, back, title, items, stops: [] },
    moves: items.filter(({ blocked }) => blocked === '').length,
    worstPauseMs: pauses.length === 0 ? null : Math.max(...pauses),
    reasonRequired: environment.kind !== 'development',
    environment,
    basis: createHash('sha256')
      .update(JSON.stringify([kind, scope, back, facts]))
      .digest('hex')
      .slice(0, 16),
  }
}
