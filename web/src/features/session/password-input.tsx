'use client'
import { type KeyboardEvent, useState } from 'react'
import { Icon } from '../../icons/icon.tsx'
import { Field, Input } from '../../ui/field.tsx'
import { IconButton } from '../../ui/icon-button.tsx'
import * as copy from './copy.ts'

type PasswordInputProps = {
  readonly label: string
  readonly value: string
  readonly onChange: (value: string) => void
  readonly autoComplete: 'current-password' | 'new-password' | 'off'
  /** Its name on the show and hide button. */
  readonly what?: string
  readonly hint?: string
  readonly error?: string | undefined
  readonly minLength?: number
}

/** A password field with a show button and a caps lock notice; password managers can fill it. */
export function PasswordInput(props: PasswordInputProps) {
  const { label, value, onChange, autoComplete, what = copy.passwordInput.password, hint, error, minLength } = props
  const [isShown, setShown] = useState(false)
  const [hasCapsLock, setCapsLock] = useState(false)
  const updateCapsLock = (event: KeyboardEvent) => setCapsLock(event.getModifierState('CapsLock'))
  return (
    <Field label={label} error={error} {...(hint ? { hint } : {})}>
      {(wire) => (
        <>
          <div className="flex gap-1">
            <Input
              {...wire}
              required
              type={isShown ? 'text' : 'password'}
              autoComplete={autoComplete}
              autoCapitalize="none"
              spellCheck={false}
              minLength={minLength}
              maxLength={256}
              value={value}
              onChange={(event) => onChange(event.target.value)}
              onKeyDown={updateCapsLock}
              onKeyUp={updateCapsLock}
              onBlur={() => setCapsLock(false)}
            />
            <IconButton
              kind="default"
              label={isShown ? copy.passwordInput.hide(what) : copy.passwordInput.show(what)}
              icon={isShown ? 'eye-off' : 'eye'}
              onClick={() => setShown(!isShown)}
            />
          </div>
          <p role="status" className="text-small text-warn">
            {hasCapsLock && (
              <span className="inline-flex items-center gap-1">
                <Icon name="triangle" size={12} />
                {copy.passwordInput.capsLock}
              </span>
            )}
          </p>
        </>
      )}
    </Field>
  )
}
