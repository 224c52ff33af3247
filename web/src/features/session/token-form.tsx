'use client'
import type { Me } from '@vacancy/shared/contract'
import { useState } from 'react'
import { call } from '../../lib/api.ts'
import * as copy from './copy.ts'
import { SignInButton } from './password-form.tsx'
import { PasswordInput } from './password-input.tsx'
import { SubmitProblem, useSubmit } from './submit.tsx'

/** Sign-in with an API token: the session has its permissions and ends with it. */
export function TokenForm({ onSignedIn }: { readonly onSignedIn: (me: Me) => void }) {
  const [token, setToken] = useState('')
  const { busy, error, waitSeconds, submit } = useSubmit(async () => {
    onSignedIn(await call('POST /api/v1/session/token', { body: { token: token.trim() } }))
  })
  const isWrong = error !== undefined && error.status === 401
  return (
    <form aria-label={copy.signIn.tokenForm} onSubmit={submit} className="flex flex-col gap-4">
      <PasswordInput
        label={copy.signIn.token}
        what={copy.signIn.tokenName}
        autoComplete="off"
        hint={copy.signIn.tokenHint}
        value={token}
        onChange={setToken}
        error={isWrong ? error.message : undefined}
      />
      <SubmitProblem error={isWrong ? undefined : error} waitSeconds={waitSeconds} />
      <SignInButton busy={busy} waitSeconds={waitSeconds} />
    </form>
  )
}
