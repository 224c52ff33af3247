'use client'
import { type LiveValue, resumeLive, retryLive, useLive, useLiveStatus } from '../../lib/live.ts'
import { missingText } from '../../lib/missing.ts'
import { may, useMe } from '../../lib/session.ts'
import { Age } from '../../ui/age.tsx'
import { Banner } from '../../ui/banner.tsx'
import { Button } from '../../ui/button.tsx'

const NAMED_AT_MOST = 3

const NOBODY_KNOWN = { missing: [], nodes: 0 }
const silenceOf = ({ missing, counts }: LiveValue<'summary'>) => ({ missing, nodes: counts.nodes })

/** What holds for the whole page: a cut connection, a pause, a role that only reads, nodes that are silent. */
export function Banners() {
  const me = useMe()
  const { link, paused } = useLiveStatus()
  const { missing, nodes } = useLive('summary', silenceOf).data ?? NOBODY_KNOWN
  const isReader = !may(me, 'operator')
  if (link.state !== 'offline' && !paused && !isReader && missing.length === 0) return null
  return (
    <div data-no-print="" className="flex flex-col gap-2 px-4 pt-3 md:px-6">
      {link.state === 'offline' && (
        <Banner
          level="crit"
          title="Disconnected from the control plane"
          actions={
            <Button icon="refresh" onClick={retryLive}>
              Try now
            </Button>
          }
        >
          You see the last that was told. Nothing can be changed until it is back. Cut{' '}
          <Age at={new Date(link.since).toISOString()} className="text-text" />.
        </Banner>
      )}
      {paused && link.state !== 'offline' && (
        <Banner
          level="info"
          title="Paused"
          actions={
            <Button icon="play" onClick={resumeLive}>
              Resume
            </Button>
          }
        >
          Values stand still here and are collected on.
        </Banner>
      )}
      {missing.length > 0 && (
        <Banner level="warn" title={missingText(missing, nodes)}>
          {missing
            .slice(0, NAMED_AT_MOST)
            .map(({ source, message }) => `${source} (${message})`)
            .join(', ')}
          {missing.length > NAMED_AT_MOST ? ', …' : '.'} Their values are missing below.
        </Banner>
      )}
      {isReader && (
        <Banner level="info" title="Read only">
          You are signed in as a viewer: everything can be seen, nothing changed.
        </Banner>
      )}
    </div>
  )
}
