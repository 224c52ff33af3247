'use client'
/** The operations of the tray, one line each. Announces start, end and "longer than usual" once in the polite live region. */

import type { Operation } from '@vacancy/shared/contract'
import { useEffect, useRef } from 'react'
import { dismissOperation, openTray } from '../../lib/followed-operations.ts'
import { useLive } from '../../lib/live.ts'
import { routes } from '../../lib/routes.ts'
import { announce } from '../../ui/announce.ts'
import { IconButton } from '../../ui/icon-button.tsx'
import { Link } from '../../ui/link.tsx'
import { OperationStateBadge } from './operation-state.tsx'
import { announcementOf, currentStep, isRunning } from './operation-view.ts'
import * as copy from './tray-copy.ts'

type TrayListProps = { readonly ids: readonly string[]; readonly isShown: boolean }

export default function TrayList({ ids, isShown }: TrayListProps) {
  return (
    <>
      {isShown && (
        <header className="flex items-center justify-between border-line border-b px-3 py-1">
          <h2 className="text-body text-text-2">{copy.tray.title}</h2>
          <IconButton icon="cross" label={copy.tray.hide} kind="quiet" onClick={() => openTray(false)} />
        </header>
      )}
      {/* Rows stay mounted while hidden, to announce the outcome of their operation. */}
      <ul hidden={!isShown}>
        {ids.map((id) => (
          <TrayRow key={id} id={id} />
        ))}
      </ul>
    </>
  )
}

function TrayRow({ id }: { readonly id: string }) {
  const { data: operation } = useLive(`op:${id}`)
  const before = useRef<Operation | undefined>(undefined)
  useEffect(() => {
    if (!operation) return
    const text = announcementOf(before.current, operation)
    before.current = operation
    if (text !== '') announce(text, 'polite')
  }, [operation])
  if (!operation) return null
  return (
    <li data-operation={id} className="flex items-start gap-2 border-line border-b px-3 py-2 last:border-b-0">
      <div className="grid min-w-0 flex-1 gap-0.5">
        <Link href={routes.operation(id)} onClick={() => !isRunning(operation) && dismissOperation(id)}>
          {operation.title}
        </Link>
        <p className="break-words text-small text-text-2">{currentStep(operation)}</p>
      </div>
      <OperationStateBadge operation={operation} />
      {!isRunning(operation) && (
        <IconButton
          icon="cross"
          label={copy.tray.dismiss(operation.title)}
          kind="quiet"
          onClick={() => dismissOperation(id)}
        />
      )}
    </li>
  )
}
