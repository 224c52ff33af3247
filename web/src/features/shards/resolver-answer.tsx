'use client'
/** What the resolver says of where a node is, asked when somebody wants to know, beside where it is seen. */

import { useMutation } from '@tanstack/react-query'
import type { NodeView, RouteAnswer } from '@vacancy/shared/contract'
import { type ApiProblem, call } from '../../lib/api.ts'
import { duration } from '../../lib/format.ts'
import { useWhyNot } from '../../lib/session.ts'
import { Age } from '../../ui/age.tsx'
import { Button } from '../../ui/button.tsx'

type Answer = RouteAnswer<'POST /api/v1/registry/resolve'> & { readonly at: string }

export function ResolverAnswer({ node: { shard, id } }: { readonly node: NodeView }) {
  const why = useWhyNot('operator')
  const ask = useMutation<Answer, ApiProblem>({
    mutationFn: async () => ({
      ...(await call('POST /api/v1/registry/resolve', { body: { kind: 'node', shard, id } })),
      at: new Date().toISOString(),
    }),
  })
  const { data, error } = ask
  return (
    <span className="flex flex-wrap items-center gap-x-2 gap-y-1">
      <span role="status" className="min-w-0 break-words">
        {error ? (
          <span className="text-crit">{error.message}</span>
        ) : (
          data && (
            <>
              <span className="font-mono text-table">{data.address ?? saysNot(data)}</span>, in{' '}
              {duration(data.milliseconds)}, <Age at={data.at} />
            </>
          )
        )}
      </span>
      <Button kind="quiet" why={why} busy={ask.isPending} onClick={() => ask.mutate()} className="!h-7">
        {data || error ? 'Ask again' : 'Ask the resolver'}
      </Button>
    </span>
  )
}

function saysNot({ status, answer, error }: Answer): string {
  return error || `${status ?? 'no answer'} ${answer}`.trim()
}
