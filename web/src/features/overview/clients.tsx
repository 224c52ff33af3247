'use client'
/** What clients see, as the control plane measures it: one line, with each way in behind it. Never green before it was measured. */
import type { ClientsSummary } from '@vacancy/shared/contract'
import { useUrlChoice } from '../../lib/url.ts'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { late } from '../../ui/late.tsx'
import * as copy from './clients-copy.ts'
import { verdictOf } from './clients-verdict.ts'

const ClientWays = late(async () => (await import('./client-ways.tsx')).ClientWays)

export function Clients({ clients }: { readonly clients: ClientsSummary }) {
  const [shown, show] = useUrlChoice('clients', ['', 'ways'])
  const { level, badge } = verdictOf(clients)
  const isOff = clients.state === 'off'
  return (
    <section
      aria-label={copy.clients.title}
      data-clients={clients.state}
      className="rounded-panel border border-line bg-surface"
    >
      <div className="flex flex-wrap items-center gap-x-4 gap-y-1 px-4 py-2">
        <h2 className="font-semibold">{copy.clients.title}</h2>
        <Badge level={level}>{badge}</Badge>
        {clients.state === 'measured' ? (
          <>
            <span>{copy.clients.shards(clients)}</span>
            <span className="num text-text-2">{copy.clients.latency('Search', clients.search)}</span>
            <span className="num text-text-2">{copy.clients.latency('Hold', clients.hold)}</span>
          </>
        ) : (
          <span className="text-text-2">
            {isOff ? copy.clients.offText : copy.clients.waitingText(clients.intervalSeconds)}
          </span>
        )}
        {!isOff && (
          <Button
            kind="quiet"
            aria-expanded={shown === 'ways'}
            className="ms-auto"
            onClick={() => show(shown === 'ways' ? '' : 'ways')}
          >
            {shown === 'ways' ? copy.clients.hide : copy.clients.show}
          </Button>
        )}
      </div>
      {shown === 'ways' && !isOff && <ClientWays />}
    </section>
  )
}
