'use client'
/** One operation, running or ended. */

import { useEffect } from 'react'
import { dismissOperation } from '../../lib/followed-operations.ts'
import { useLive } from '../../lib/live.ts'
import { ApiProblem } from '../../lib/problem.ts'
import { routes } from '../../lib/routes.ts'
import { LinkButton } from '../../ui/button.tsx'
import { Page } from '../../ui/page.tsx'
import { ErrorState, Skeleton } from '../../ui/panel.tsx'
import * as copy from './copy.ts'
import { OperationStateBadge } from './operation-state.tsx'
import { OperationStrip } from './operation-strip.tsx'
import { isRunning } from './operation-view.ts'

export function OperationPage({ id }: { readonly id: string }) {
  const query = useLive(`op:${id}`)
  const operation = query.data
  const hasEnded = operation !== undefined && !isRunning(operation)
  useEffect(() => {
    // The outcome is shown here, so the tray need not show it.
    if (hasEnded) dismissOperation(id)
  }, [hasEnded, id])
  const isNotFound = !operation && query.error instanceof ApiProblem && query.error.status === 404
  return (
    <Page
      id="operation"
      title={operation?.title ?? (isNotFound ? copy.operation.unknownTitle(id) : copy.operation.fallbackTitle)}
      where={copy.list.title}
      ready={operation !== undefined || isNotFound}
      crumbs={[{ href: routes.operations(), label: copy.list.title }]}
      badge={operation && <OperationStateBadge operation={operation} />}
      actions={
        operation && (
          <LinkButton href={routes.shard(operation.shard)}>{copy.operation.openShard(operation.shard)}</LinkButton>
        )
      }
    >
      {operation && <OperationStrip operation={operation} isPage />}
      {isNotFound && (
        <>
          <p className="prose text-text-2">{copy.operation.unknown}</p>
          <p>
            <LinkButton href={routes.operations()}>{copy.operation.openOperations}</LinkButton>
          </p>
        </>
      )}
      {!operation &&
        !isNotFound &&
        (query.error ? <ErrorState error={query.error} onRetry={query.refetch} /> : <Skeleton rows={8} />)}
    </Page>
  )
}
