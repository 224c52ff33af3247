'use client'
/** The stays of one night of a room type, newest first: who took the rooms, and until when. */
import type { StayListEntry } from '@vacancy/shared/contract'
import { routes } from '../../lib/routes.ts'
import { LinkButton } from '../../ui/button.tsx'
import { Panel } from '../../ui/panel.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import * as copy from './copy.ts'
import { useStayList } from './queries.ts'
import { isOpen, linesOn, roomsOf, StayCard, stayColumns } from './stay-parts.tsx'

type NightProps = {
  readonly shard: string
  readonly property: string
  readonly room: string
  readonly date: string
}

export function NightStays({ shard, ...of }: NightProps) {
  const query = useStayList(shard, of)
  return (
    <Panel
      title={copy.night.title}
      level={3}
      flush
      className="basis-full overflow-clip"
      query={query}
      skeleton={2}
      isEmpty={({ pages }) => pages.every(({ stays }) => stays.length === 0)}
      empty={{ text: copy.night.none }}
      actions={<LinkButton href={routes.stays(shard, of)}>{copy.night.all}</LinkButton>}
    >
      {({ pages }) => {
        const rows = pages.flatMap(({ stays }) => stays)
        return (
          <>
            <Table
              label={copy.night.title}
              // Those that have rooms first.
              rows={[...rows.filter(isOpen), ...rows.filter((stay) => !isOpen(stay))]}
              rowKey={({ id }) => id}
              rowProps={({ id, state }) => ({ 'data-stay': id, 'data-state': state })}
              href={({ id }) => routes.stays(shard, { stay: id })}
              columns={columnsOf(shard, of)}
              card={(stay) => (
                <StayCard
                  href={routes.stays(shard, { stay: stay.id })}
                  stay={stay}
                  rooms={roomsOf(linesOn(stay.lines, of))}
                />
              )}
            />
            {query.hasNextPage && <p className="px-4 py-2 text-small text-text-3">{copy.night.more(rows.length)}</p>}
          </>
        )
      }}
    </Panel>
  )
}

function columnsOf(shard: string, of: Omit<NightProps, 'shard'>): Column<StayListEntry>[] {
  const { stay, state, deadline, source, since } = stayColumns((id) => routes.stays(shard, { stay: id }))
  const rooms = (entry: StayListEntry) => roomsOf(linesOn(entry.lines, of))
  return [
    stay,
    state,
    { id: 'rooms', header: copy.list.rooms, end: true, cell: rooms },
    deadline,
    { ...source, rank: 2 },
    { ...since, rank: 2 },
  ]
}
