'use client'
import type { ShardImpact } from '@vacancy/shared/contract'
import { routes } from '../../lib/routes.ts'
import { Banner } from '../../ui/banner.tsx'
import { Link } from '../../ui/link.tsx'
import * as copy from './copy.ts'

const SHOWN_MAX = 10

/** The shards that stop when a zone or machine goes as a whole; nothing when none does. */
export function Stops({ scope, stops }: { readonly scope: string; readonly stops: readonly ShardImpact[] }) {
  if (stops.length === 0) return null
  return (
    <Banner level="crit" title={copy.plan.stops(scope)}>
      <ul className="grid gap-0.5">
        {stops.slice(0, SHOWN_MAX).map((stop) => (
          <li key={stop.shard} data-stops={stop.shard}>
            <Link href={routes.shard(stop.shard)} className="inline-flex min-h-6 items-center">
              {copy.plan.stop(stop)}
            </Link>
          </li>
        ))}
        {stops.length > SHOWN_MAX && <li>{copy.plan.moreStops(stops.length - SHOWN_MAX)}</li>}
      </ul>
    </Banner>
  )
}
