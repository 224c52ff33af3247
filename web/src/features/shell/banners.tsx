'use client'
import type { AttentionItem } from '@vacancy/shared/contract'
import { Suspense } from 'react'
import { usePath } from '../../lib/address.tsx'
import * as libCopy from '../../lib/copy.ts'
import { type LiveValue, resumeLive, retryLive, useLive, useLiveStatus } from '../../lib/live.ts'
import { isNodeSource } from '../../lib/missing.ts'
import { routes } from '../../lib/routes.ts'
import { may, useMe } from '../../lib/session.ts'
import { Age } from '../../ui/age.tsx'
import { Banner } from '../../ui/banner.tsx'
import { Button } from '../../ui/button.tsx'
import { late } from '../../ui/late.tsx'
import * as copy from './copy.ts'

// Loaded when a source is silent.
const MissingBanner = late(async () => (await import('./missing-banner.tsx')).default)

type Problems = Pick<LiveValue<'summary'>, 'missing'> & { nodes: number; worst: AttentionItem | undefined }

const NONE_MISSING: Problems = { missing: [], nodes: 0, worst: undefined }
const problemsOf = ({ missing, counts, attention }: LiveValue<'summary'>): Problems => ({
  missing,
  nodes: counts.nodes,
  worst: attention.find(({ asideUntil, level }) => asideUntil === null && level === 'crit'),
})

/** Pages that show silent nodes in their place: there, a banner would repeat it. */
const SHOWS_NODES = [routes.overview(), routes.shards(), routes.topology()]
const showsNodes = (path: string) => SHOWS_NODES.includes(path) || path.startsWith(`${routes.shards()}/`)

/** Conditions of the whole page: disconnected, paused, read-only role, sources without response. */
export function Banners() {
  const me = useMe()
  const path = usePath()
  const { link, paused } = useLiveStatus()
  const { missing: all, nodes, worst } = useLive('summary', problemsOf).data ?? NONE_MISSING
  const missing = showsNodes(path) ? all.filter((source) => !isNodeSource(source) && isOther(source)) : all
  const isReader = !may(me, 'operator')
  if (link.state !== 'offline' && !paused && !isReader && missing.length === 0) return null
  return (
    <div data-no-print="" className="flex flex-col gap-2 px-4 pt-3 md:px-6">
      {link.state === 'offline' && (
        <Banner
          level="crit"
          title={libCopy.session.disconnected}
          actions={
            <Button icon="refresh" onClick={retryLive}>
              {copy.banners.reconnect}
            </Button>
          }
        >
          {copy.banners.lastKnown} <Age at={new Date(link.since).toISOString()} className="text-text" />.{' '}
          {copy.banners.disconnected}
        </Banner>
      )}
      {paused && link.state !== 'offline' && (
        <Banner
          level="info"
          title={copy.banners.paused}
          actions={
            <Button icon="play" onClick={resumeLive}>
              {copy.banners.resume}
            </Button>
          }
        >
          {copy.banners.pausedHint}
        </Banner>
      )}
      {missing.length > 0 && (
        <Suspense>
          <MissingBanner missing={missing} nodes={nodes} worst={showsNodes(path) ? undefined : worst} />
        </Suspense>
      )}
      {isReader && (
        <Banner level="info" title={copy.banners.readOnly}>
          {copy.banners.readOnlyHint}
        </Banner>
      )}
    </div>
  )
}

/** Not a path of a node, which the page of its shard names. */
const isOther = ({ source }: LiveValue<'summary'>['missing'][number]) => !/^[^\s/]+\/[^\s/]+ \//.test(source)
