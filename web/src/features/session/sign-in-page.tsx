'use client'
import type { RouteAnswer } from '@vacancy/shared/contract'
import { useEffect, useState } from 'react'
import { Icon } from '../../icons/icon.tsx'
import { call, pathOf } from '../../lib/api.ts'
import { Banner } from '../../ui/banner.tsx'
import { Button } from '../../ui/button.tsx'
import { EnvironmentLabel } from '../../ui/environment-label.tsx'
import { Field, Input } from '../../ui/field.tsx'
import { ErrorState } from '../../ui/panel.tsx'
import { TooltipHost } from '../../ui/tooltip.tsx'
import * as copy from './copy.ts'
import { nextPath } from './next-path.ts'
import { PasswordForm } from './password-form.tsx'
import { PasswordInput } from './password-input.tsx'
import { SubmitProblem, useSubmit } from './submit.tsx'
import { TokenForm } from './token-form.tsx'

type SignInState = RouteAnswer<'GET /api/v1/sign-in'>

const PASSWORD_MIN = 10

/**
 * Sign-in by name and password, console token or one-time link, and the first set-up with the code that the server
 * printed.
 */
export function SignInPage() {
  const [state, setState] = useState<SignInState>()
  const [error, setError] = useState<unknown>()
  const [code, setCode] = useState('')
  const [isByLink, setByLink] = useState(true)
  const [isByToken, setByToken] = useState(false)
  const [problem, setProblem] = useState<string>()
  const load = () => {
    setError(undefined)
    call('GET /api/v1/sign-in').then(setState, setError)
  }
  useEffect(() => {
    load()
    // The fragment never left this browser; opening the link does not use the code, a click does.
    const takeCode = () => {
      const given = new URLSearchParams(location.hash.slice(1))
      setCode(given.get('code') ?? '')
      setProblem(copy.signIn.problems[given.get('problem') ?? ''])
      setByLink(true)
    }
    takeCode()
    // A link opened on this page only changes the fragment.
    addEventListener('hashchange', takeCode)
    return () => removeEventListener('hashchange', takeCode)
  }, [])
  // A full page load, so that nothing of a previous session stays in memory.
  const leave = () => location.replace(next())
  return (
    <main
      id="content"
      data-page="sign-in"
      data-ready={state !== undefined}
      className="flex min-h-dvh flex-col items-center justify-center gap-6 p-4"
    >
      <title>{copy.signIn.windowTitle(state?.setUp === true)}</title>
      <div className="flex items-center gap-3">
        <span className="inline-flex size-9 items-center justify-center rounded-panel bg-accent text-on-accent">
          <Icon name="key" size={20} />
        </span>
        <span className="text-title">Vacancy</span>
        {state && <EnvironmentLabel environment={state.environment} />}
      </div>
      <div className="flex w-full max-w-96 flex-col gap-4 rounded-panel border border-line bg-surface p-6">
        <h1 className="text-title">{state?.setUp ? copy.signIn.setUpTitle : copy.signIn.title}</h1>
        {problem !== undefined && (
          <Banner level="warn" title={copy.signIn.problem}>
            {problem}
          </Banner>
        )}
        {typeof state?.singleSignOn === 'string' && !code && (
          <Button
            kind={state.setUp ? 'default' : 'primary'}
            icon="key"
            onClick={() => location.assign(pathOf('GET /api/v1/session/oidc', { query: { next: next() } }))}
          >
            {copy.signIn.singleSignOn(state.singleSignOn)}
          </Button>
        )}
        {error !== undefined && <ErrorState error={error} onRetry={load} />}
        {state?.setUp && <SetUpForm code={code} onSignedIn={leave} />}
        {state && !state.setUp && code && isByLink && (
          <LinkForm code={code} onSignedIn={leave} onPassword={() => setByLink(false)} />
        )}
        {state && !state.setUp && !(code && isByLink) && (
          <>
            {isByToken ? <TokenForm onSignedIn={leave} /> : <PasswordForm onSignedIn={leave} />}
            <Button kind="quiet" onClick={() => setByToken(!isByToken)}>
              {isByToken ? copy.signIn.usePassword : copy.signIn.useToken}
            </Button>
          </>
        )}
      </div>
      <TooltipHost />
    </main>
  )
}

function next(): string {
  return nextPath(new URLSearchParams(location.search).get('next'), location.origin)
}

type FormProps = { readonly code: string; readonly onSignedIn: () => void }

function LinkForm({ code, onSignedIn, onPassword }: FormProps & { onPassword: () => void }) {
  const { busy, error, waitSeconds, submit } = useSubmit(async () => {
    await call('POST /api/v1/session/link', { body: { code } })
    onSignedIn()
  })
  return (
    <form aria-label={copy.signIn.linkForm} onSubmit={submit} className="flex flex-col gap-4">
      <p className="text-text-2">{copy.signIn.linkHint}</p>
      <SubmitProblem error={error} waitSeconds={waitSeconds} />
      <Button
        type="submit"
        kind="primary"
        icon="key"
        busy={busy}
        why={waitSeconds > 0 ? copy.signIn.wait(waitSeconds) : undefined}
      >
        {copy.signIn.linkSubmit}
      </Button>
      <Button kind="quiet" onClick={onPassword}>
        {copy.signIn.usePassword}
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
    <form aria-label={copy.setUp.form} onSubmit={submit} className="flex flex-col gap-4">
      <p className="text-text-2">{copy.setUp.lead}</p>
      <Field label={copy.setUp.code} hint={copy.setUp.codeHint}>
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
      <Field label={copy.setUp.name} hint={copy.setUp.nameHint}>
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
        label={copy.signIn.password}
        autoComplete="new-password"
        hint={copy.setUp.passwordHint(PASSWORD_MIN)}
        minLength={PASSWORD_MIN}
        value={password}
        onChange={setPassword}
      />
      <SubmitProblem error={error} waitSeconds={waitSeconds} />
      <Button
        type="submit"
        kind="primary"
        busy={busy}
        why={waitSeconds > 0 ? copy.signIn.wait(waitSeconds) : undefined}
      >
        {copy.setUp.submit}
      </Button>
    </form>
  )
}
