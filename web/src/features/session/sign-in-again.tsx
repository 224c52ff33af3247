'use client'
import type { Me } from '@vacancy/shared/contract'
import { useEffect } from 'react'
import { routes } from '../../lib/routes.ts'
import { announce } from '../../ui/announce.ts'
import { Dialog } from '../../ui/dialog.tsx'
import { PasswordForm } from './password-form.tsx'

type SignInAgainProps = { readonly me: Me; readonly onSignedIn: (me: Me) => void }

/** Over the page, which stays as it was with all that was typed. */
export default function SignInAgain({ me, onSignedIn }: SignInAgainProps) {
  useEffect(() => announce('Your session has ended. Sign in again to go on.', 'assertive'), [])
  return (
    <Dialog open keep title="Your session has ended" onClose={() => location.assign(routes.signIn())}>
      <p className="pb-4 text-text-2">Sign in to go on where you were. The page and what you typed are kept.</p>
      <PasswordForm name={me.person.name} onSignedIn={onSignedIn} />
    </Dialog>
  )
}
