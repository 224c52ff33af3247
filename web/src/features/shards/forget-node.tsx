'use client'
/** Lets go a node that is away for good, once nobody names it any more. */

import { useMutation } from '@tanstack/react-query'
import type { NodeView } from '@vacancy/shared/contract'
import { useState } from 'react'
import { call } from '../../lib/api.ts'
import { navigate } from '../../lib/navigate.ts'
import { ApiProblem } from '../../lib/problem.ts'
import { routes } from '../../lib/routes.ts'
import { useWhyNot } from '../../lib/session.ts'
import { Age } from '../../ui/age.tsx'
import { Button } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { toast } from '../../ui/toast.tsx'

/** Nothing while the node answers, or was not asked yet. */
export function ForgetNode({ node }: { readonly node: NodeView }) {
  const why = useWhyNot('admin')
  const [isOpen, setOpen] = useState(false)
  const name = `${node.shard} / ${node.id}`
  const forget = useMutation({
    mutationFn: () =>
      call('DELETE /api/v1/shards/{shard}/nodes/{node}', { params: { shard: node.shard, node: node.id } }),
    onSuccess: () => {
      toast({ message: `${name} is forgotten` })
      navigate(routes.shards())
    },
  })
  if (node.freshness !== 'gone' && node.error === null) return null
  return (
    <>
      <Button icon="trash" kind="danger" why={why} onClick={() => setOpen(true)}>
        Forget {node.id}…
      </Button>
      <Dialog
        open={isOpen}
        title={`Forget ${name}`}
        onClose={() => setOpen(false)}
        footer={
          <>
            <Button onClick={() => setOpen(false)}>Cancel</Button>
            <Button kind="danger" busy={forget.isPending} onClick={() => forget.mutate()}>
              Forget {node.id}
            </Button>
          </>
        }
      >
        <p className="prose">
          It is not shown any more, until it registers again. Nothing is changed on the node or in its shard. Last
          answer: <Age at={node.answeredAt} className="text-text" />.
        </p>
        {forget.error && (
          <p role="alert" className="pt-2 text-crit">
            {forget.error.message} {forget.error instanceof ApiProblem && forget.error.hint}
          </p>
        )}
      </Dialog>
    </>
  )
}
