'use client'
import type { Me } from '@vacancy/shared/contract'
import { useState } from 'react'
import { call } from '../../lib/api.ts'
import { Button } from '../../ui/button.tsx'
import { Field, Input } from '../../ui/field.tsx'
import * as copy from './copy.ts'
import { PasswordInput } from './password-input.tsx'
import { SubmitProblem, useSubmit } from './submit.tsx'

type PasswordFormProps = {
  /** The known name; the field is then read-only. */
  readonly name?: string
  readonly onSignedIn: (me: Me) => void
}

export function PasswordForm({ name: known = '', onSignedIn }: PasswordFormProps) {
  const [name, setName] = useState(known)
  const [password, setPassword] = useState('')
  const { busy, error, waitSeconds, submit } = useSubmit(async () => {
    onSignedIn(await call('POST /api/v1/session', { body: { name: name.trim(), password } }))
  })
  const isWrong = error !== undefined && error.status === 401
  return (
    <form aria-label={copy.signIn.title} onSubmit={submit} className="flex flex-col gap-4">
      <Field label={copy.signIn.name}>
        {(wire) => (
          <Input
            {...wire}
            required
            name="username"
            autoComplete="username"
            autoCapitalize="none"
            spellCheck={false}
            readOnly={known !== ''}
            value={name}
            onChange={(event) => setName(event.target.value)}
          />
        )}
      </Field>
      <PasswordInput
        label={copy.signIn.password}
        autoComplete="current-password"
        value={password}
        onChange={setPassword}
        error={isWrong ? error.message : undefined}
      />
      <SubmitProblem error={isWrong ? undefined : error} waitSeconds={waitSeconds} />
      <SignInButton busy={busy} waitSeconds={waitSeconds} />
    </form>
  )
}

/** The submit button; after too many attempts it counts down. */
export function SignInButton({ busy, waitSeconds }: { readonly busy: boolean; readonly waitSeconds: number }) {
  const isWaiting = waitSeconds > 0
  return (
    <Button type="submit" kind="primary" busy={busy} why={isWaiting ? copy.signIn.wait(waitSeconds) : undefined}>
      {isWaiting ? copy.signIn.submitIn(waitSeconds) : copy.signIn.submit}
    </Button>
  )
}
