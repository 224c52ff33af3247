'use client'
/** One operation, while it runs and for good after. */

import { useEffect } from 'react'
import { useLive } from '../../lib/live.ts'
import { ApiProblem } from '../../lib/problem.ts'
import { routes } from '../../lib/routes.ts'
import { LinkButton } from '../../ui/button.tsx'
import { Page } from '../../ui/page.tsx'
import { ErrorState, Skeleton } from '../../ui/panel.tsx'
import { dismissOperation } from './followed.ts'
import { OperationStrip } from './operation-strip.tsx'
import { isRunning } from './operation-view.ts'

export function OperationPage({ id }: { readonly id: string }) {
  const query = useLive(`op:${id}`)
  const operation = query.data
  const hasEnded = operation !== undefined && !isRunning(operation)
  useEffect(() => {
    // Its end is seen here: the tray need not show it any more.
    if (hasEnded) dismissOperation(id)
  }, [hasEnded, id])
  const isNotThere = !operation && query.error instanceof ApiProblem && query.error.status === 404
  return (
    <Page
      id="operation"
      title={operation?.title ?? (isNotThere ? `No operation ${id}` : 'Operation')}
      where="Operations"
      ready={operation !== undefined || isNotThere}
      crumbs={[{ href: routes.operations(), label: 'Operations' }]}
      actions={operation && <LinkButton href={routes.shard(operation.shard)}>Open {operation.shard}</LinkButton>}
    >
      {operation && <OperationStrip operation={operation} isPage />}
      {isNotThere && (
        <>
          <p className="prose text-text-2">This control plane has started no operation of this id.</p>
          <p>
            <LinkButton href={routes.operations()}>Open all operations</LinkButton>
          </p>
        </>
      )}
      {!operation &&
        !isNotThere &&
        (query.error ? <ErrorState error={query.error} onRetry={query.refetch} /> : <Skeleton rows={8} />)}
    </Page>
  )
}
