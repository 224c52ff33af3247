'use client'
/** Every component, node and shard as a row, worst first. */
import { useDeferredValue, useMemo } from 'react'
import { parseFilter, passes } from '../../lib/filter.ts'
import { duration, NONE, rate } from '../../lib/format.ts'
import { useUrlTyped } from '../../lib/url.ts'
import { Badge } from '../../ui/badge.tsx'
import { FilterBox } from '../../ui/filter-box.tsx'
import { NARROW, useMedia } from '../../ui/media.ts'
import { EmptyState } from '../../ui/panel.tsx'
import { RoleMark } from '../../ui/role-mark.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { VirtualTable } from '../../ui/virtual-table.tsx'
import * as copy from './copy.ts'
import { type Model, rowsOf, type Thing } from './model.ts'

type TableProps = { readonly model: Model; readonly focus: string; readonly onFocus: (key: string) => void }

export function TopologyTable({ model, focus, onFocus }: TableProps) {
  const isNarrow = useMedia(NARROW)
  const [typed, setTyped] = useUrlTyped('filter')
  const text = useDeferredValue(typed)
  const all = useMemo(() => rowsOf(model), [model])
  const shown = useMemo(() => {
    const filter = parseFilter(text)
    return all.filter((thing) => passes(filter, fieldsOf(thing)))
  }, [all, text])
  const props = {
    label: copy.table.label,
    rows: shown,
    columns: COLUMNS,
    rowKey: ({ key }: Thing) => key,
    onOpen: ({ key }: Thing) => onFocus(key),
    focus,
    orderKey: text,
    rowProps: ({ key, kind, level, component }: Thing) => ({
      'data-thing': key,
      'data-kind': kind,
      'data-level': level,
      'data-state': component?.state,
    }),
  }
  return (
    <div className="flex min-w-0 flex-col gap-2 pb-2">
      <div className="px-4 pt-3">
        <FilterBox
          label={copy.table.filter}
          value={typed}
          onChange={setTyped}
          shown={shown.length}
          total={all.length}
          keys={{
            kind: ['proxy', 'edge', 'zone-router', 'bridge', 'registry', 'resolver', 'shard', 'node'],
            zone: model.zones.filter((zone) => zone !== ''),
            shard: [...new Set(all.flatMap(({ shard }) => (shard === '' ? [] : [shard])))],
            level: ['crit', 'warn', 'info', 'unk', 'ok'],
          }}
        />
      </div>
      {shown.length === 0 ? (
        <div className="px-4">
          <EmptyState text={copy.table.filtered(text)} />
        </div>
      ) : isNarrow ? (
        <Table {...props} card={(thing) => <Card thing={thing} onFocus={onFocus} />} />
      ) : (
        <VirtualTable {...props} className="relative" />
      )}
    </div>
  )
}

function fieldsOf({ kind, id, zone, shard, level, message, role }: Thing) {
  return { kind, id, zone, shard, level, message, role: role ?? '' }
}

function Card({ thing, onFocus }: { readonly thing: Thing; readonly onFocus: (key: string) => void }) {
  return (
    <div className="flex flex-col items-start gap-1">
      <span className="text-small text-text-2">{copy.kinds[thing.kind]}</span>
      <button
        type="button"
        onClick={() => onFocus(thing.key)}
        className="min-h-11 break-all text-start font-mono text-accent underline underline-offset-2"
      >
        {thing.id}
      </button>
      <Badge level={thing.level}>{thing.message}</Badge>
    </div>
  )
}

const COLUMNS: readonly Column<Thing>[] = [
  {
    id: 'thing',
    header: copy.table.thing,
    rowHeader: true,
    compare: (a, b) => a.id.localeCompare(b.id, 'en', { numeric: true }),
    cell: ({ id, role }) => (
      <span className="inline-flex items-center gap-1 font-mono">
        {id}
        {role && <RoleMark role={role} />}
      </span>
    ),
  },
  {
    id: 'kind',
    header: copy.table.kind,
    compare: (a, b) => a.kind.localeCompare(b.kind),
    cell: ({ kind }) => copy.kinds[kind],
  },
  {
    id: 'zone',
    header: copy.table.zone,
    rank: 3,
    compare: (a, b) => a.zone.localeCompare(b.zone),
    cell: ({ zone }) => zone || NONE,
  },
  {
    id: 'shard',
    header: copy.table.shard,
    rank: 3,
    compare: (a, b) => a.shard.localeCompare(b.shard, 'en', { numeric: true }),
    cell: ({ shard }) => shard || NONE,
  },
  {
    id: 'state',
    header: copy.table.state,
    cell: ({ level, message }) => <Badge level={level}>{message || NONE}</Badge>,
  },
  {
    id: 'reads',
    header: copy.table.reads,
    end: true,
    rank: 2,
    compare: (a, b) => (a.reads ?? -1) - (b.reads ?? -1),
    cell: ({ reads }) => rate(reads),
  },
  {
    id: 'writes',
    header: copy.table.writes,
    end: true,
    rank: 2,
    compare: (a, b) => (a.writes ?? -1) - (b.writes ?? -1),
    cell: ({ writes }) => rate(writes),
  },
  {
    id: 'p99',
    header: copy.table.p99,
    end: true,
    rank: 4,
    cell: ({ component }) => duration(component?.rates.p99),
  },
  {
    id: 'registered',
    header: copy.table.registered,
    rank: 4,
    cell: ({ component }) =>
      component === undefined || component.registered === null
        ? NONE
        : component.registered
          ? copy.table.isListed
          : copy.table.notListed,
  },
  {
    id: 'version',
    header: copy.table.version,
    rank: 4,
    cell: ({ component }) => component?.version ?? NONE,
  },
]
