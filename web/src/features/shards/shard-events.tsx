'use client'
/** The events of a shard, of all nodes or one. */

import { type ClusterEvent, EVENT_KINDS } from '@vacancy/shared/contract'
import { clock, utc } from '../../lib/format.ts'
import { useUrlChoice, useUrlParam } from '../../lib/url.ts'
import { Chip } from '../../ui/badge.tsx'
import { CopyButton } from '../../ui/copy-button.tsx'
import { event as eventCopy } from '../../ui/data-copy.ts'
import { EventList } from '../../ui/event-list.tsx'
import { Panel } from '../../ui/panel.tsx'
import { EVENTFUL, useShardEvents } from './queries.ts'
import * as copy from './shard-copy.ts'
import { ShardFrame } from './shard-page.tsx'

export function ShardEventsPage({ id }: { readonly id: string }) {
  return (
    <ShardFrame id={id} tab="events">
      {(shard) => <Events id={id} nodes={shard.nodes.map((node) => node.id)} />}
    </ShardFrame>
  )
}

const EVENTS = 500
const KINDS = ['', ...EVENT_KINDS] as const

function Events({ id, nodes }: { readonly id: string; readonly nodes: readonly string[] }) {
  const [node, setNode] = useUrlParam('node')
  const [kind, setKind] = useUrlChoice('kind', KINDS)
  const isSnapshots = kind === 'snapshot'
  const events = useShardEvents(id, {
    ...{ limit: EVENTS, kinds: isSnapshots ? ['snapshot'] : EVENTFUL },
    ...(node === '' ? {} : { node }),
  })
  const all = events.data?.events ?? []
  const isShown = (event: ClusterEvent) => kind === '' || event.kind === kind
  const countOf = (of: string) => all.filter((event) => event.kind === of).length
  return (
    <>
      {/* biome-ignore lint/a11y/useSemanticElements: a fieldset would draw a box around chips. */}
      <div role="group" aria-label={copy.events.kinds} className="flex flex-wrap gap-2">
        <Chip pressed={kind === ''} onClick={() => setKind('', { push: true })}>
          {copy.events.allKinds}
        </Chip>
        {EVENT_KINDS.filter((of) => of === kind || of === 'snapshot' || isSnapshots || countOf(of) > 0).map((of) => (
          <Chip key={of} pressed={kind === of} onClick={() => setKind(of, { push: true })}>
            {eventCopy.kinds[of]} {(of === 'snapshot') === isSnapshots && countOf(of)}
          </Chip>
        ))}
      </div>
      {/* biome-ignore lint/a11y/useSemanticElements: a fieldset would draw a box around chips. */}
      <div role="group" aria-label={copy.events.filter} className="flex flex-wrap gap-2">
        <Chip pressed={node === ''} onClick={() => setNode('', { push: true })}>
          {copy.events.allNodes}
        </Chip>
        {nodes.map((other) => (
          <Chip key={other} pressed={node === other} onClick={() => setNode(other, { push: true })}>
            {other}
          </Chip>
        ))}
      </div>
      <Panel
        title={copy.events.title}
        query={events}
        isEmpty={(data) => !data.events.some(isShown)}
        empty={{ text: copy.events.empty }}
        actions={
          events.data && (
            <CopyButton
              kind="quiet"
              label={copy.events.copyMarkdown}
              text={() => eventsMarkdown(id, events.data.events.filter(isShown))}
            />
          )
        }
      >
        {(data) => <EventList label={copy.events.of(id)} events={data.events.filter(isShown)} />}
      </Panel>
    </>
  )
}

/** Events as Markdown, for incident notes. */
function eventsMarkdown(shard: string, events: readonly ClusterEvent[]): string {
  const [newest] = events
  if (!newest) return copy.events.markdownEmpty(shard)
  const lines = events.map(
    (event) => `| ${utc(event.at)} | ${event.node ?? ''} | ${event.message.replaceAll('|', '\\|')} |`,
  )
  return [
    copy.events.markdownTitle(shard, clock(newest.at)),
    '',
    copy.events.markdownHead,
    '|---|---|---|',
    ...lines,
  ].join('\n')
}
