'use client'
/** Confirms or releases a stay, after its rooms were shown again. */
import type { StayRecord } from '@vacancy/shared/contract'
import { ConfirmDialog } from '../../ui/confirm-dialog.tsx'
import { toast } from '../../ui/toast.tsx'
import * as copy from './copy.ts'
import { useChangeStay } from './queries.ts'
import { Countdown, nightsText } from './stay-parts.tsx'

type ChangeProps = {
  readonly kind: 'confirm' | 'release'
  readonly stay: StayRecord
  readonly onClose: () => void
}

export function ChangeDialog({ kind, stay: shown, onClose }: ChangeProps) {
  const { id, shard, state, deadline, lines } = shown
  const change = useChangeStay(shown)
  const isConfirm = kind === 'confirm'
  return (
    <ConfirmDialog
      title={isConfirm ? copy.change.confirmTitle(id, shard) : copy.change.releaseTitle(id, shard)}
      action={isConfirm ? copy.change.confirmAction(id) : copy.change.releaseAction(id)}
      level={isConfirm ? 2 : 3}
      name={id}
      onClose={onClose}
      run={async (reason) => {
        await change(kind, reason)
        toast({ message: isConfirm ? copy.change.confirmDone(id) : copy.change.releaseDone(id), level: 'ok' })
      }}
    >
      <p>
        {isConfirm ? copy.change.confirmText : state === 'booked' ? copy.change.releaseBooked : copy.change.releaseHeld}
      </p>
      <ul aria-label={copy.change.lines} className="flex flex-col gap-1 rounded-control bg-sunken px-3 py-2">
        {lines.map((line, n) => (
          <li key={`${n} ${line.property}`} className="break-words">
            {`${copy.night.roomsOf(line.rooms)}, ${line.property}, ${line.room}, ${nightsText(line)}`}
          </li>
        ))}
        {state === 'held' && (
          <li className="text-text-2">
            {copy.record.deadline} <Countdown to={deadline} />
          </li>
        )}
      </ul>
      <p className="text-small text-text-2">{copy.change.notNotified}</p>
    </ConfirmDialog>
  )
}
