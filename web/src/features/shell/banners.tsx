'use client'
import * as libCopy from '../../lib/copy.ts'
import { type LiveValue, resumeLive, retryLive, useLive, useLiveStatus } from '../../lib/live.ts'
import { missingText } from '../../lib/missing.ts'
import { may, useMe } from '../../lib/session.ts'
import { Age } from '../../ui/age.tsx'
import { Banner } from '../../ui/banner.tsx'
import { Button } from '../../ui/button.tsx'
import * as copy from './copy.ts'

const NAMED_MAX = 3

const NONE_MISSING = { missing: [], nodes: 0 }
const missingOf = ({ missing, counts }: LiveValue<'summary'>) => ({ missing, nodes: counts.nodes })

/** Conditions of the whole page: disconnected, paused, read-only role, nodes without response. */
export function Banners() {
  const me = useMe()
  const { link, paused } = useLiveStatus()
  const { missing, nodes } = useLive('summary', missingOf).data ?? NONE_MISSING
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
        <Banner level="warn" title={missingText(missing, nodes)}>
          {missing
            .slice(0, NAMED_MAX)
            .map(({ source, message }) => `${source} (${message})`)
            .join(', ')}
          {missing.length > NAMED_MAX ? ', …' : '.'}
          {copy.banners.missing}
        </Banner>
      )}
      {isReader && (
        <Banner level="info" title={copy.banners.readOnly}>
          {copy.banners.readOnlyHint}
        </Banner>
      )}
    </div>
  )
}
