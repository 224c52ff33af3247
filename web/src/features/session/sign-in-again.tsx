'use client'
import type { Me } from '@vacancy/shared/contract'
import { useEffect } from 'react'
import { call, pathOf } from '../../lib/api.ts'
import { routes } from '../../lib/routes.ts'
import { announce } from '../../ui/announce.ts'
import { Button, LinkButton } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import * as copy from './copy.ts'
import { PasswordForm } from './password-form.tsx'
import { SubmitProblem, useSubmit } from './submit.tsx'
import { TokenForm } from './token-form.tsx'

type SignInAgainProps = { readonly me: Me; readonly onSignedIn: (me: Me) => void }

/** A dialog over the page, which keeps its state and typed text. */
export default function SignInAgain({ me, onSignedIn }: SignInAgainProps) {
  useEffect(() => announce(copy.ended.announcement, 'assertive'), [])
  return (
    <Dialog open keep title={copy.ended.title} onClose={() => location.assign(routes.signIn())}>
      <p className="pb-4 text-text-2">{copy.ended.hint}</p>
      <OwnWay me={me} onSignedIn={onSignedIn} />
      <SignedInElsewhere onSignedIn={onSignedIn} />
    </Dialog>
  )
}

/** As the session began. */
function OwnWay({ me, onSignedIn }: SignInAgainProps) {
  if (me.signedInBy === 'token') return <TokenForm onSignedIn={onSignedIn} />
  if (!me.person.singleSignOn) return <PasswordForm name={me.person.name} onSignedIn={onSignedIn} />
  return (
    <LinkButton kind="primary" href={pathOf('GET /api/v1/session/oidc')} newTab>
      {copy.ended.singleSignOn}
    </LinkButton>
  )
}

/** After a sign-in by link in another tab, this tab is signed in as well. */
function SignedInElsewhere({ onSignedIn }: Pick<SignInAgainProps, 'onSignedIn'>) {
  const { busy, error, submit } = useSubmit(async () => onSignedIn(await call('GET /api/v1/me')))
  return (
    <form aria-label={copy.ended.elsewhere} onSubmit={submit} className="flex flex-col gap-2 pt-4">
      <p className="text-small text-text-3">{copy.ended.elsewhereHint}</p>
      <SubmitProblem error={error} waitSeconds={0} />
      <Button type="submit" busy={busy}>
        {copy.ended.elsewhereSubmit}
      </Button>
    </form>
  )
}
