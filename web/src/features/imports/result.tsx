'use client'
/**
 * The content of an import or a snapshot: counters, coverage, room types
 * (docs/design/control-plane.md#imports).
 */
import type { ImportView, SnapshotDetails } from '@vacancy/shared/contract'
import { Icon } from '../../icons/icon.tsx'
import { count } from '../../lib/format.ts'
import { Banner } from '../../ui/banner.tsx'
import { Panel } from '../../ui/panel.tsx'
import { CoverageMap } from './coverage-map.tsx'
import * as copy from './result-copy.ts'

type Counters = NonNullable<ImportView['counters']>

/** Three independent row counts. */
export function CountersView({ counters }: { counters: Counters }) {
  const { reader, builder, readBack, rejected, agree, differs } = counters
  return (
    <Panel title={copy.counters.title} data={{ 'data-agree': String(agree) }}>
      <div className="flex flex-col gap-3">
        <p className={agree ? 'flex items-center gap-2 text-ok' : 'flex items-center gap-2 text-crit'}>
          <Icon name={agree ? 'check' : 'octagon'} />
          {agree ? copy.counters.agree : copy.counters.differ}
        </p>
        <div className="overflow-x-auto">
          <table className="w-full max-w-160 text-table">
            <caption className="sr-only">{copy.counters.caption}</caption>
            <thead>
              <tr className="border-line border-b text-small text-text-2">
                <th scope="col" className="py-1 pe-3 text-start font-medium">
                  {copy.counters.source}
                </th>
                <th scope="col" className="px-3 py-1 text-end font-medium">
                  {copy.counters.properties}
                </th>
                <th scope="col" className="px-3 py-1 text-end font-medium">
                  {copy.counters.packages}
                </th>
                <th scope="col" className="py-1 ps-3 text-end font-medium">
                  {copy.counters.skipped}
                </th>
              </tr>
            </thead>
            <tbody className="tabular-nums">
              <CounterRow
                name={copy.counters.rowsOfFiles}
                properties={reader.properties}
                packages={reader.packages}
                skipped={null}
              />
              <CounterRow
                name={copy.counters.builder}
                properties={builder.properties}
                packages={builder.packages}
                skipped={builder.outOfWindow}
              />
              <CounterRow
                name={copy.counters.readBack}
                properties={readBack.properties}
                packages={readBack.packages}
                skipped={null}
              />
            </tbody>
          </table>
        </div>
        {differs.length > 0 && (
          <ul className="list-disc ps-5 text-crit">
            {differs.map((line) => (
              <li key={line}>{line}</li>
            ))}
          </ul>
        )}
        {rejected && (
          <Banner level="warn" title={copy.counters.rejected(rejected.properties + rejected.packages)}>
            {copy.counters.rejectedSum(
              count(reader.properties + reader.packages),
              count(builder.properties + builder.packages),
              count(builder.outOfWindow),
              count(rejected.properties + rejected.packages),
            )}
          </Banner>
        )}
        {builder.outOfWindow > 0 && (
          <Banner level="info" title={copy.counters.outside(builder.outOfWindow)}>
            {copy.counters.outsideSum(count(reader.packages), count(builder.packages), count(builder.outOfWindow))}
          </Banner>
        )}
      </div>
    </Panel>
  )
}

type CounterProps = {
  readonly name: string
  readonly properties: number
  readonly packages: number
  readonly skipped: number | null
}

function CounterRow({ name, properties, packages, skipped }: CounterProps) {
  return (
    <tr className="border-line border-b last:border-0">
      <th scope="row" className="py-1 pe-3 text-start font-normal text-text-2">
        {name}
      </th>
      <td className="px-3 py-1 text-end">{count(properties)}</td>
      <td className="px-3 py-1 text-end">{count(packages)}</td>
      <td className="py-1 ps-3 text-end">{skipped === null ? '' : count(skipped)}</td>
    </tr>
  )
}

export function CoverageView({ details }: { details: SnapshotDetails }) {
  const { coverage } = details
  if (!coverage?.window) return null
  const properties = new Map(coverage.segments.map((segment) => [segment.name, segment.properties]))
  return (
    <Panel title={copy.coverage.title}>
      <CoverageMap
        title={copy.coverage.mapTitle}
        from={coverage.window.from}
        segments={coverage.segments}
        properties={(name) => properties.get(name) ?? 0}
      />
    </Panel>
  )
}

/** Properties by their number of room types. */
export function RoomsView({ rooms }: { rooms: readonly number[] }) {
  const last = rooms.findLastIndex((many) => many > 0)
  if (last < 0) return null
  const most = Math.max(...rooms)
  const over = rooms.slice(11).reduce((sum, many) => sum + many, 0)
  return (
    <Panel title={copy.rooms.title}>
      <table className="w-full max-w-160 text-table">
        <caption className="sr-only">{copy.rooms.caption}</caption>
        <tbody>
          {rooms.slice(0, last + 1).map((many, number) => (
            <tr key={number}>
              <th scope="row" className="w-16 pe-3 text-end font-normal text-text-2 tabular-nums">
                {number === rooms.length - 1 ? `${number}+` : number}
              </th>
              <td className="py-0.5">
                <span className="block h-3 rounded-control bg-avail-4" style={{ width: `${(many / most) * 100}%` }} />
              </td>
              <td className="w-24 ps-3 text-end tabular-nums">{count(many)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {over > 0 && <p className="mt-2 text-warn">{copy.rooms.tooMany(over)}</p>}
    </Panel>
  )
}
