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
import { PasswordInput } from '../session/password-input.tsx'
import { ME_KEY } from '../session/session-gate.tsx'
import { signOut } from '../session/sign-out.ts'
import { SubmitProblem, useSubmit } from '../session/submit.tsx'
import * as copy from './copy.ts'
import { SettingsFrame } from './settings-frame.tsx'

const PASSWORD_MIN = 10

export function ProfilePage() {
  const me = useMe()
  return (
    <SettingsFrame id="profile" ready actions={<Button onClick={signOut}>{copy.profile.signOut}</Button>}>
      <Panel title={copy.profile.panel}>
        <Facts
          facts={[
            [copy.profile.name, me.person.name],
            [copy.profile.role, copy.profile.roleText(me.person.role, copy.roles[me.person.role])],
            [copy.profile.signedInWith, copy.profile.methods[me.signedInBy]],
            [copy.profile.added, <Age key="added" at={me.person.createdAt} />],
            [copy.profile.sessionEnds, copy.profile.sessionEnd(utc(me.endsAt))],
          ]}
        />
      </Panel>
      {me.signedInBy !== 'token' && !me.person.singleSignOn && (
        <Panel title={copy.profile.password}>
          <PasswordChange />
        </Panel>
      )}
    </SettingsFrame>
  )
}

/** A person who signed in by link has no current password. */
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
    toast({ message: copy.profile.passwordChanged })
    await queries.invalidateQueries({ queryKey: ME_KEY })
  })
  const isCurrentWrong = error?.field === 'current'
  return (
    <form aria-label={copy.profile.changePassword} onSubmit={submit} className="flex max-w-96 flex-col gap-3">
      {/* Password managers need the name. */}
      <input type="text" name="username" autoComplete="username" value={me.person.name} readOnly hidden />
      {!isByLink && (
        <PasswordInput
          label={copy.profile.currentPassword}
          autoComplete="current-password"
          value={current}
          onChange={setCurrent}
          error={isCurrentWrong ? error.message : undefined}
        />
      )}
      <PasswordInput
        label={copy.profile.newPassword}
        autoComplete="new-password"
        hint={copy.profile.passwordHint(PASSWORD_MIN)}
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
        why={waitSeconds > 0 ? copy.profile.wait(waitSeconds) : undefined}
      >
        {isByLink ? copy.profile.setPassword : copy.profile.changePassword}
      </Button>
    </form>
  )
}
