'use client'
import type { RouteAnswer } from '@vacancy/shared/contract'
import { useEffect, useState } from 'react'
import { Icon } from '../../icons/icon.tsx'
import { call } from '../../lib/api.ts'
import { Button } from '../../ui/button.tsx'
import { Field, Input } from '../../ui/field.tsx'
import { ErrorState } from '../../ui/panel.tsx'
import { TooltipHost } from '../../ui/tooltip.tsx'
import { EnvironmentLabel } from '../shell/environment-label.tsx'
import { nextPath } from './next-path.ts'
import { PasswordForm, SubmitProblem, useSubmit } from './password-form.tsx'
import { PasswordInput } from './password-input.tsx'
import { TokenForm } from './token-form.tsx'

type SignInState = RouteAnswer<'GET /api/v1/sign-in'>

const PASSWORD_MIN = 10

/**
 * Signing in by name and password, by a console token, by a one-time link, or, the very first time, by the code that the
 * server printed.
 */
export function SignInPage() {
  const [state, setState] = useState<SignInState>()
  const [error, setError] = useState<unknown>()
  const [code, setCode] = useState('')
  const [isByLink, setByLink] = useState(true)
  const [isByToken, setByToken] = useState(false)
  const load = () => {
    setError(undefined)
    call('GET /api/v1/sign-in').then(setState, setError)
  }
  useEffect(() => {
    load()
    // What stands behind # never left this browser; opening the link does not use it, a click does.
    const takeCode = () => {
      setCode(new URLSearchParams(location.hash.slice(1)).get('code') ?? '')
      setByLink(true)
    }
    takeCode()
    // A link that is opened where this page stands already loads nothing anew.
    addEventListener('hashchange', takeCode)
    return () => removeEventListener('hashchange', takeCode)
  }, [])
  // A whole new page: whoever was here before left nothing in memory.
  const go = () => location.replace(nextPath(new URLSearchParams(location.search).get('next'), location.origin))
  return (
    <main
      id="content"
      data-page="sign-in"
      data-ready={state !== undefined}
      className="flex min-h-dvh flex-col items-center justify-center gap-6 p-4"
    >
      <title>{state?.setUp ? 'Set up · Vacancy' : 'Sign in · Vacancy'}</title>
      <div className="flex items-center gap-3">
        <span className="inline-flex size-9 items-center justify-center rounded-panel bg-accent text-on-accent">
          <Icon name="key" size={20} />
        </span>
        <span className="text-title">Vacancy</span>
        {state && <EnvironmentLabel environment={state.environment} />}
      </div>
      <div className="flex w-full max-w-96 flex-col gap-4 rounded-panel border border-line bg-surface p-6">
        <h1 className="text-title">{state?.setUp ? 'Set up the console' : 'Sign in'}</h1>
        {error !== undefined && <ErrorState error={error} onRetry={load} />}
        {state?.setUp && <SetUpForm code={code} onSignedIn={go} />}
        {state && !state.setUp && code && isByLink && (
          <LinkForm code={code} onSignedIn={go} onPassword={() => setByLink(false)} />
        )}
        {state && !state.setUp && !(code && isByLink) && (
          <>
            {isByToken ? <TokenForm onSignedIn={go} /> : <PasswordForm onSignedIn={go} />}
            <Button kind="quiet" onClick={() => setByToken(!isByToken)}>
              {isByToken ? 'Use name and password instead' : 'Use a console token instead'}
            </Button>
          </>
        )}
      </div>
      <TooltipHost />
    </main>
  )
}

type FormProps = { readonly code: string; readonly onSignedIn: () => void }

function LinkForm({ code, onSignedIn, onPassword }: FormProps & { onPassword: () => void }) {
  const { busy, error, waitSeconds, submit } = useSubmit(async () => {
    await call('POST /api/v1/session/link', { body: { code } })
    onSignedIn()
  })
  return (
    <form aria-label="Sign in by link" onSubmit={submit} className="flex flex-col gap-4">
      <p className="text-text-2">You opened a sign-in link. It works once.</p>
      <SubmitProblem error={error} waitSeconds={waitSeconds} />
      <Button
        type="submit"
        kind="primary"
        icon="key"
        busy={busy}
        why={waitSeconds > 0 ? `Wait ${waitSeconds} s` : undefined}
      >
        Sign in with this link
      </Button>
      <Button kind="quiet" onClick={onPassword}>
        Use name and password instead
      </Button>
    </form>
  )
}

function SetUpForm({ code: fromLink, onSignedIn }: FormProps) {
  const [typedCode, setTypedCode] = useState<string>()
  const [name, setName] = useState('')
  const [password, setPassword] = useState('')
  const code = typedCode ?? fromLink
  const { busy, error, waitSeconds, submit } = useSubmit(async () => {
    await call('POST /api/v1/set-up', { body: { code: code.trim(), name: name.trim(), password } })
    onSignedIn()
  })
  return (
    <form aria-label="Set up" onSubmit={submit} className="flex flex-col gap-4">
      <p className="text-text-2">Nobody can sign in yet. The first person is an admin and adds the others.</p>
      <Field label="Set-up code" hint="The control plane printed it when it started.">
        {(wire) => (
          <Input
            {...wire}
            required
            className="font-mono"
            autoComplete="off"
            spellCheck={false}
            minLength={16}
            maxLength={128}
            value={code}
            onChange={(event) => setTypedCode(event.target.value)}
          />
        )}
      </Field>
      <Field label="Your name" hint="Letters, digits and . _ @ -">
        {(wire) => (
          <Input
            {...wire}
            required
            name="username"
            autoComplete="username"
            autoCapitalize="none"
            spellCheck={false}
            pattern="[A-Za-z0-9._@\-]{1,64}"
            value={name}
            onChange={(event) => setName(event.target.value)}
          />
        )}
      </Field>
      <PasswordInput
        label="Password"
        autoComplete="new-password"
        hint={`At least ${PASSWORD_MIN} characters.`}
        minLength={PASSWORD_MIN}
        value={password}
        onChange={setPassword}
      />
      <SubmitProblem error={error} waitSeconds={waitSeconds} />
      <Button type="submit" kind="primary" busy={busy} why={waitSeconds > 0 ? `Wait ${waitSeconds} s` : undefined}>
        Create the first admin
      </Button>
    </form>
  )
}
