'use client'
import { useEffect } from 'react'
import { call } from '../../lib/api.ts'
import { announce } from '../../ui/announce.ts'
import { Button } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import * as copy from './copy.ts'

type StaySignedInProps = { readonly leftMs: number; readonly onStay: () => void }

export default function StaySignedIn({ leftMs, onStay }: StaySignedInProps) {
  useEffect(() => announce(copy.ending.announcement, 'assertive'), [])
  // Any request extends the session; an error response ends it.
  const stay = () => call('GET /api/v1/me').then(onStay, onStay)
  return (
    <Dialog
      open
      keep
      title={copy.ending.title}
      onClose={stay}
      footer={
        <Button kind="primary" onClick={stay}>
          {copy.ending.stay}
        </Button>
      }
    >
      <p>{copy.ending.text(Math.max(1, Math.round(leftMs / 1_000)))}</p>
    </Dialog>
  )
}
