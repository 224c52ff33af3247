'use client'
/** The events of a shard, of all nodes or one. */

import type { ClusterEvent } from '@vacancy/shared/contract'
import { clock, utc } from '../../lib/format.ts'
import { useUrlParam } from '../../lib/url.ts'
import { Chip } from '../../ui/badge.tsx'
import { CopyButton } from '../../ui/copy-button.tsx'
import { EventList } from '../../ui/event-list.tsx'
import { Panel } from '../../ui/panel.tsx'
import { useShardEvents } from './queries.ts'
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

function Events({ id, nodes }: { readonly id: string; readonly nodes: readonly string[] }) {
  const [node, setNode] = useUrlParam('node')
  const events = useShardEvents(id, { limit: EVENTS, ...(node === '' ? {} : { node }) })
  return (
    <>
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
        isEmpty={(data) => data.events.length === 0}
        empty={{ text: copy.events.empty }}
        actions={
          events.data && (
            <CopyButton
              kind="quiet"
              label={copy.events.copyMarkdown}
              text={() => eventsMarkdown(id, events.data.events)}
            />
          )
        }
      >
        {(data) => <EventList label={copy.events.of(id)} events={data.events} />}
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
