'use client'
/** Removes a node that is gone for good from the console, once nothing names it any more. */

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
import { common } from './copy.ts'
import * as copy from './shard-copy.ts'

/** Hidden while the node responds or was not polled yet. */
export function ForgetNode({ node }: { readonly node: NodeView }) {
  const why = useWhyNot('admin')
  const [isOpen, setOpen] = useState(false)
  const name = `${node.shard} / ${node.id}`
  const forget = useMutation({
    mutationFn: () =>
      call('DELETE /api/v1/shards/{shard}/nodes/{node}', { params: { shard: node.shard, node: node.id } }),
    onSuccess: () => {
      toast({ message: copy.forget.forgotten(name) })
      navigate(routes.shards())
    },
  })
  if (node.freshness !== 'gone' && node.error === null) return null
  return (
    <>
      <Button icon="trash" kind="danger" why={why} onClick={() => setOpen(true)}>
        {copy.forget.dialog(node.id)}
      </Button>
      <Dialog
        open={isOpen}
        title={copy.forget.title(name)}
        onClose={() => setOpen(false)}
        footer={
          <>
            <Button onClick={() => setOpen(false)}>{common.cancel}</Button>
            <Button kind="danger" busy={forget.isPending} onClick={() => forget.mutate()}>
              {copy.forget.confirm(node.id)}
            </Button>
          </>
        }
      >
        <p className="prose">
          {copy.forget.effect} <Age at={node.answeredAt} className="text-text" />.
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
