'use client'
/** One segment: its properties as a list and on a map, with one selection. */
import type { PropertyDetails, SegmentProperties } from '@vacancy/shared/contract'
import { Suspense, useMemo, useState } from 'react'
import { count, counted } from '../../lib/format.ts'
import { navigate } from '../../lib/navigate.ts'
import { routes } from '../../lib/routes.ts'
import { useSetUrl, useUrlParam, useUrlTyped } from '../../lib/url.ts'
import { Banner } from '../../ui/banner.tsx'
import { Button, LinkButton } from '../../ui/button.tsx'
import { CopyButton } from '../../ui/copy-button.tsx'
import { TextField } from '../../ui/field.tsx'
import { late } from '../../ui/late.tsx'
import { Link } from '../../ui/link.tsx'
import { Page } from '../../ui/page.tsx'
import { EmptyState, Panel, Skeleton } from '../../ui/panel.tsx'
import { SelectField } from '../../ui/select.tsx'
import type { Column } from '../../ui/table.tsx'
import { VirtualTable } from '../../ui/virtual-table.tsx'
import { common } from '../shards/copy.ts'
import * as copy from './copy.ts'
import { querySegment } from './open-query.ts'
import { type SegmentFilters, useSegmentProperties, useWords } from './queries.ts'

const MapScatter = late(async () => (await import('../../ui/map-scatter.tsx')).MapScatter)

const FILTERS = ['area', 'type', 'category', 'amenity'] as const
const STARS = [2, 3, 4, 5]
const colourOf = () => 'accent'

export function SegmentPage({ shard, id }: { readonly shard: string; readonly id: string }) {
  const filters = useFilters()
  const query = useSegmentProperties(shard, id, filters.value)
  const { data } = query
  return (
    <Page
      id="segment"
      title={id}
      where={shard}
      ready={data !== undefined || query.error !== null}
      crumbs={[
        { href: routes.shards(), label: common.shards },
        { href: routes.shard(shard), label: shard },
        { href: routes.segments(shard), label: copy.segments.title },
      ]}
      lead={data?.total != null && copy.segment.lead(copy.segment.total(data.total), data.node)}
      actions={
        <Button icon="playground" onClick={() => void querySegment(shard, id, filters.value)}>
          {copy.segment.query}
        </Button>
      }
    >
      {data?.total === null ? (
        <EmptyState
          text={copy.segment.unknown(id, shard)}
          action={<LinkButton href={routes.segments(shard)}>{copy.segment.openSegments}</LinkButton>}
        />
      ) : (
        <>
          <Filters shard={shard} segment={id} filters={filters} />
          <Panel title={copy.segment.properties} hideTitle query={query} skeleton={10} at={({ at }) => at}>
            {(list) => <Properties shard={shard} list={list} filters={filters} />}
          </Panel>
        </>
      )}
    </Page>
  )
}

type FiltersInUrl = {
  readonly text: string
  readonly setText: (text: string) => void
  readonly value: SegmentFilters
  readonly set: (name: keyof SegmentFilters, value: string) => void
  readonly clear: () => void
}

function useFilters(): FiltersInUrl {
  const [area] = useUrlParam('area')
  const [type] = useUrlParam('type')
  const [category] = useUrlParam('category')
  const [given] = useUrlParam('stars')
  const [amenity] = useUrlParam('amenity')
  const [text, setText] = useUrlTyped('id')
  const setUrl = useSetUrl()
  // An address may hold anything.
  const stars = STARS.includes(Number(given)) ? given : ''
  return {
    text,
    setText,
    value: { area, type, category, stars, amenity },
    set: (name, value) => setUrl({ [name]: value }, { push: true }),
    clear: () => {
      setText('')
      setUrl({ area: null, type: null, category: null, stars: null, amenity: null })
    },
  }
}

type FilterProps = { readonly shard: string; readonly segment: string; readonly filters: FiltersInUrl }

function Filters({ shard, segment, filters }: FilterProps) {
  const { value, set, text, setText } = filters
  return (
    <section aria-label={copy.segment.filters} className="flex flex-wrap items-end gap-3">
      <TextField
        label={copy.segment.find}
        fieldClassName="w-44"
        type="search"
        spellCheck={false}
        value={text}
        onChange={setText}
      />
      {FILTERS.map((name) => (
        <WordFilter key={name} shard={shard} segment={segment} name={name} value={value[name]} onChange={set} />
      ))}
      <SelectField
        label={copy.segment.stars}
        fieldClassName="w-32"
        className="w-full"
        value={value.stars}
        onChange={(text) => set('stars', text)}
        options={[
          { value: '', label: copy.segment.any },
          ...STARS.map((stars) => ({ value: String(stars), label: copy.segment.atLeast(stars) })),
        ]}
      />
    </section>
  )
}

type WordFilterProps = {
  readonly shard: string
  readonly segment: string
  readonly name: (typeof FILTERS)[number]
  readonly value: string
  readonly onChange: (name: (typeof FILTERS)[number], value: string) => void
}

function WordFilter({ shard, segment, name, value, onChange }: WordFilterProps) {
  const { data } = useWords(shard, segment, name)
  const words = data?.words ?? []
  const isListed = value === '' || words.some(({ word }) => word === value)
  return (
    <SelectField
      label={copy.segment[name]}
      fieldClassName="w-40"
      className="w-full"
      value={value}
      onChange={(text) => onChange(name, text)}
      options={[
        { value: '', label: copy.segment.any },
        ...(isListed ? [] : [{ value, label: value }]),
        ...words.map(({ word, properties }) => ({
          value: word,
          label: properties === null ? word : `${word} · ${count(properties)}`,
        })),
      ]}
    />
  )
}

type PropertiesProps = {
  readonly shard: string
  readonly list: SegmentProperties
  readonly filters: FiltersInUrl
}

function Properties({ shard, list, filters: { text, clear } }: PropertiesProps) {
  const [chosen, setChosen] = useUrlParam('property')
  const [hovered, setHovered] = useState<string>()
  const wanted = text.trim().toLowerCase()
  const rows = useMemo(
    () => list.properties.filter(({ id }) => id.toLowerCase().includes(wanted)),
    [list.properties, wanted],
  )
  const columns = useMemo(() => columnsOf(shard, list.segment), [shard, list.segment])
  const selected = rows.find(({ id }) => id === chosen)
  if (rows.length === 0)
    return <EmptyState text={copy.segment.none} action={<Button onClick={clear}>{copy.segment.clear}</Button>} />
  return (
    <div className="flex min-w-0 flex-col gap-3">
      {list.more && <Banner level="info" title={copy.segment.more(count(list.properties.length))} />}
      <div className="grid min-w-0 grid-cols-1 items-start gap-4 lg:grid-cols-[minmax(0,3fr)_minmax(0,2fr)]">
        <div
          className="flex min-w-0 flex-col gap-2"
          onPointerOver={({ target }) =>
            setHovered((target as Element).closest<HTMLElement>('tr[data-key]')?.dataset['key'])
          }
          onPointerLeave={() => setHovered(undefined)}
        >
          <p role="status" data-shown={rows.length} className="text-small text-text-3">
            {copy.segment.shown(count(rows.length), count(list.total ?? list.properties.length))}
          </p>
          <VirtualTable
            label={copy.segment.properties}
            rows={rows}
            rowKey={({ id }) => id}
            onOpen={({ id }) => setChosen(id)}
            focus={selected?.id}
            orderKey={wanted}
            rowProps={({ id }) => ({ 'data-property': id })}
            columns={columns}
            height="min(64vh, 48rem)"
          />
        </div>
        <section aria-label={copy.segment.map} className="min-w-0 lg:sticky lg:top-4">
          <Suspense fallback={<Skeleton rows={10} />}>
            <MapScatter
              places={rows}
              colourOf={colourOf}
              selected={selected?.id}
              onSelect={setChosen}
              hovered={hovered}
              onHover={setHovered}
              onOpen={(id) => navigate(routes.property(shard, list.segment, id))}
            />
          </Suspense>
          {selected && <Selected shard={shard} property={selected} />}
        </section>
      </div>
    </div>
  )
}

function columnsOf(shard: string, segment: string): Column<PropertyDetails>[] {
  const by = (read: (property: PropertyDetails) => string | number) => (a: PropertyDetails, b: PropertyDetails) =>
    read(a) < read(b) ? -1 : read(a) > read(b) ? 1 : 0
  return [
    {
      id: 'id',
      header: copy.segment.property,
      rowHeader: true,
      cell: ({ id }) => (
        <Link href={routes.property(shard, segment, id)} className="font-mono">
          {id}
        </Link>
      ),
      compare: by(({ id }) => id),
    },
    { id: 'area', header: copy.segment.area, cell: ({ area }) => area, compare: by(({ area }) => area) },
    { id: 'stars', header: copy.segment.stars, end: true, cell: ({ stars }) => stars, compare: by((p) => p.stars) },
    { id: 'type', header: copy.segment.type, rank: 2, cell: ({ type }) => type, compare: by(({ type }) => type) },
    {
      id: 'category',
      header: copy.segment.category,
      rank: 3,
      cell: ({ category }) => category,
      compare: by(({ category }) => category),
    },
    {
      id: 'rooms',
      header: copy.segment.rooms,
      end: true,
      rank: 3,
      cell: ({ room_types: rooms }) => <span data-tip={rooms.join(', ') || undefined}>{rooms.length}</span>,
      compare: by((p) => p.room_types.length),
    },
  ]
}

function Selected({ shard, property }: { readonly shard: string; readonly property: PropertyDetails }) {
  const { id, segment, area, type, category, stars, amenities } = property
  return (
    <section
      aria-label={copy.segment.selected(id)}
      className="flex flex-wrap items-center gap-x-3 gap-y-1 rounded-control border border-line bg-sunken px-3 py-2"
    >
      <span className="font-medium font-mono">{id}</span>
      <CopyButton text={id} label={id} />
      <LinkButton href={routes.property(shard, segment, id)} className="ms-auto">
        {copy.segment.openCalendar}
      </LinkButton>
      <p className="min-w-0 basis-full break-words text-text-2">
        {[area, type, category, counted(stars, 'star'), amenities.join(', ') || copy.segment.noAmenities].join(' · ')}
      </p>
    </section>
  )
}
