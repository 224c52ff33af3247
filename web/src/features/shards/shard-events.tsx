'use client'
/** What happened on a shard. */

import { useUrlParam } from '../../lib/url.ts'
import { Chip } from '../../ui/badge.tsx'
import { CopyButton } from '../../ui/copy-button.tsx'
import { Panel } from '../../ui/panel.tsx'
import { EventList, eventsMarkdown } from './event-list.tsx'
import { useShardEvents } from './queries.ts'
import { ShardFrame } from './shard-page.tsx'

export function ShardEventsPage({ id }: { readonly id: string }) {
  return (
    <ShardFrame id={id} tab="events">
      {(shard) => <Events id={id} nodes={shard.nodes.map((node) => node.id)} />}
    </ShardFrame>
  )
}

const EVENTS = 500

function Events({ id, nodes }: { readonly id: string; readonly nodes: readonly string[] }) {
  const [node, setNode] = useUrlParam('node')
  const events = useShardEvents(id, { limit: EVENTS, ...(node === '' ? {} : { node }) })
  return (
    <>
      {/* biome-ignore lint/a11y/useSemanticElements: a fieldset would draw a box around chips. */}
      <div role="group" aria-label="Events of" className="flex flex-wrap gap-2">
        <Chip pressed={node === ''} onClick={() => setNode('', { push: true })}>
          all nodes
        </Chip>
        {nodes.map((other) => (
          <Chip key={other} pressed={node === other} onClick={() => setNode(other, { push: true })}>
            {other}
          </Chip>
        ))}
      </div>
      <Panel
        title="Events"
        query={events}
        isEmpty={(data) => data.events.length === 0}
        empty={{ text: 'Nothing has changed since this control plane looks.' }}
        actions={
          events.data && (
            <CopyButton kind="quiet" label="Copy as Markdown" text={() => eventsMarkdown(id, events.data.events)} />
          )
        }
      >
        {(data) => <EventList label={`Events of ${id}`} events={data.events} />}
      </Panel>
    </>
  )
}
