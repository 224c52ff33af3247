'use client'
/** The failure matrix: what the loss of each zone, machine, node and component stops. */
import type { FailureRow } from '@vacancy/shared/contract'
import { routes } from '../../lib/routes.ts'
import { useRoute } from '../../lib/use-route.ts'
import { Link } from '../../ui/link.tsx'
import { NARROW, useMedia } from '../../ui/media.ts'
import { Page } from '../../ui/page.tsx'
import { Panel } from '../../ui/panel.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import * as copy from './copy.ts'

const REFRESH_MS = 2_000
/** Rows of a table without a window; the worst come first. */
const ROWS_MAX = 200

export function FailuresPage() {
  const matrix = useRoute('GET /api/v1/failures', {}, { refetchInterval: REFRESH_MS })
  const isNarrow = useMedia(NARROW)
  const harmless = Object.entries(matrix.data?.harmless ?? {})
  return (
    <Page id="failures" title={copy.failures.title} ready={!matrix.isPending} lead={<p>{copy.failures.lead}</p>}>
      <Panel
        title={copy.failures.table}
        flush
        query={matrix}
        isEmpty={({ rows }) => rows.length === 0}
        empty={{ text: copy.failures.none }}
      >
        {({ rows }) => (
          <Table
            label={copy.failures.table}
            rows={rows.slice(0, ROWS_MAX)}
            rowKey={({ kind, shard, name }) => `${kind} ${shard ?? ''} ${name}`}
            rowProps={({ kind, name }) => ({ 'data-kind': kind, 'data-place': name })}
            columns={COLUMNS}
            {...(isNarrow && { card: (row: FailureRow) => <Card row={row} /> })}
          />
        )}
      </Panel>
      {harmless.length > 0 && <p className="prose text-text-2">{copy.failures.harmless(harmless)}</p>}
    </Page>
  )
}

const COLUMNS: readonly Column<FailureRow>[] = [
  {
    id: 'lost',
    header: copy.failures.lost,
    rowHeader: true,
    cell: ({ kind, name, shard }) => (
      <>
        {copy.kinds[kind]} <span className="font-mono">{kind === 'node' ? `${shard} / ${name}` : name}</span>
      </>
    ),
  },
  { id: 'clients', header: copy.failures.clients, cell: ({ cuts }) => <Lines texts={cuts} /> },
  { id: 'reads', header: copy.failures.reads, cell: ({ reads }) => <Shards ids={reads} level="crit" /> },
  { id: 'writes', header: copy.failures.writes, cell: ({ writes }) => <Shards ids={writes} level="crit" /> },
  { id: 'pauses', header: copy.failures.pauses, cell: ({ pauses }) => <Shards ids={pauses} /> },
]

function Lines({ texts }: { readonly texts: readonly string[] }) {
  if (texts.length === 0) return copy.failures.nothing
  return texts.map((text) => (
    <span key={text} className="block">
      {text}.
    </span>
  ))
}

/** On a phone: the place, and what stops in lines of their own. */
function Card({ row }: { readonly row: FailureRow }) {
  const [place, ...effects] = COLUMNS
  const { cuts, reads, writes, pauses } = row
  const isShown = [cuts, reads, writes, pauses].map((list) => list.length > 0)
  return (
    <div className="grid gap-1">
      <span className="font-medium">{place?.cell(row)}</span>
      {effects.map(
        ({ id, header, cell }, at) =>
          isShown[at] && (
            <div key={id}>
              <span className="text-small text-text-2">{header}: </span>
              {cell(row)}
            </div>
          ),
      )}
    </div>
  )
}

function Shards({ ids, level }: { readonly ids: readonly string[]; readonly level?: 'crit' }) {
  const [only, ...others] = ids
  if (only === undefined) return copy.failures.nothing
  const text = <span className={level && 'font-medium text-crit'}>{copy.failures.shards(ids)}</span>
  return others.length === 0 ? <Link href={routes.shard(only)}>{text}</Link> : text
}
