'use client'
/** One shard: its state and leader, with tabs that have their own URLs. */

import type { ShardView } from '@vacancy/shared/contract'
import { type ReactNode, useState } from 'react'
import { call } from '../../lib/api.ts'
import { useFollowed } from '../../lib/followed-operations.ts'
import { count } from '../../lib/format.ts'
import { useLive } from '../../lib/live.ts'
import { isNodeSource } from '../../lib/missing.ts'
import { navigate } from '../../lib/navigate.ts'
import { ApiProblem } from '../../lib/problem.ts'
import { whyNoChange } from '../../lib/quorum.ts'
import { routes } from '../../lib/routes.ts'
import { serverNow } from '../../lib/server-time.ts'
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
import { LiveOperationStrip } from '../operations/operation-strip.tsx'
import { useOpenPlan } from '../operations/plan-host.tsx'
import { common } from './copy.ts'
import { NotFound } from './not-found.tsx'
import * as copy from './shard-copy.ts'
import { bestTarget, shardText, spareText, troubleOf, whyNoTransfer } from './shard-view.ts'

const EVENTS = 500

/** Downloads state, events and configuration of a shard as one file. The control plane masks secrets. */
function useDownloadDiagnostics(shard: ShardView): () => Promise<void> {
  return async () => {
    const params = { shard: shard.id }
    const [events, config] = await Promise.allSettled([
      call('GET /api/v1/shards/{shard}/events', { params, query: { limit: EVENTS } }),
      call('GET /api/v1/shards/{shard}/config', { params }),
    ])
    const at = new Date(serverNow()).toISOString()
    save(`vacancy-${shard.id}-${at.slice(0, 19).replaceAll(':', '')}.json`, {
      at,
      shard,
      events: readOf(events),
      config: readOf(config),
    })
    toast({ message: copy.shard.diagnosticsSaved(shard.id), level: 'ok' })
  }
}

/** A part that could not be read is noted in the file; the rest is saved. */
function readOf(result: PromiseSettledResult<unknown>): unknown {
  return result.status === 'fulfilled' ? result.value : { notRead: String(result.reason) }
}

function save(name: string, value: unknown): void {
  const url = URL.createObjectURL(new Blob([JSON.stringify(value, null, 2)], { type: 'application/json' }))
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  URL.revokeObjectURL(url)
}

type ShardTab = 'members' | 'segments' | 'stays' | 'snapshots' | 'events' | 'metrics' | 'config'

type ShardFrameProps = {
  readonly id: string
  readonly tab: ShardTab
  /** The tab's content, once the shard is known. */
  readonly children: (shard: ShardView) => ReactNode
}

/** Shared by all tabs of a shard. */
export function ShardFrame({ id, tab, children }: ShardFrameProps) {
  const query = useLive(`shard:${id}`)
  const shard = query.data
  const operation = useLastOperation(id, shard)
  // The table of members shows silent nodes itself.
  const missing = shard?.missing.filter((source) => tab !== 'members' || !isNodeSource(source)) ?? []
  if (!shard && query.error instanceof ApiProblem && /^(shard|node)-not-found$/.test(query.error.code)) {
    return <NotFound page={PAGES[tab]} what="shard" id={id} />
  }
  return (
    <Page
      id={PAGES[tab]}
      title={id}
      {...(tab === 'members' ? {} : { where: copy.shard.tabs[tab] })}
      ready={shard !== undefined}
      crumbs={[{ href: routes.shards(), label: common.shards }]}
      badge={
        shard && <StateBadge state={shard.state} level={shard.level} label={troubleOf(shard)?.title ?? shard.message} />
      }
      lead={shard && <Lead shard={shard} />}
      actions={shard && <Actions shard={shard} />}
      tabs={
        <PathTabs
          label={copy.shard.label(id)}
          tabs={[
            { href: routes.shard(id), label: copy.shard.tabs.members },
            { href: routes.segments(id), label: copy.shard.tabs.segments },
            { href: routes.stays(id), label: copy.shard.tabs.stays },
            { href: routes.shardSnapshots(id), label: copy.shard.tabs.snapshots },
            { href: routes.shardEvents(id), label: copy.shard.tabs.events },
            { href: routes.shardMetrics(id), label: copy.shard.tabs.metrics },
            { href: routes.shardConfig(id), label: copy.shard.tabs.config },
          ]}
        />
      }
    >
      {!shard && (query.error ? <ErrorState error={query.error} onRetry={query.refetch} /> : <Skeleton rows={8} />)}
      {missing.length > 0 && <PartialStrip missing={missing} of={shard?.nodes.length ?? 0} />}
      {operation && <LiveOperationStrip id={operation} />}
      {shard && children(shard)}
    </Page>
  )
}

const PAGES: Record<ShardTab, string> = {
  members: 'shard',
  segments: 'shard-segments',
  stays: 'shard-stays',
  snapshots: 'shard-snapshots',
  events: 'shard-events',
  metrics: 'shard-metrics',
  config: 'shard-config',
}

/** The running operation; after its end the one started here, or the last one that ran while the page was open. */
function useLastOperation(id: string, shard: ShardView | undefined): string | undefined {
  const started = useFollowed().startedOn[id]
  const running = shard?.operation ?? undefined
  const [seen, setSeen] = useState<{ started?: string | undefined; last?: string | undefined }>({})
  if (running !== undefined && running !== seen.last) setSeen({ started, last: running })
  else if (running === undefined && started !== seen.started) setSeen({ started, last: started })
  return seen.last
}

/** States whose badge names how many voters may fail. */
const SPARE_IN_BADGE: readonly ShardView['state'][] = ['healthy', 'degraded', 'degraded-last']

/** Facts that neither the badge nor the banner of a shard without leader states. */
function Lead({ shard }: { readonly shard: ShardView }) {
  const isInTrouble = troubleOf(shard) !== undefined
  return (
    <p className="flex flex-wrap gap-x-4 gap-y-1">
      <span>{common.zone(shard.zone)}</span>
      {shard.mode === 'clustered' && !isInTrouble && (
        <span>
          {shard.leader === null ? (
            copy.shard.noLeader
          ) : (
            <>
              {copy.shard.leader} <span className="font-mono">{shard.leader}</span>
              {shard.leaderSince && (
                <>
                  {' '}
                  {common.for} <Duration from={shard.leaderSince} />
                </>
              )}
            </>
          )}
        </span>
      )}
      {shard.spare !== null && shard.mode === 'clustered' && !isInTrouble && !SPARE_IN_BADGE.includes(shard.state) && (
        <span>{spareText(shard)}</span>
      )}
      {shard.term !== null && <span>{copy.shard.term(count(shard.term))}</span>}
      {!isInTrouble && (
        <span className="text-text-3">
          {copy.shard.inThisStateFor} <Duration from={shard.since} />
        </span>
      )}
    </p>
  )
}

function Actions({ shard }: { readonly shard: ShardView }) {
  const openPlan = useOpenPlan()
  const whyNot = useWhyNot('admin') ?? whyNoChange(shard)
  const download = useDownloadDiagnostics(shard)
  const noTransfer = whyNoTransfer(shard)
  const target = bestTarget(shard)
  return (
    <>
      {shard.mode !== 'standalone' && (
        <Button
          why={noTransfer ?? whyNot}
          onClick={() => openPlan({ kind: 'transfer', shard: shard.id, ...(target ? { node: target } : {}) })}
        >
          {noTransfer === copy.transfer.noLeader ? noTransfer : copy.shard.transfer}
        </Button>
      )}
      <Menu
        label={copy.shard.moreActions(shard.id)}
        button={copy.shard.more}
        items={[
          {
            label: copy.shard.copySummary,
            icon: 'copy',
            onSelect: async () => {
              const isCopied = await copyText(shardText(shard, new Date(serverNow()).toISOString()))
              toast({
                message: isCopied ? copy.shard.summaryCopied : copy.shard.copyBlocked,
                level: isCopied ? 'ok' : 'warn',
              })
            },
          },
          { label: copy.shard.compareConfig, icon: 'columns', href: routes.shardConfig(shard.id) },
          { label: copy.shard.openInPlayground, icon: 'playground', onSelect: () => openInPlayground(shard.id) },
          { label: copy.shard.downloadDiagnostics, icon: 'download', onSelect: download },
        ]}
      />
    </>
  )
}

/** Opens the playground with a request that finds something on the shard. Its code is loaded on demand. */
async function openInPlayground(shard: string): Promise<void> {
  const { encodeShare } = await import('../playground/share.ts')
  try {
    const { shard: target } = await call('GET /api/v1/playground', { query: { shard } })
    // An empty shard has no example: the form opens empty.
    const { command, fields } = target?.example ?? { command: 'SEARCHAVAIL' as const, fields: {} }
    navigate(routes.playground({ q: await encodeShare({ shard, node: '', command, fields }) }))
  } catch (error) {
    if (!(error instanceof ApiProblem)) throw error
    toast({ message: copy.shard.playgroundFailed(error.message), level: 'crit' })
  }
}
