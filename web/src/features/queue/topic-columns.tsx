/** Columns of the table of topics. */
import type { TopicStats } from '@vacancy/shared/contract'
import { Icon } from '../../icons/icon.tsx'
import { bytes, count, duration, NONE, rate } from '../../lib/format.ts'
import { routes } from '../../lib/routes.ts'
import { Badge } from '../../ui/badge.tsx'
import { Link } from '../../ui/link.tsx'
import { Sparkline } from '../../ui/sparkline.tsx'
import type { Column } from '../../ui/table.tsx'
import { columnsOf } from '../shards/table-columns.ts'
import * as copy from './copy.ts'
import { useTrends } from './queries.ts'
import { stateOf } from './topic-view.ts'

const number = (of: (topic: TopicStats) => number) => (a: TopicStats, b: TopicStats) => of(a) - of(b)
const WORST_FIRST = ['warn', 'ok', 'unk']

export function TopicBadge({ topic }: { readonly topic: TopicStats }) {
  const { state, level, label } = stateOf(topic)
  return (
    <Badge
      level={level}
      {...(state === 'paused' && { icon: 'pause' as const })}
      {...(state === 'idle' && { icon: 'minus' as const })}
    >
      {label}
    </Badge>
  )
}

/** Dead jobs stand out by an icon as well as by colour. */
export function DeadCount({ dead }: { readonly dead: number }) {
  if (dead === 0) return <span className="text-text-3">0</span>
  return (
    <span className="inline-flex items-center gap-1 font-medium text-crit">
      <Icon name="octagon" size={14} />
      {count(dead)}
    </span>
  )
}

/** The age of the oldest ready job; a dash without ready jobs. */
export const oldestText = ({ ready, oldestReadyMs }: TopicStats): string =>
  ready === 0 ? NONE : duration(oldestReadyMs)

/** Ready jobs of the last minutes; nothing before the first two samples. */
function ReadyTrend({ topic }: { readonly topic: string }) {
  const values = useTrends().data?.[topic]?.ready ?? []
  const known = values.filter((value) => value !== null)
  if (known.length < 2) return <span className="text-text-3">{NONE}</span>
  const label = copy.columns.trendOf(topic, Math.min(...known), Math.max(...known), known.at(-1) ?? 0)
  return <Sparkline label={label} values={values} />
}

/** Time to delivery in the last minutes; nothing before two steps with deliveries. */
function DeliveryTrend({ topic }: { readonly topic: string }) {
  const values = useTrends().data?.[topic]?.deliveryP99 ?? []
  const known = values.filter((value) => value !== null).map((seconds) => seconds * 1_000)
  if (known.length < 2) return <span className="text-text-3">{NONE}</span>
  const texts = [Math.min(...known), Math.max(...known), known.at(-1)].map(duration)
  const [low = '', high = '', last = ''] = texts
  return (
    <span className="inline-flex items-center gap-2">
      <Sparkline label={copy.columns.deliveryOf(topic, low, high, last)} values={values} />
      {last}
    </span>
  )
}

/** The first column names the row; it is always shown, and first. */
const TOPIC_COLUMNS: readonly Column<TopicStats>[] = [
  {
    id: 'topic',
    header: copy.columns.topic,
    rowHeader: true,
    compare: (a, b) => a.topic.localeCompare(b.topic, 'en', { numeric: true }),
    cell: ({ topic }) => (
      <Link href={routes.topic(topic)} className="font-mono">
        {topic}
      </Link>
    ),
  },
  {
    id: 'state',
    header: copy.columns.state,
    compare: number((topic) => WORST_FIRST.indexOf(stateOf(topic).level)),
    cell: (topic) => <TopicBadge topic={topic} />,
  },
  {
    id: 'ready',
    header: copy.columns.ready,
    end: true,
    tip: copy.columns.readyTip,
    compare: number(({ ready }) => ready),
    cell: ({ ready }) => count(ready),
  },
  {
    id: 'leased',
    header: copy.columns.leased,
    end: true,
    rank: 3,
    tip: copy.columns.leasedTip,
    compare: number(({ leased }) => leased),
    cell: ({ leased }) => count(leased),
  },
  {
    id: 'delayed',
    header: copy.columns.delayed,
    end: true,
    rank: 3,
    tip: copy.columns.delayedTip,
    compare: number(({ delayed }) => delayed),
    cell: ({ delayed }) => count(delayed),
  },
  {
    id: 'dead',
    header: copy.columns.dead,
    end: true,
    tip: copy.columns.deadTip,
    compare: number(({ dead }) => dead),
    cell: ({ topic, dead }) =>
      dead === 0 ? (
        <DeadCount dead={0} />
      ) : (
        <Link href={routes.topic(topic, { state: 'dead' })} className="text-crit">
          <DeadCount dead={dead} />
          <span className="sr-only">{copy.columns.deadOf(topic)}</span>
        </Link>
      ),
  },
  {
    id: 'in',
    header: copy.columns.in,
    end: true,
    rank: 3,
    tip: copy.columns.inTip,
    compare: number(({ rates1m }) => rates1m.accepted),
    cell: ({ rates1m }) => rate(rates1m.accepted),
  },
  {
    id: 'out',
    header: copy.columns.out,
    end: true,
    rank: 2,
    tip: copy.columns.outTip,
    compare: number(({ rates1m }) => rates1m.acked),
    cell: ({ rates1m }) => rate(rates1m.acked),
  },
  {
    id: 'failed',
    header: copy.columns.failed,
    end: true,
    rank: 3,
    tip: copy.columns.failedTip,
    compare: number(({ rates1m }) => rates1m.failed),
    cell: ({ rates1m }) => rate(rates1m.failed),
  },
  {
    id: 'trend',
    header: copy.columns.trend,
    rank: 4,
    tip: copy.columns.trendTip,
    cell: ({ topic }) => <ReadyTrend topic={topic} />,
  },
  {
    id: 'delivery',
    header: copy.columns.delivery,
    rank: 4,
    tip: copy.columns.deliveryTip,
    cell: ({ topic }) => <DeliveryTrend topic={topic} />,
  },
  {
    id: 'oldest',
    header: copy.columns.oldest,
    end: true,
    rank: 2,
    tip: copy.columns.oldestTip,
    compare: number(({ oldestReadyMs }) => oldestReadyMs),
    cell: oldestText,
  },
  {
    id: 'consumers',
    header: copy.columns.consumers,
    end: true,
    rank: 2,
    compare: number(({ consumers }) => consumers),
    cell: ({ consumers }) => count(consumers),
  },
  {
    id: 'bytes',
    header: copy.columns.bytes,
    end: true,
    rank: 4,
    tip: copy.columns.bytesTip,
    compare: number((topic) => topic.bytes),
    cell: (topic) => bytes(topic.bytes),
  },
]

export const TOPIC_TABLE = columnsOf(TOPIC_COLUMNS, ['bytes'])
