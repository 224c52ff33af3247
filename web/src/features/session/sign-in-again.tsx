'use client'
import type { Me } from '@vacancy/shared/contract'
import { useEffect } from 'react'
import { call } from '../../lib/api.ts'
import { routes } from '../../lib/routes.ts'
import { announce } from '../../ui/announce.ts'
import { Button } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { PasswordForm, SubmitProblem, useSubmit } from './password-form.tsx'
import { TokenForm } from './token-form.tsx'

type SignInAgainProps = { readonly me: Me; readonly onSignedIn: (me: Me) => void }

/** Over the page, which stays as it was with all that was typed. */
export default function SignInAgain({ me, onSignedIn }: SignInAgainProps) {
  useEffect(() => announce('Your session has ended. Sign in again to go on.', 'assertive'), [])
  return (
    <Dialog open keep title="Your session has ended" onClose={() => location.assign(routes.signIn())}>
      <p className="pb-4 text-text-2">Sign in to go on where you were. The page and what you typed are kept.</p>
      {me.signedInBy === 'token' ? (
        <TokenForm onSignedIn={onSignedIn} />
      ) : (
        <PasswordForm name={me.person.name} onSignedIn={onSignedIn} />
      )}
      <SignedInElsewhere onSignedIn={onSignedIn} />
    </Dialog>
  )
}

/** For who comes by links: one opened in another tab signs in this one as well. */
function SignedInElsewhere({ onSignedIn }: Pick<SignInAgainProps, 'onSignedIn'>) {
  const { busy, error, submit } = useSubmit(async () => onSignedIn(await call('GET /api/v1/me')))
  return (
    <form aria-label="Signed in elsewhere" onSubmit={submit} className="flex flex-col gap-2 pt-4">
      <p className="text-small text-text-3">With a sign-in link: open it in another tab, then go on here.</p>
      <SubmitProblem error={error} waitSeconds={0} />
      <Button type="submit" busy={busy}>
        I signed in in another tab
      </Button>
    </form>
  )
}
