'use client'
import type { Me } from '@vacancy/shared/contract'
import { type FormEvent, useEffect, useState } from 'react'
import { ApiProblem, call } from '../../lib/api.ts'
import { Button } from '../../ui/button.tsx'
import { Field, Input } from '../../ui/field.tsx'
import * as copy from './copy.ts'
import { PasswordInput } from './password-input.tsx'

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

/** Submits a form one request at a time, and waits after too many attempts. */
export function useSubmit(send: () => Promise<void>) {
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<ApiProblem>()
  const [waitSeconds, setWaitSeconds] = useState(0)
  useEffect(() => {
    if (waitSeconds <= 0) return
    const timer = setTimeout(() => setWaitSeconds(waitSeconds - 1), 1_000)
    return () => clearTimeout(timer)
  }, [waitSeconds])
  const submit = async (event: FormEvent) => {
    event.preventDefault()
    if (busy || waitSeconds > 0) return
    setBusy(true)
    setError(undefined)
    try {
      await send()
    } catch (failure) {
      if (!(failure instanceof ApiProblem)) throw failure
      setError(failure)
      setWaitSeconds(Number(failure.more['retryAfterSeconds'] ?? 0))
    } finally {
      setBusy(false)
    }
  }
  return { busy, error, waitSeconds, submit }
}

export function SubmitProblem({ error, waitSeconds }: { error: ApiProblem | undefined; waitSeconds: number }) {
  if (!error) return null
  if (error.status === 429) {
    // After the wait there is nothing to show; during it the button counts down.
    if (waitSeconds <= 0) return null
    return (
      <p role="alert" className="text-warn">
        {copy.signIn.tooManyAttempts}
      </p>
    )
  }
  return (
    <div role="alert" className="text-crit">
      <p>{error.message}</p>
      {error.hint && <p className="text-small text-text-2">{error.hint}</p>}
    </div>
  )
}
