'use client'
/** A codec list change that an admin carries out, with the progress that registry and nodes report. */
import { useQueryClient } from '@tanstack/react-query'
import type { CodecChange } from '@vacancy/shared/contract'
import { call } from '../../lib/api.ts'
import { useWhyNot } from '../../lib/session.ts'
import { Age } from '../../ui/age.tsx'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { Panel } from '../../ui/panel.tsx'
import { toast } from '../../ui/toast.tsx'
import { useRequest } from '../../ui/use-request.ts'
import { PlanView, progressOf } from './codec-change.tsx'
import * as copy from './copy.ts'

export function TrackedChange({ change }: { change: CodecChange }) {
  const why = useWhyNot('admin')
  const queries = useQueryClient()
  const close = useRequest(async () => {
    await call('DELETE /api/v1/registry/codec-change/{id}', { params: { id: change.id } })
    await queries.invalidateQueries({ queryKey: ['GET /api/v1/registry/codec-change'] })
    toast({ message: copy.tracked.closed })
  })
  return (
    <Panel
      title={copy.tracked.title}
      data={{ 'data-change': change.id, 'data-complete': String(change.complete) }}
      actions={
        <Button why={why} busy={close.isPending} onClick={() => close.mutate()}>
          {change.complete ? copy.tracked.close : copy.tracked.stop}
        </Button>
      }
    >
      <div className="flex flex-col gap-4">
        <p className="flex flex-wrap items-center gap-x-3 gap-y-1">
          <Badge level={change.complete ? 'ok' : 'info'}>{progressOf(change)}</Badge>
          <span className="text-text-2">
            {copy.tracked.since} <Age at={change.createdAt} /> {copy.tracked.by(change.by, change.reason)}
          </span>
        </p>
        <PlanView plan={change.plan} />
      </div>
    </Panel>
  )
}
