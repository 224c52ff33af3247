'use client'
/** The address of a node by the resolver, queried on request. */

import { useMutation } from '@tanstack/react-query'
import type { NodeView, RouteAnswer } from '@vacancy/shared/contract'
import clsx from 'clsx'
import { type ApiProblem, call } from '../../lib/api.ts'
import { duration } from '../../lib/format.ts'
import { serverNow } from '../../lib/server-time.ts'
import { useWhyNot } from '../../lib/session.ts'
import { Age } from '../../ui/age.tsx'
import { Button } from '../../ui/button.tsx'
import * as copy from './copy.ts'

type Answer = RouteAnswer<'POST /api/v1/registry/resolve'> & { readonly at: string }

export function ResolverAnswer({ node: { shard, id } }: { readonly node: NodeView }) {
  const why = useWhyNot('operator')
  const lookup = useMutation<Answer, ApiProblem>({
    mutationFn: async () => ({
      ...(await call('POST /api/v1/registry/resolve', { body: { kind: 'node', shard, id } })),
      at: new Date(serverNow()).toISOString(),
    }),
  })
  const { data, error } = lookup
  return (
    <span className="flex flex-wrap items-center gap-x-2 gap-y-1">
      <span role="status" className="min-w-0 break-words">
        {error ? (
          <span className="text-crit">{error.message}</span>
        ) : (
          data && (
            <>
              <span className="font-mono text-table">{data.address ?? failureText(data)}</span>
              {copy.resolver.took(duration(data.milliseconds))} <Age at={data.at} />
            </>
          )
        )}
      </span>
      <Button
        kind="quiet"
        why={why}
        busy={lookup.isPending}
        onClick={() => lookup.mutate()}
        className={clsx('!h-7', !data && !error && '-ms-3')}
      >
        {data || error ? copy.resolver.queryAgain : copy.resolver.query}
      </Button>
    </span>
  )
}

function failureText({ status, answer, error }: Answer): string {
  return error || `${status ?? copy.resolver.noResponse} ${answer}`.trim()
}
