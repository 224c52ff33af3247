'use client'
import { type KeyboardEvent, useState } from 'react'
import { Icon } from '../../icons/icon.tsx'
import { Field, Input } from '../../ui/field.tsx'
import { IconButton } from '../../ui/icon-button.tsx'

type PasswordInputProps = {
  readonly label: string
  readonly value: string
  readonly onChange: (value: string) => void
  readonly autoComplete: 'current-password' | 'new-password' | 'off'
  /** What it is called on its button. */
  readonly what?: string
  readonly hint?: string
  readonly error?: string | undefined
  readonly minLength?: number
}

/** A password that can be shown, pasted and filled by a manager, and says when caps lock is on. */
export function PasswordInput(props: PasswordInputProps) {
  const { label, value, onChange, autoComplete, what = 'password', hint, error, minLength } = props
  const [isShown, setShown] = useState(false)
  const [hasCapsLock, setCapsLock] = useState(false)
  const look = (event: KeyboardEvent) => setCapsLock(event.getModifierState('CapsLock'))
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
              onKeyDown={look}
              onKeyUp={look}
              onBlur={() => setCapsLock(false)}
            />
            <IconButton
              kind="default"
              label={isShown ? `Hide ${what}` : `Show ${what}`}
              icon={isShown ? 'eye-off' : 'eye'}
              onClick={() => setShown(!isShown)}
            />
          </div>
          <p role="status" className="text-small text-warn">
            {hasCapsLock && (
              <span className="inline-flex items-center gap-1">
                <Icon name="triangle" size={12} />
                Caps lock is on
              </span>
            )}
          </p>
        </>
      )}
    </Field>
  )
}
