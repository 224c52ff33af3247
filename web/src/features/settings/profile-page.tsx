'use client'
import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { call } from '../../lib/api.ts'
import { utc } from '../../lib/format.ts'
import { useMe } from '../../lib/session.ts'
import { Age } from '../../ui/age.tsx'
import { Button } from '../../ui/button.tsx'
import { Facts } from '../../ui/facts.tsx'
import { Panel } from '../../ui/panel.tsx'
import { toast } from '../../ui/toast.tsx'
import { ROLE_SAYS } from '../people/roles.ts'
import { SubmitProblem, useSubmit } from '../session/password-form.tsx'
import { PasswordInput } from '../session/password-input.tsx'
import { ME_KEY } from '../session/session-gate.tsx'
import { signOut } from '../session/sign-out.ts'
import { SettingsFrame } from './settings-frame.tsx'

const PASSWORD_MIN = 10
const SIGNED_IN_BY = {
  password: 'a password',
  link: 'a sign-in link',
  'set-up': 'the set-up code',
  token: 'an API token',
} as const

export function ProfilePage() {
  const me = useMe()
  return (
    <SettingsFrame id="profile" ready actions={<Button onClick={signOut}>Sign out</Button>}>
      <Panel title="You">
        <Facts
          facts={[
            ['Name', me.person.name],
            ['Role', `${me.person.role}: ${ROLE_SAYS[me.person.role]}`],
            ['Signed in by', SIGNED_IN_BY[me.signedInBy]],
            ['Added', <Age key="added" at={me.person.createdAt} />],
            ['Session ends', `${utc(me.endsAt)}, unless something is asked before`],
          ]}
        />
      </Panel>
      {me.signedInBy !== 'token' && (
        <Panel title="Password">
          <PasswordChange />
        </Panel>
      )}
    </SettingsFrame>
  )
}

/** Who came by a link has none to tell. */
function PasswordChange() {
  const me = useMe()
  const queries = useQueryClient()
  const isByLink = me.signedInBy === 'link'
  const [current, setCurrent] = useState('')
  const [next, setNext] = useState('')
  const { busy, error, waitSeconds, submit } = useSubmit(async () => {
    await call('PUT /api/v1/me/password', { body: { current, next } })
    setCurrent('')
    setNext('')
    toast({ message: 'Password changed. All your other sessions have ended.' })
    await queries.invalidateQueries({ queryKey: ME_KEY })
  })
  const isCurrentWrong = error?.field === 'current'
  return (
    <form aria-label="Change password" onSubmit={submit} className="flex max-w-96 flex-col gap-3">
      {/* Managers want to know whose password it is. */}
      <input type="text" name="username" autoComplete="username" value={me.person.name} readOnly hidden />
      {!isByLink && (
        <PasswordInput
          label="Current password"
          autoComplete="current-password"
          value={current}
          onChange={setCurrent}
          error={isCurrentWrong ? error.message : undefined}
        />
      )}
      <PasswordInput
        label="New password"
        autoComplete="new-password"
        hint={`At least ${PASSWORD_MIN} characters. All other sessions end.`}
        minLength={PASSWORD_MIN}
        value={next}
        onChange={setNext}
      />
      <SubmitProblem error={isCurrentWrong ? undefined : error} waitSeconds={waitSeconds} />
      <Button
        type="submit"
        kind="primary"
        className="self-start"
        busy={busy}
        why={waitSeconds > 0 ? `Wait ${waitSeconds} s` : undefined}
      >
        {isByLink ? 'Set password' : 'Change password'}
      </Button>
    </form>
  )
}
