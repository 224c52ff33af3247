'use client'
/**
 * What an import or a snapshot holds: counters side by side, coverage, how many room types
 * (docs/design/control-plane.md#imports).
 */
import type { ImportView, SnapshotDetails } from '@vacancy/shared/contract'
import { Icon } from '../../icons/icon.tsx'
import { count, counted } from '../../lib/format.ts'
import { Banner } from '../../ui/banner.tsx'
import { Panel } from '../../ui/panel.tsx'
import { CoverageMap } from './coverage-map.tsx'

type Counters = NonNullable<ImportView['counters']>

/** Three counters that do not know of each other. */
export function CountersView({ counters }: { counters: Counters }) {
  const { reader, builder, readBack, rejected, agree, differs } = counters
  return (
    <Panel title="Counters" data={{ 'data-agree': String(agree) }}>
      <div className="flex flex-col gap-3">
        <p className={agree ? 'flex items-center gap-2 text-ok' : 'flex items-center gap-2 text-crit'}>
          <Icon name={agree ? 'check' : 'octagon'} />
          {agree ? 'All three counters agree: it adds up.' : 'Counters differ: this snapshot cannot be installed.'}
        </p>
        <div className="overflow-x-auto">
          <table className="w-full max-w-160 text-table">
            <caption className="sr-only">What each of three counted</caption>
            <thead>
              <tr className="border-line border-b text-small text-text-2">
                <th scope="col" className="py-1 pe-3 text-start font-medium">
                  Counted by
                </th>
                <th scope="col" className="px-3 py-1 text-end font-medium">
                  Properties
                </th>
                <th scope="col" className="px-3 py-1 text-end font-medium">
                  Packages
                </th>
                <th scope="col" className="py-1 ps-3 text-end font-medium">
                  Left out
                </th>
              </tr>
            </thead>
            <tbody className="tabular-nums">
              <CounterRow
                name="rows of the files"
                properties={reader.properties}
                packages={reader.packages}
                leftOut={null}
              />
              <CounterRow
                name="the builder"
                properties={builder.properties}
                packages={builder.packages}
                leftOut={builder.outOfWindow}
              />
              <CounterRow
                name="the snapshot, read back"
                properties={readBack.properties}
                packages={readBack.packages}
                leftOut={null}
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
          <Banner
            level="warn"
            title={`${counted(rejected.properties + rejected.packages, 'row')} left out that an import before had rejected`}
          >
            Rows in files {count(reader.properties + reader.packages)} = taken{' '}
            {count(builder.properties + builder.packages)} + outside the window {count(builder.outOfWindow)} + rejected{' '}
            {count(rejected.properties + rejected.packages)}.
          </Banner>
        )}
        {builder.outOfWindow > 0 && (
          <Banner level="info" title={`${counted(builder.outOfWindow, 'package')} left out`}>
            Their nights are outside of the window of this import. Rows of packages.csv {count(reader.packages)} = taken{' '}
            {count(builder.packages)} + left out {count(builder.outOfWindow)}.
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
  readonly leftOut: number | null
}

function CounterRow({ name, properties, packages, leftOut }: CounterProps) {
  return (
    <tr className="border-line border-b last:border-0">
      <th scope="row" className="py-1 pe-3 text-start font-normal text-text-2">
        {name}
      </th>
      <td className="px-3 py-1 text-end">{count(properties)}</td>
      <td className="px-3 py-1 text-end">{count(packages)}</td>
      <td className="py-1 ps-3 text-end">{leftOut === null ? '' : count(leftOut)}</td>
    </tr>
  )
}

export function CoverageView({ details }: { details: SnapshotDetails }) {
  const { coverage } = details
  if (!coverage?.window) return null
  const properties = new Map(coverage.segments.map((segment) => [segment.name, segment.properties]))
  return (
    <Panel title="Coverage: segments and nights">
      <CoverageMap
        title="Packages by segment and night"
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
    <Panel title="Room types a property">
      <table className="w-full max-w-160 text-table">
        <caption className="sr-only">Properties by their number of room types</caption>
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
      {over > 0 && (
        <p className="mt-2 text-warn">{counted(over, 'property has', 'properties have')} more than 10 room types.</p>
      )}
    </Panel>
  )
}
