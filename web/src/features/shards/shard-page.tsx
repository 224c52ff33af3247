'use client'
/** One shard: what state it is in, who leads, and its parts as tabs with addresses of their own. */

import type { ShardView } from '@vacancy/shared/contract'
import { type ReactNode, useState } from 'react'
import { count } from '../../lib/format.ts'
import { useLive } from '../../lib/live.ts'
import { ApiProblem } from '../../lib/problem.ts'
import { routes } from '../../lib/routes.ts'
import { useWhyNot } from '../../lib/session.ts'
import { Duration } from '../../ui/age.tsx'
import { Button } from '../../ui/button.tsx'
import { copyText } from '../../ui/copy-button.tsx'
import { Menu } from '../../ui/menu.tsx'
import { Page } from '../../ui/page.tsx'
import { ErrorState, PartialStrip, Skeleton } from '../../ui/panel.tsx'
import { StateBadge } from '../../ui/state-badge.tsx'
import { PathTabs } from '../../ui/tabs.tsx'
import { toast } from '../../ui/toast.tsx'
import { useFollowed } from '../operations/followed.ts'
import { LiveOperationStrip } from '../operations/operation-strip.tsx'
import { useOpenPlan } from '../operations/plan-host.tsx'
import { useDownloadDiagnostics } from './diagnostics.ts'
import { NotThere } from './not-there.tsx'
import { openInPlayground } from './open-in-playground.ts'
import { bestTarget, shardText, spareSays, whyNoTransfer } from './shard-view.ts'

type ShardTab = 'members' | 'snapshots' | 'events' | 'metrics' | 'config'

type ShardFrameProps = {
  readonly id: string
  readonly tab: ShardTab
  /** The tab's content, once the shard is known. */
  readonly children: (shard: ShardView) => ReactNode
}

/** What all tabs of a shard have in common. */
export function ShardFrame({ id, tab, children }: ShardFrameProps) {
  const query = useLive(`shard:${id}`)
  const shard = query.data
  const operation = useLastOperation(id, shard)
  if (!shard && query.error instanceof ApiProblem && query.error.status === 404) {
    return <NotThere page={PAGES[tab]} what="shard" id={id} />
  }
  return (
    <Page
      id={PAGES[tab]}
      title={id}
      {...(tab === 'members' ? {} : { where: TITLES[tab] })}
      ready={shard !== undefined}
      crumbs={[{ href: routes.shards(), label: 'Shards' }]}
      badge={shard && <StateBadge state={shard.state} level={shard.level} label={shard.says} />}
      lead={shard && <Lead shard={shard} />}
      actions={shard && <Actions shard={shard} />}
      tabs={
        <PathTabs
          label={`Shard ${id}`}
          tabs={[
            { href: routes.shard(id), label: 'Members' },
            { href: routes.shardSnapshots(id), label: 'Snapshots' },
            { href: routes.shardEvents(id), label: 'Events' },
            { href: routes.shardMetrics(id), label: 'Metrics' },
            { href: routes.shardConfig(id), label: 'Config' },
          ]}
        />
      }
    >
      {!shard && (query.error ? <ErrorState error={query.error} onRetry={query.refetch} /> : <Skeleton rows={8} />)}
      {shard && shard.missing.length > 0 && <PartialStrip missing={shard.missing} of={shard.nodes.length} />}
      {operation && <LiveOperationStrip id={operation} />}
      {shard && children(shard)}
    </Page>
  )
}

const PAGES: Record<ShardTab, string> = {
  members: 'shard',
  snapshots: 'shard-snapshots',
  events: 'shard-events',
  metrics: 'shard-metrics',
  config: 'shard-config',
}
const TITLES: Record<ShardTab, string> = {
  members: 'Members',
  snapshots: 'Snapshots',
  events: 'Events',
  metrics: 'Metrics',
  config: 'Config',
}

/** The operation that runs, and after its end the one that was started here, or ran last while somebody looked. */
function useLastOperation(id: string, shard: ShardView | undefined): string | undefined {
  const started = useFollowed().startedOn[id]
  const running = shard?.operation ?? undefined
  const [seen, setSeen] = useState<{ started?: string | undefined; last?: string | undefined }>({})
  if (running !== undefined && running !== seen.last) setSeen({ started, last: running })
  else if (running === undefined && started !== seen.started) setSeen({ started, last: started })
  return seen.last
}

function Lead({ shard }: { readonly shard: ShardView }) {
  return (
    <p className="flex flex-wrap gap-x-4 gap-y-1">
      <span>zone {shard.zone}</span>
      {shard.mode === 'clustered' && (
        <span>
          {shard.leader === null ? (
            'no leader'
          ) : (
            <>
              leader <span className="font-mono">{shard.leader}</span>
              {shard.leaderSince && (
                <>
                  {' '}
                  since <Duration from={shard.leaderSince} />
                </>
              )}
            </>
          )}
        </span>
      )}
      {shard.spare !== null && shard.mode === 'clustered' && <span>{spareSays(shard)}</span>}
      {shard.term !== null && <span>term {count(shard.term)}</span>}
      <span className="text-text-3">
        in this state for <Duration from={shard.since} />
      </span>
    </p>
  )
}

function Actions({ shard }: { readonly shard: ShardView }) {
  const openPlan = useOpenPlan()
  const held = useWhyNot('admin')
  const download = useDownloadDiagnostics(shard)
  const noTransfer = whyNoTransfer(shard)
  const target = bestTarget(shard)
  return (
    <>
      {shard.mode !== 'standalone' && (
        <Button
          why={noTransfer ?? held}
          onClick={() => openPlan({ kind: 'transfer', shard: shard.id, ...(target ? { node: target } : {}) })}
        >
          {noTransfer === 'Nothing to transfer: no leader' ? noTransfer : 'Transfer leadership…'}
        </Button>
      )}
      <Menu
        label={`More for ${shard.id}`}
        button="More"
        items={[
          {
            label: 'Copy as text summary',
            icon: 'copy',
            onSelect: async () => {
              const isCopied = await copyText(shardText(shard, new Date().toISOString()))
              toast({
                message: isCopied ? 'Summary copied' : 'The browser did not allow copying',
                level: isCopied ? 'ok' : 'warn',
              })
            },
          },
          { label: 'Compare config', icon: 'columns', href: routes.shardConfig(shard.id) },
          { label: 'Open in playground', icon: 'playground', onSelect: () => openInPlayground(shard.id) },
          { label: 'Download diagnostics', icon: 'download', onSelect: download },
        ]}
      />
    </>
  )
}
