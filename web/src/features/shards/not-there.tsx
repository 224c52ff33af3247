'use client'
/** An id that does not exist is a page as well: what was looked for, what is near to it, the way to the list. */

import { useLive } from '../../lib/live.ts'
import { routes } from '../../lib/routes.ts'
import { LinkButton } from '../../ui/button.tsx'
import { Link } from '../../ui/link.tsx'
import { Page } from '../../ui/page.tsx'
import { nearest } from '../shell/nearest.ts'

type NotThereProps = {
  readonly page: string
  readonly what: 'shard' | 'node'
  readonly id: string
  /** Of a node that does not exist. */
  readonly shard?: string
}

const NEAR_MAX = 5

export function NotThere({ page, what, id, shard }: NotThereProps) {
  const summary = useLive('summary')
  const shards = summary.data?.shards ?? []
  const known = what === 'shard' ? shards : (shards.find((other) => other.id === shard)?.slots ?? [])
  const near = nearest(
    id,
    known.map((other) => ('node' in other ? other.node : other.id)),
  ).slice(0, NEAR_MAX)
  return (
    <Page id={page} title={`No ${what} ${id}`} ready={summary.data !== undefined}>
      <p className="prose text-text-2">
        This control plane knows no {what} of this name{shard ? ` in shard ${shard}` : ''}. It may not have registered
        yet, or the address was mistyped.
      </p>
      {near.length > 0 && (
        <p className="flex flex-wrap items-center gap-3">
          Nearest:
          {near.map((other) => (
            <Link
              key={other}
              href={what === 'shard' ? routes.shard(other) : routes.node(shard ?? '', other)}
              className="font-mono"
            >
              {other}
            </Link>
          ))}
        </p>
      )}
      <p>
        <LinkButton href={routes.shards()}>Open all shards</LinkButton>
      </p>
    </Page>
  )
}
