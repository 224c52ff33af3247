/** Entries of the palette, from the data loaded so far. */
import type { Me, SavedView, Summary } from '@vacancy/shared/contract'
import type { IconName } from '../../icons/icon.tsx'
import { utc } from '../../lib/format.ts'
import { LINKED_PAGES } from '../../lib/pages.ts'
import { whyNoChange } from '../../lib/quorum.ts'
import { routes } from '../../lib/routes.ts'
import { parseRange } from '../../lib/time-range.ts'
import { ROLE_ICONS } from '../../ui/role-mark.tsx'
import * as copy from './copy.ts'

export type Entry = {
  /** Stable, so that recent entries are found again. */
  readonly id: string
  readonly group: string
  readonly label: string
  readonly hint?: string
  readonly icon: IconName
  readonly also?: string
  readonly href?: string
  readonly act?: () => void
}

export type Saved = {
  readonly queries: readonly { readonly id: string; readonly name: string }[]
  readonly imports: readonly { readonly id: string; readonly name: string }[]
}

export function pageEntries(): Entry[] {
  return LINKED_PAGES.map((page) => ({
    id: `page ${page.href}`,
    group: copy.groups.pages,
    label: page.label,
    icon: page.icon,
    href: page.href,
    ...(page.words ? { also: page.words } : {}),
    ...(page.key ? { hint: `g ${page.key}` } : {}),
  }))
}

/** Shards and nodes with their plans. An entry opens a plan and never runs it. */
export function clusterEntries(summary: Summary | undefined, me: Me): Entry[] {
  const shards = summary?.shards ?? []
  const zones = me.person.role === 'admin' ? [...new Set(shards.map(({ zone }) => zone))].sort() : []
  return [...zones.map(zoneEntry), ...shards.flatMap((shard) => entriesOf(shard, me))]
}

function zoneEntry(zone: string): Entry {
  return {
    id: `prepare ${zone}`,
    group: copy.groups.actions,
    label: copy.actions.prepare(zone),
    hint: copy.actions.opensPlan,
    icon: 'operations',
    also: `prepare restart evacuate drain zone ${zone}`,
    href: routes.newHandover({ zone }),
  }
}

function entriesOf(shard: Shard, me: Me): Entry[] {
  return [
    {
      id: `shard ${shard.id}`,
      group: copy.groups.shards,
      label: shard.id,
      hint: shard.message,
      icon: 'shards' as const,
      also: `shard ${shard.id} ${shard.zone} ${shard.state} ${shard.message}`,
      href: routes.shard(shard.id),
    },
    ...shard.slots.map((slot) => ({
      id: `node ${shard.id} ${slot.node}`,
      group: copy.groups.shards,
      label: `${shard.id} / ${slot.node}`,
      hint: `${slot.role}, ${slot.message}`,
      icon: ROLE_ICONS[slot.role],
      also: `node ${slot.node} ${shard.id} ${slot.role} ${slot.state} ${slot.message}`,
      href: routes.node(shard.id, slot.node),
    })),
    ...(me.person.role === 'admin' ? shard.slots.flatMap((slot) => planEntries(shard, slot)) : []),
  ]
}

type Shard = Summary['shards'][number]

/** The reason for which a plan would be refused is shown before it is opened. */
function planEntries(brief: Shard, { node, role, freshness }: Shard['slots'][number]): Entry[] {
  const shard = brief.id
  const hint = whyNoChange(brief) ?? copy.actions.opensPlan
  const plan = (kind: string, label: string, also: string, icon: IconName): Entry => ({
    id: `plan ${kind} ${shard} ${node}`,
    group: copy.groups.actions,
    label,
    hint,
    icon,
    also,
    href: routes.plan(kind, shard, node),
  })
  if (role === 'follower') {
    return [
      plan('transfer', copy.actions.transfer(shard, node), `transfer ${shard} ${node}`, 'key'),
      plan('demote', copy.actions.demote(node, shard), `demote ${shard} ${node}`, 'ring'),
      ...(freshness === 'gone' || freshness === 'never'
        ? [plan('replace-voter', copy.actions.replace(node, shard), `replace ${shard} ${node}`, 'ring')]
        : []),
    ]
  }
  return role === 'learner'
    ? [plan('promote', copy.actions.promote(node, shard), `promote ${shard} ${node}`, 'dot')]
    : []
}

export function savedEntries({ queries, imports }: Saved): Entry[] {
  return [
    ...queries.map(({ id, name }) => ({
      id: `query ${id}`,
      group: copy.groups.queries,
      label: name,
      icon: 'playground' as const,
      also: `run saved ${name}`,
      href: routes.savedQuery(id),
    })),
    ...imports.map(({ id, name }) => ({
      id: `import ${id}`,
      group: copy.groups.imports,
      label: name,
      icon: 'imports' as const,
      also: `import ${name} ${id}`,
      href: routes.import(id),
    })),
  ]
}

const ROUTE = /^(?:route(?: of)?|where(?: is| does)?|segment) +(\S.*)$/i

/** `route paris`: each component on the way of this segment. */
export function routeEntries(typed: string): Entry[] {
  const segment = ROUTE.exec(typed.trim())?.[1]
  if (segment === undefined) return []
  return [
    {
      id: `route ${segment}`,
      group: copy.groups.segments,
      label: copy.actions.routeOf(segment),
      hint: copy.actions.routeHint,
      icon: 'topology',
      // The typed text itself, so that it is the best match.
      also: typed.trim(),
      href: routes.topology({ segment }),
    },
  ]
}

/** `18:20`, `2026-11-20 18:20`: the cluster and its charts at this moment. */
export function momentEntries(typed: string, now: number): Entry[] {
  const text = typed.trim()
  const range = parseRange(text, now)
  if (range?.pin === undefined) return []
  const { from, to, pin } = range
  const at = { group: copy.groups.past, icon: 'clock' as const, hint: utc(pin), also: text }
  return [
    { ...at, id: `past ${pin}`, label: copy.actions.clusterAt(text), href: routes.overview({ at: pin }) },
    {
      ...at,
      id: `charts ${pin}`,
      label: copy.actions.chartsAt(text),
      href: routes.dashboard('engine', { from, to, pin }),
    },
  ]
}

const STAY = /^(?:find +)?stays?(?: +(\S.*))?$/i

/** `find stay order-48121`, and `find stay order-48121 s3` where there are many shards: the stay in each of them. */
export function stayEntries(typed: string, summary: Summary | undefined): Entry[] {
  const match = STAY.exec(typed.trim())
  if (!match) return []
  const words = (match[1] ?? '').split(/ +(?=\S+$)/)
  const all = (summary?.shards ?? []).map(({ id }) => id)
  const last = words.at(-1) ?? ''
  const named = last === '' ? [] : all.filter((id) => id.startsWith(last))
  const stay = named.length > 0 ? words.slice(0, -1).join(' ') : words.join(' ')
  return (named.length > 0 ? named : all).map((shard) => ({
    id: `stay ${shard} ${stay}`,
    group: copy.groups.stays,
    label: stay === '' ? copy.actions.stays(shard) : copy.actions.findStay(stay),
    hint: shard,
    icon: 'search',
    // The typed text itself, so that it is the best match.
    also: typed.trim(),
    href: routes.stays(shard, stay === '' ? {} : { stay }),
  }))
}

/** Topics of the job queue. */
export function topicEntries(topics: readonly { readonly topic: string; readonly dead: number }[]): Entry[] {
  return topics.map(({ topic, dead }) => ({
    id: `topic ${topic}`,
    group: copy.groups.topics,
    label: topic,
    ...(dead > 0 && { hint: copy.queue.dead(dead) }),
    icon: 'queue' as const,
    also: `topic ${topic} queue`,
    href: routes.topic(topic),
  }))
}

/** Jobs whose id was typed. */
export function jobEntries(jobs: readonly { readonly id: string; readonly topic: string; readonly state: string }[]) {
  return jobs.map(
    ({ id, topic, state }): Entry => ({
      id: `job ${topic} ${id}`,
      group: copy.groups.jobs,
      label: id,
      hint: copy.queue.job(topic, state),
      icon: 'queue',
      also: `job ${id} ${topic}`,
      href: routes.queueJob(topic, id),
    }),
  )
}

/** Saved views of the list of shards or topics. */
export function viewEntries(
  views: readonly SavedView[],
  of: 'shards' | 'topics',
  hrefOf: (view: SavedView) => string,
): Entry[] {
  return views.map((view) => ({
    id: `view ${of} ${view.name}`,
    group: copy.groups.views,
    label: view.name,
    hint: view.filter,
    icon: 'star',
    also: `view ${view.name} ${of}`,
    href: hrefOf(view),
  }))
}

const GROUP_SHOWN_MAX = 7
const RECENT_SHOWN_MAX = 5

/** The best entries of each group, best group first; without input the recent ones come first. */
export function found(typed: string, entries: readonly Entry[], recent: readonly string[]) {
  const groups = new Map<string, { best: number; entries: { entry: Entry; rank: number }[] }>()
  for (const entry of entries) {
    const rank = bestRank(typed, [entry.label, entry.also])
    if (rank === undefined) continue
    const group = groups.get(entry.group) ?? { best: Number.NEGATIVE_INFINITY, entries: [] }
    group.best = Math.max(group.best, rank)
    group.entries.push({ entry, rank })
    groups.set(entry.group, group)
  }
  const listed = [...groups]
    .toSorted(([, a], [, b]) => b.best - a.best)
    .map(([name, group]) => ({
      name,
      entries: group.entries
        .toSorted((a, b) => b.rank - a.rank)
        .slice(0, GROUP_SHOWN_MAX)
        .map(({ entry }) => entry),
    }))
  if (typed.trim() !== '') return listed
  const byId = new Map(entries.map((entry) => [entry.id, entry]))
  const latest = recent.flatMap((id) => byId.get(id) ?? []).slice(0, RECENT_SHOWN_MAX)
  return latest.length > 0 ? [{ name: copy.groups.recent, entries: latest }, ...listed] : listed
}

/** Higher is better; undefined when a letter is missing. */
export function rankOf(typed: string, name: string): number | undefined {
  const wanted = typed.toLowerCase().replaceAll(/\s+/g, ' ').trim()
  const text = name.toLowerCase()
  if (wanted === '') return 0
  if (text.startsWith(wanted)) return 1_000 - text.length
  const word = text.indexOf(` ${wanted}`)
  if (word >= 0) return 800 - word
  const whole = text.indexOf(wanted)
  if (whole >= 0) return 600 - whole
  let from = 0
  let gaps = 0
  for (const letter of wanted) {
    const at = text.indexOf(letter, from)
    if (at < 0) {
      // A space between words that match separately is skipped.
      if (letter === ' ') continue
      return undefined
    }
    if (from > 0) gaps += at - from
    from = at + 1
  }
  return 400 - gaps - text.length / 100
}

/** The best rank over several names of an entry. */
export function bestRank(typed: string, names: readonly (string | undefined)[]): number | undefined {
  let best: number | undefined
  for (const name of names) {
    const rank = name === undefined ? undefined : rankOf(typed, name)
    if (rank !== undefined && (best === undefined || rank > best)) best = rank
  }
  return best
}
