'use client'
import type { Me } from '@vacancy/shared/contract'
import { useState } from 'react'
import { call } from '../../lib/api.ts'
import { SignInButton, SubmitProblem, useSubmit } from './password-form.tsx'
import { PasswordInput } from './password-input.tsx'

/** For who has an API token and no name: the session may do what the token may, and ends with it. */
export function TokenForm({ onSignedIn }: { readonly onSignedIn: (me: Me) => void }) {
  const [token, setToken] = useState('')
  const { busy, error, waitSeconds, submit } = useSubmit(async () => {
    onSignedIn(await call('POST /api/v1/session/token', { body: { token: token.trim() } }))
  })
  const isWrong = error !== undefined && error.status === 401
  return (
    <form aria-label="Sign in with a token" onSubmit={submit} className="flex flex-col gap-4">
      <PasswordInput
        label="Console token"
        what="token"
        autoComplete="off"
        hint="An API token, as it was shown once. You may do here what it may; the session ends when it is revoked or expires."
        value={token}
        onChange={setToken}
        error={isWrong ? error.message : undefined}
      />
      <SubmitProblem error={isWrong ? undefined : error} waitSeconds={waitSeconds} />
      <SignInButton busy={busy} waitSeconds={waitSeconds} />
    </form>
  )
}
