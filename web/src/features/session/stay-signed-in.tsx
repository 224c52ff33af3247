'use client'
import { useEffect } from 'react'
import { call } from '../../lib/api.ts'
import { announce } from '../../ui/announce.ts'
import { Button } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'

type StaySignedInProps = { readonly leftMs: number; readonly onStay: () => void }

export default function StaySignedIn({ leftMs, onStay }: StaySignedInProps) {
  useEffect(() => announce('Your session ends in two minutes.', 'assertive'), [])
  // Any question keeps the session; a refused one says by itself that it is over.
  const stay = () => call('GET /api/v1/me').then(onStay, onStay)
  return (
    <Dialog
      open
      keep
      title="Your session ends soon"
      onClose={stay}
      footer={
        <Button kind="primary" onClick={stay}>
          Stay signed in
        </Button>
      }
    >
      <p>Nothing was asked for a long time. In {Math.max(1, Math.round(leftMs / 1_000))} s you will be signed out.</p>
    </Dialog>
  )
}
