/** All columns of the shard list, and the default ones. */

import type { ShardBrief } from '@vacancy/shared/contract'
import { bytes, count, days, duration, rate, shortCount } from '../../lib/format.ts'
import { routes } from '../../lib/routes.ts'
import { Age, Duration } from '../../ui/age.tsx'
import { Link } from '../../ui/link.tsx'
import { StateBadge } from '../../ui/state-badge.tsx'
import type { Column } from '../../ui/table.tsx'
import { common } from './copy.ts'
import * as copy from './list-copy.ts'
import { RackPicture } from './rack.tsx'
import { columnsOf } from './table-columns.ts'

const number = (of: (shard: ShardBrief) => number | null) => (a: ShardBrief, b: ShardBrief) =>
  // Missing values sort below all others.
  (of(a) ?? Number.NEGATIVE_INFINITY) - (of(b) ?? Number.NEGATIVE_INFINITY)
const text = (of: (shard: ShardBrief) => string) => (a: ShardBrief, b: ShardBrief) =>
  of(a).localeCompare(of(b), 'en', { numeric: true })

/** The state without its numbers, which have their own columns: "Healthy, can lose 1". */
function withoutNumbers(state: string): string {
  return state.split(' (')[0] ?? state
}

const WORST_FIRST = ['crit', 'warn', 'unk', 'info', 'ok']

/** The first column names the row; it is always shown, and first. */
export const SHARD_COLUMNS: readonly Column<ShardBrief>[] = [
  {
    id: 'shard',
    header: copy.columns.shard,
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
    header: copy.columns.state,
    compare: (a, b) => WORST_FIRST.indexOf(a.level) - WORST_FIRST.indexOf(b.level),
    cell: (shard) => (
      <span data-tip={shard.message}>
        <StateBadge state={shard.state} level={shard.level} label={withoutNumbers(shard.message)} />
      </span>
    ),
  },
  {
    id: 'zone',
    header: copy.columns.zone,
    rank: 3,
    compare: text((shard) => shard.zone),
    cell: (shard) => shard.zone,
  },
  {
    id: 'leader',
    header: copy.columns.leader,
    rank: 2,
    compare: text((shard) => shard.leader ?? ''),
    cell: (shard) => <span className="font-mono">{shard.leader ?? '–'}</span>,
  },
  {
    id: 'members',
    header: copy.columns.members,
    cell: (shard) => <RackPicture shard={shard.id} slots={shard.slots} />,
  },
  {
    id: 'spare',
    header: copy.columns.spare,
    end: true,
    rank: 3,
    tip: copy.columns.spareTip,
    compare: number((shard) => shard.spare),
    cell: (shard) => shortCount(shard.spare),
  },
  {
    id: 'lag',
    header: copy.columns.lag,
    end: true,
    rank: 2,
    tip: copy.columns.lagTip,
    compare: number((shard) => shard.maxLagEntries),
    cell: (shard) => shortCount(shard.maxLagEntries),
  },
  {
    id: 'queries',
    header: copy.columns.queries,
    end: true,
    rank: 3,
    compare: number((shard) => shard.rates.queries),
    cell: (shard) => rate(shard.rates.queries),
  },
  {
    id: 'writes',
    header: copy.columns.writes,
    end: true,
    rank: 4,
    compare: number((shard) => shard.rates.writes),
    cell: (shard) => rate(shard.rates.writes),
  },
  {
    id: 'p99',
    header: copy.columns.p99,
    end: true,
    rank: 4,
    tip: copy.columns.p99Tip,
    compare: number((shard) => shard.rates.p99),
    cell: (shard) => duration(shard.rates.p99),
  },
  {
    id: 'packages',
    header: copy.columns.packages,
    end: true,
    rank: 4,
    compare: number((shard) => shard.packages),
    cell: (shard) => shortCount(shard.packages),
  },
  {
    id: 'memory',
    header: copy.columns.memory,
    end: true,
    rank: 4,
    compare: number((shard) => shard.memoryBytes),
    cell: (shard) => bytes(shard.memoryBytes),
  },
  { id: 'window', header: copy.columns.window, rank: 4, cell: (shard) => days(shard.window) },
  {
    id: 'snapshot',
    header: copy.columns.snapshot,
    rank: 4,
    compare: text((shard) => shard.snapshotAt ?? ''),
    cell: (shard) => <Age at={shard.snapshotAt} none={shard.snapshotAt === null ? common.none : common.timeUnknown} />,
  },
  {
    id: 'since',
    header: copy.columns.since,
    end: true,
    compare: number((shard) => -Date.parse(shard.since)),
    cell: (shard) => <Duration from={shard.since} />,
  },
  {
    id: 'led-since',
    header: copy.columns.leaderFor,
    end: true,
    compare: number((shard) => (shard.leaderSince === null ? null : -Date.parse(shard.leaderSince))),
    cell: (shard) => <Duration from={shard.leaderSince} />,
  },
  {
    id: 'term',
    header: copy.columns.term,
    end: true,
    compare: number((shard) => shard.term),
    cell: (shard) => count(shard.term),
  },
  {
    id: 'voters',
    header: copy.columns.voters,
    end: true,
    tip: copy.columns.votersTip,
    compare: number((shard) => shard.votersUp),
    cell: (shard) => (shard.mode === 'standalone' ? '–' : copy.columns.votersOf(shard.votersUp, shard.voters)),
  },
  {
    id: 'properties',
    header: copy.columns.properties,
    end: true,
    compare: number((shard) => shard.properties),
    cell: (shard) => shortCount(shard.properties),
  },
  {
    id: 'errors',
    header: copy.columns.errors,
    end: true,
    tip: copy.columns.errorsTip,
    compare: number((shard) => shard.rates.errors),
    cell: (shard) => rate(shard.rates.errors),
  },
  {
    id: 'answered',
    header: copy.columns.answered,
    compare: text((shard) => shard.answeredAt ?? ''),
    cell: (shard) => <Age at={shard.answeredAt} />,
  },
]

const MORE: readonly string[] = ['since', 'led-since', 'term', 'voters', 'properties', 'errors', 'answered']

export const SHARD_TABLE = columnsOf(SHARD_COLUMNS, MORE)
