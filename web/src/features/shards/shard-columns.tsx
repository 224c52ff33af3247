/** The columns of the table of shards: all that there are, and those that are shown while nobody chose others. */

import type { ShardBrief } from '@vacancy/shared/contract'
import { bytes, count, days, duration, rate, shortCount } from '../../lib/format.ts'
import { routes } from '../../lib/routes.ts'
import { Age, Duration } from '../../ui/age.tsx'
import type { Widths } from '../../ui/column-edge.tsx'
import { Link } from '../../ui/link.tsx'
import { StateBadge } from '../../ui/state-badge.tsx'
import type { Column } from '../../ui/table.tsx'
import { RackPicture } from './rack.tsx'

const number = (of: (shard: ShardBrief) => number | null) => (a: ShardBrief, b: ShardBrief) =>
  // What was not told is smaller than anything told.
  (of(a) ?? Number.NEGATIVE_INFINITY) - (of(b) ?? Number.NEGATIVE_INFINITY)
const text = (of: (shard: ShardBrief) => string) => (a: ShardBrief, b: ShardBrief) =>
  of(a).localeCompare(of(b), 'en', { numeric: true })

/** The state without its numbers, which have columns of their own: "Healthy, can lose 1". */
function briefly(says: string): string {
  return says.split(' (')[0] ?? says
}

const WORST_FIRST = ['crit', 'warn', 'unk', 'info', 'ok']

/** The first names the row: it always stands, and always first. */
export const SHARD_COLUMNS: readonly Column<ShardBrief>[] = [
  {
    id: 'shard',
    header: 'Shard',
    rowHeader: true,
    compare: text((shard) => shard.id),
    cell: (shard) => (
      <Link href={routes.shard(shard.id)} className="font-mono">
        {shard.id}
      </Link>
    ),
  },
  {
    id: 'state',
    header: 'State',
    compare: (a, b) => WORST_FIRST.indexOf(a.level) - WORST_FIRST.indexOf(b.level),
    cell: (shard) => (
      <span data-tip={shard.says}>
        <StateBadge state={shard.state} level={shard.level} label={briefly(shard.says)} />
      </span>
    ),
  },
  { id: 'zone', header: 'Zone', rank: 3, compare: text((shard) => shard.zone), cell: (shard) => shard.zone },
  {
    id: 'leader',
    header: 'Leader',
    rank: 2,
    compare: text((shard) => shard.leader ?? ''),
    cell: (shard) => <span className="font-mono">{shard.leader ?? '–'}</span>,
  },
  { id: 'members', header: 'Members', cell: (shard) => <RackPicture shard={shard.id} slots={shard.slots} /> },
  {
    id: 'spare',
    header: 'Spare',
    end: true,
    rank: 3,
    tip: 'How many more voters may fail',
    compare: number((shard) => shard.spare),
    cell: (shard) => shortCount(shard.spare),
  },
  {
    id: 'lag',
    header: 'Max lag',
    end: true,
    rank: 2,
    tip: 'Entries that the slowest node lacks',
    compare: number((shard) => shard.maxLagEntries),
    cell: (shard) => shortCount(shard.maxLagEntries),
  },
  {
    id: 'queries',
    header: 'Queries',
    end: true,
    rank: 3,
    compare: number((shard) => shard.rates.queries),
    cell: (shard) => rate(shard.rates.queries),
  },
  {
    id: 'writes',
    header: 'Writes',
    end: true,
    rank: 4,
    compare: number((shard) => shard.rates.writes),
    cell: (shard) => rate(shard.rates.writes),
  },
  {
    id: 'p99',
    header: 'p99',
    end: true,
    rank: 4,
    tip: 'Milliseconds below which 99 of 100 reads stay, on the slowest node',
    compare: number((shard) => shard.rates.p99),
    cell: (shard) => duration(shard.rates.p99),
  },
  {
    id: 'packages',
    header: 'Packages',
    end: true,
    rank: 4,
    compare: number((shard) => shard.packages),
    cell: (shard) => shortCount(shard.packages),
  },
  {
    id: 'memory',
    header: 'Memory',
    end: true,
    rank: 4,
    compare: number((shard) => shard.memoryBytes),
    cell: (shard) => bytes(shard.memoryBytes),
  },
  { id: 'window', header: 'Window', rank: 4, cell: (shard) => days(shard.window) },
  {
    id: 'snapshot',
    header: 'Snapshot',
    rank: 4,
    compare: text((shard) => shard.snapshotAt ?? ''),
    cell: (shard) => <Age at={shard.snapshotAt} none={shard.snapshotAt === null ? 'none' : 'time not told'} />,
  },
  {
    id: 'since',
    header: 'In this state',
    end: true,
    compare: number((shard) => -Date.parse(shard.since)),
    cell: (shard) => <Duration from={shard.since} />,
  },
  {
    id: 'led-since',
    header: 'Led for',
    end: true,
    compare: number((shard) => (shard.leaderSince === null ? null : -Date.parse(shard.leaderSince))),
    cell: (shard) => <Duration from={shard.leaderSince} />,
  },
  {
    id: 'term',
    header: 'Term',
    end: true,
    compare: number((shard) => shard.term),
    cell: (shard) => count(shard.term),
  },
  {
    id: 'voters',
    header: 'Voters',
    end: true,
    tip: 'Voters that answer, of all',
    compare: number((shard) => shard.votersUp),
    cell: (shard) => (shard.mode === 'standalone' ? '–' : `${shard.votersUp} of ${shard.voters}`),
  },
  {
    id: 'properties',
    header: 'Properties',
    end: true,
    compare: number((shard) => shard.properties),
    cell: (shard) => shortCount(shard.properties),
  },
  {
    id: 'errors',
    header: 'Errors',
    end: true,
    tip: 'Requests a second that were answered with an error',
    compare: number((shard) => shard.rates.errors),
    cell: (shard) => rate(shard.rates.errors),
  },
  {
    id: 'answered',
    header: 'Answered',
    compare: text((shard) => shard.answeredAt ?? ''),
    cell: (shard) => <Age at={shard.answeredAt} />,
  },
]

const NAME = SHARD_COLUMNS[0]?.id as string
const MORE: readonly string[] = ['since', 'led-since', 'term', 'voters', 'properties', 'errors', 'answered']
const IDS = SHARD_COLUMNS.map(({ id }) => id)

export const USUAL_COLUMNS: readonly string[] = IDS.filter((id) => !MORE.includes(id))

/** Ids that there are, once each, the one that names the row first; null is the usual ones. */
export function columnIds(chosen: readonly string[] | null): readonly string[] {
  if (chosen === null) return USUAL_COLUMNS
  const known = new Set(chosen.filter((id) => id !== NAME && IDS.includes(id)))
  return known.size === 0 ? USUAL_COLUMNS : [NAME, ...known]
}

/** Columns of an address that there are not. */
export function unknownColumns(text: string): readonly string[] {
  return [...new Set(text.split(','))].filter((id) => id !== '' && !IDS.includes(id))
}

/** As they stand in an address: `shard,state,lag`; null for none, or for nothing that is known. */
export function parseColumns(text: string): readonly string[] | null {
  const known = text.split(',').filter((id) => IDS.includes(id))
  return known.length === 0 ? null : columnIds(known)
}

/** Badges are cut inside of their tint. */
const CUT = 'overflow-hidden text-ellipsis [&_[data-level]_span]:truncate'

/**
 * What is drawn. Columns that somebody chose stay on narrow screens, too: the table scrolls sideways. Where somebody set
 * widths, what does not fit is cut.
 */
export function shownColumns(chosen: readonly string[] | null, widths: Widths): readonly Column<ShardBrief>[] {
  const isCut = Object.keys(widths).length > 0
  return columnIds(chosen).flatMap((id) => {
    const column = SHARD_COLUMNS.find((one) => one.id === id)
    if (!column) return []
    const { rank, ...rest } = column
    const isRanked = chosen === null && !isCut && rank !== undefined
    return [{ ...rest, ...(isRanked && { rank }), ...(isCut && { className: CUT }) }]
  })
}

/** A column earlier or later among those that are shown; the one that names the row stays first. */
export function movedColumn(ids: readonly string[], id: string, step: 1 | -1): readonly string[] {
  const [from, to] = [ids.indexOf(id), ids.indexOf(id) + step]
  const other = ids[to]
  if (from < 1 || to < 1 || other === undefined) return ids
  return ids.map((one, at) => (at === from ? other : at === to ? id : one))
}
