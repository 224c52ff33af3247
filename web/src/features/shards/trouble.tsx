'use client'
/**
 * A shard that accepts no writes: since when, what to do, the best candidate, the runbook and the evidence
 * (docs/design/console.md#panels). In the colour of the state.
 */

import type { NodeView, ShardView } from '@vacancy/shared/contract'
import clsx from 'clsx'
import { useId } from 'react'
import { Icon } from '../../icons/icon.tsx'
import { count } from '../../lib/format.ts'
import { routes } from '../../lib/routes.ts'
import { Age, Duration } from '../../ui/age.tsx'
import { BANNER_TINTS } from '../../ui/banner.tsx'
import { CodeView } from '../../ui/code-view.tsx'
import { Link } from '../../ui/link.tsx'
import { STATE_ICONS } from '../../ui/state-badge.tsx'
import { Table } from '../../ui/table.tsx'
import { common } from './copy.ts'
import * as copy from './shard-copy.ts'
import { bestCandidate, electionText, troubleOf, votersAway } from './shard-view.ts'

export function TroublePanel({ shard }: { readonly shard: ShardView }) {
  const title = useId()
  const trouble = troubleOf(shard)
  if (!trouble) return null
  const away = votersAway(shard)
  const best = bestCandidate(shard)
  return (
    <section
      aria-labelledby={title}
      data-trouble={shard.state}
      className={clsx('grid gap-3 rounded-panel border px-4 py-3', BANNER_TINTS[shard.level])}
    >
      <div className="flex items-start gap-3">
        <Icon name={STATE_ICONS[shard.state]} className="mt-1" />
        <div className="grid min-w-0 gap-1">
          <h2 id={title} className="text-section">
            {trouble.title} {common.for} <Duration from={shard.since} />:{' '}
            {copy.trouble.voters(shard.votersUp, shard.voters, shard.majority)}
          </h2>
          <p className="prose text-text">
            {electionText(shard)} {trouble.effect}
          </p>
        </div>
      </div>
      <ul aria-label={copy.trouble.actions} className="grid gap-2 text-text sm:ps-7">
        {away.length > 0 && (
          <li className="grid gap-1">
            <span>{copy.trouble.bringBack(Math.max(1, shard.majority - shard.votersUp), away.length)}</span>
            <span className="flex flex-wrap gap-x-4 gap-y-1">
              {away.map((node) => (
                <Away key={node.id} shard={shard.id} node={node} />
              ))}
            </span>
          </li>
        )}
        {away.length === 0 && shard.waitsFor !== '' && <li>{shard.waitsFor}</li>}
        {best && shard.state !== 'forming' && (
          <li data-candidate={best.id}>
            <span className="font-mono font-semibold">{best.id}</span>{' '}
            {copy.trouble.candidate(count(best.lastIndex), shard.state === 'quorum-lost')}
          </li>
        )}
        <li className="prose text-text-2">{trouble.causes}</li>
      </ul>
      {shard.state === 'quorum-lost' && <Runbook />}
      <Evidence shard={shard} />
    </section>
  )
}

function Away({ shard, node }: { readonly shard: string; readonly node: NodeView }) {
  return (
    <span data-needed={node.id} className="inline-flex flex-wrap items-center gap-x-2">
      <Link href={routes.node(shard, node.id)} className="font-mono font-semibold">
        {node.id}
      </Link>
      <span>{node.error?.message ?? node.message}</span>
      <span className="text-small text-text-2">
        {copy.trouble.seen} <Age at={node.answeredAt} none={copy.trouble.never} className="!text-text-2" />
      </span>
    </span>
  )
}

/** What to do when the nodes cannot be brought back: the steps of docs/clusters.md. */
function Runbook() {
  return (
    <details className="text-text sm:ps-7">
      <summary className="w-fit font-medium">{copy.runbook.title}</summary>
      <ol className="grid list-decimal gap-1 ps-5 pt-2">
        {copy.runbook.steps.map(({ text, command }) => (
          <li key={text} className="prose">
            {text}
            {command !== undefined && <CodeView hideLabel label={command} code={command} className="my-1" />}
          </li>
        ))}
      </ol>
      <p className="pt-2 text-small text-text-2">{copy.runbook.source}</p>
    </details>
  )
}

/** What each voter last reported about its log. */
function Evidence({ shard }: { readonly shard: ShardView }) {
  const voters = shard.nodes.filter((node) => node.voter !== false)
  return (
    <details className="text-text sm:ps-7">
      <summary className="w-fit font-medium">{copy.trouble.evidence(voters.length)}</summary>
      <Table
        label={copy.trouble.table}
        className="mt-2 rounded-control border border-line bg-surface"
        rows={voters}
        rowKey={(node) => node.id}
        rowProps={(node) => ({ 'data-voter': node.id })}
        columns={[
          {
            id: 'node',
            header: copy.trouble.voter,
            rowHeader: true,
            cell: (node) => <span className="font-mono">{node.id}</span>,
          },
          { id: 'last', header: copy.trouble.lastEntry, end: true, cell: (node) => count(node.lastIndex) },
          { id: 'term', header: copy.trouble.term, end: true, cell: (node) => count(node.term) },
          {
            id: 'seen',
            header: copy.trouble.lastSeen,
            cell: (node) => <Age at={node.answeredAt} fresh={node.freshness} />,
          },
          {
            id: 'error',
            header: copy.trouble.lastError,
            rank: 2,
            cell: (node) => (node.error ? `${node.error.message} (${node.apiUrl})` : common.none),
          },
        ]}
      />
    </details>
  )
}
