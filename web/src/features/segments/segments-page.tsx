'use client'
/** The segments of a shard: size, and on which nights they have packages. */
import type { SegmentLine } from '@vacancy/shared/contract'
import { count, day } from '../../lib/format.ts'
import { routes } from '../../lib/routes.ts'
import { useUrlTyped } from '../../lib/url.ts'
import { Button, LinkButton } from '../../ui/button.tsx'
import { FactRow } from '../../ui/facts.tsx'
import { TextField } from '../../ui/field.tsx'
import { Link } from '../../ui/link.tsx'
import { NARROW, useMedia } from '../../ui/media.ts'
import { EmptyState, Panel } from '../../ui/panel.tsx'
import { type Column, Table, type TableProps } from '../../ui/table.tsx'
import { VirtualTable } from '../../ui/virtual-table.tsx'
import { ShardFrame } from '../shards/shard-page.tsx'
import * as copy from './copy.ts'
import { stripOf } from './coverage-strip.ts'
import { useSegments } from './queries.ts'

export function SegmentsPage({ id }: { readonly id: string }) {
  return (
    <ShardFrame id={id} tab="segments">
      {() => <Segments shard={id} />}
    </ShardFrame>
  )
}

function Segments({ shard }: { readonly shard: string }) {
  const query = useSegments(shard)
  const [text, setText] = useUrlTyped('q')
  return (
    <Panel
      title={copy.segments.title}
      flush
      query={query}
      isEmpty={({ pages }) => pages.every(({ segments }) => segments.length === 0)}
      empty={{
        text: copy.segments.empty,
        action: <LinkButton href={routes.imports()}>{copy.segments.openImports}</LinkButton>,
      }}
      at={({ pages }) => pages[0]?.at ?? null}
      skeleton={8}
    >
      {({ pages }) => {
        const window = pages.find((page) => page.window)?.window ?? null
        const all = pages.flatMap((page) => page.segments.map((line) => ({ line, from: page.window?.from ?? '' })))
        const rows = all.filter(({ line }) => line.name.toLowerCase().includes(text.trim().toLowerCase()))
        return (
          <>
            <div className="flex flex-wrap items-end gap-3 px-4 pb-3">
              <TextField
                label={copy.segments.find}
                fieldClassName="w-full max-w-72"
                type="search"
                value={text}
                onChange={setText}
              />
              <p className="pb-1.5 text-small text-text-3">{copy.segments.lead(pages[0]?.node ?? '')}</p>
            </div>
            {rows.length === 0 ? (
              <div className="px-4 pb-4">
                <EmptyState text={copy.segments.noMatch(text)} />
              </div>
            ) : (
              <Rows
                label={copy.segments.title}
                rows={rows}
                rowKey={({ line }) => line.name}
                href={({ line }) => routes.segment(shard, line.name)}
                rowProps={({ line }) => ({ 'data-segment': line.name })}
                orderKey={text}
                columns={columnsOf(shard, window)}
              />
            )}
            {query.hasNextPage && (
              <div className="p-4">
                <Button busy={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
                  {copy.segments.more}
                </Button>
              </div>
            )}
          </>
        )
      }}
    </Panel>
  )
}

type Row = { readonly line: SegmentLine; readonly from: string }

function Rows(props: TableProps<Row>) {
  const isNarrow = useMedia(NARROW)
  if (!isNarrow) return <VirtualTable {...props} />
  const [name, areas, properties, packages, coverage] = props.columns
  return (
    <Table
      {...props}
      card={(row) => (
        <div className="grid gap-1">
          <span className="break-words font-medium">{name?.cell(row)}</span>
          <FactRow
            facts={[properties, packages, areas].flatMap((each) =>
              each ? [[each.header, each.cell(row)] as const] : [],
            )}
          />
          {coverage?.cell(row)}
        </div>
      )}
    />
  )
}

function columnsOf(shard: string, window: { readonly from: string; readonly to: string } | null): Column<Row>[] {
  return [
    {
      id: 'segment',
      header: copy.segments.segment,
      rowHeader: true,
      cell: ({ line }) => <Link href={routes.segment(shard, line.name)}>{line.name}</Link>,
      compare: (a, b) => (a.line.name < b.line.name ? -1 : 1),
    },
    {
      id: 'areas',
      header: copy.segments.areas,
      end: true,
      rank: 2,
      cell: ({ line }) => (line.areas === null ? copy.segments.manyAreas : count(line.areas)),
      compare: (a, b) => (a.line.areas ?? Number.POSITIVE_INFINITY) - (b.line.areas ?? Number.POSITIVE_INFINITY),
    },
    {
      id: 'properties',
      header: copy.segments.properties,
      end: true,
      cell: ({ line }) => count(line.properties),
      compare: (a, b) => a.line.properties - b.line.properties,
    },
    {
      id: 'packages',
      header: copy.segments.packages,
      end: true,
      rank: 2,
      cell: ({ line }) => count(line.packages),
      compare: (a, b) => a.line.packages - b.line.packages,
    },
    {
      id: 'coverage',
      header: copy.segments.coverage,
      rank: 3,
      width: '40%',
      ...(window && { tip: copy.segments.coverageTip(day(window.from), day(window.to)) }),
      cell: ({ line, from }) => <CoverageStrip nights={line.nights} from={from} />,
    },
  ]
}

function CoverageStrip({ nights, from }: { readonly nights: readonly number[]; readonly from: string }) {
  const { background, text } = stripOf(nights, from)
  return (
    <span
      role="img"
      aria-label={text}
      data-tip={text}
      className="hatch block h-3.5 forced-color-adjust-none min-w-40 overflow-hidden rounded-[2px] border border-line"
    >
      <span aria-hidden="true" className="block h-full w-full" style={{ background }} />
    </span>
  )
}
