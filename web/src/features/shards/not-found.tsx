'use client'
/** The page of an unknown shard or node: the id, similar names, and a link to the list. */

import { useLive } from '../../lib/live.ts'
import { nearest } from '../../lib/nearest.ts'
import { routes } from '../../lib/routes.ts'
import { LinkButton } from '../../ui/button.tsx'
import { Link } from '../../ui/link.tsx'
import { Page } from '../../ui/page.tsx'
import * as copy from './copy.ts'

type NotFoundProps = {
  readonly page: string
  readonly what: 'shard' | 'node'
  readonly id: string
  /** Shard of the unknown node. */
  readonly shard?: string
}

const NEAR_MAX = 5

export function NotFound({ page, what, id, shard }: NotFoundProps) {
  const summary = useLive('summary')
  const shards = summary.data?.shards ?? []
  const known = what === 'shard' ? shards : (shards.find((other) => other.id === shard)?.slots ?? [])
  const near = nearest(
    id,
    known.map((other) => ('node' in other ? other.node : other.id)),
  ).slice(0, NEAR_MAX)
  return (
    <Page id={page} title={copy.notFound.title(what, id)} ready={summary.data !== undefined}>
      <p className="prose text-text-2">{copy.notFound.text(what, shard)}</p>
      {near.length > 0 && (
        <p className="flex flex-wrap items-center gap-3">
          {copy.notFound.similar}
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
        <LinkButton href={routes.shards()}>{copy.notFound.openShards}</LinkButton>
      </p>
    </Page>
  )
}
