'use client'
import clsx from 'clsx'
import { type ComponentProps, type ReactNode, useId } from 'react'
import { Icon } from '../icons/icon.tsx'
import * as copy from './data-copy.ts'

const CONTROL =
  'w-full min-w-0 rounded-control border bg-surface px-2.5 text-body text-text aria-invalid:border-crit border-line-strong disabled:bg-sunken disabled:text-text-3'

/** Attributes that connect a control to its label, hint and error. */
export type Wire = {
  readonly id: string
  readonly 'aria-describedby': string | undefined
  readonly 'aria-invalid': true | undefined
  readonly required: boolean
}

export type FieldProps = {
  readonly label: string
  readonly hint?: ReactNode
  readonly error?: string | undefined
  readonly required?: boolean | undefined
  /** Beside the label, such as a switch or a count. */
  readonly aside?: ReactNode
  readonly className?: string | undefined
  readonly children: (wire: Wire) => ReactNode
}

/** A labelled control with hint and error below it. */
export function Field({ label, hint, error, required = false, aside, className, children }: FieldProps) {
  const id = useId()
  const notes = [hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(' ')
  return (
    <div className={clsx('flex min-w-0 flex-col gap-1', className)}>
      <div className="flex items-baseline justify-between gap-2">
        <label htmlFor={id} className="font-medium text-small text-text-2">
          {label}
          {required && <span className="font-normal text-text-3">{copy.field.required}</span>}
        </label>
        {aside}
      </div>
      {children({
        id,
        'aria-describedby': notes || undefined,
        'aria-invalid': error ? true : undefined,
        required,
      })}
      {hint && (
        <p id={`${id}-hint`} className="text-small text-text-3">
          {hint}
        </p>
      )}
      {error && (
        <p id={`${id}-error`} className="flex items-start gap-1 text-crit text-small">
          <Icon name="octagon" size={14} className="mt-px" />
          {error}
        </p>
      )}
    </div>
  )
}

export function Input({ className, ...rest }: ComponentProps<'input'>) {
  return <input {...rest} className={clsx(CONTROL, 'h-control', className)} />
}

type TextFieldProps = Omit<FieldProps, 'children' | 'className'> &
  Omit<ComponentProps<'input'>, 'onChange' | 'required'> & {
    readonly onChange: (text: string) => void
    readonly fieldClassName?: string
  }

/** A labelled input of one line. */
export function TextField({ label, hint, error, required, aside, fieldClassName, onChange, ...input }: TextFieldProps) {
  return (
    <Field {...{ label, hint, error, required, aside, className: fieldClassName }}>
      {(wire) => <Input {...wire} {...input} onChange={({ target }) => onChange(target.value)} />}
    </Field>
  )
}

export function TextArea({ className, ...rest }: ComponentProps<'textarea'>) {
  return <textarea rows={3} {...rest} className={clsx(CONTROL, 'py-1.5', className)} />
}

type CheckboxProps = Omit<ComponentProps<'input'>, 'type'> & { readonly label: ReactNode; readonly hint?: ReactNode }

export function Checkbox({ label, hint, className, ...rest }: CheckboxProps) {
  const id = useId()
  return (
    <label className={clsx('flex min-h-6 items-start gap-2 pointer-coarse:min-h-11', className)}>
      <input
        type="checkbox"
        aria-describedby={hint ? id : undefined}
        {...rest}
        className="mt-0.5 size-4 shrink-0 accent-accent"
      />
      <span className="min-w-0">
        {label}
        {hint && (
          <span id={id} className="block text-small text-text-3">
            {hint}
          </span>
        )}
      </span>
    </label>
  )
}

type SwitchProps = {
  readonly label: ReactNode
  readonly hint?: ReactNode
  readonly checked: boolean
  readonly onChange: (checked: boolean) => void
  /** Why it is disabled. */
  readonly why?: string | undefined
}

export function Switch({ label, hint, checked, onChange, why }: SwitchProps) {
  const id = useId()
  return (
    <div className="flex min-h-8 items-start gap-3">
      <button
        type="button"
        role="switch"
        aria-checked={checked}
        aria-labelledby={`${id}-label`}
        aria-describedby={hint || why ? `${id}-hint` : undefined}
        aria-disabled={why !== undefined || undefined}
        data-tip={why}
        onClick={() => why === undefined && onChange(!checked)}
        className={clsx(
          'relative mt-px inline-flex h-6 w-10 shrink-0 items-center rounded-full border transition-colors',
          checked ? 'border-accent bg-accent' : 'border-line-strong bg-sunken',
          why !== undefined && 'cursor-not-allowed opacity-70',
        )}
      >
        <span
          data-filled=""
          className={clsx(
            'ms-0.5 inline-flex size-[18px] items-center justify-center rounded-full transition-transform',
            checked ? 'translate-x-4 bg-on-accent text-accent rtl:-translate-x-4' : 'bg-line-strong',
          )}
        >
          {checked && <Icon name="check" size={12} />}
        </span>
      </button>
      <div className="min-w-0 pt-0.5">
        <span id={`${id}-label`}>{label}</span>
        {(hint || why) && (
          <span id={`${id}-hint`} className="block text-small text-text-3">
            {hint} {why}
          </span>
        )}
      </div>
    </div>
  )
}

type RadioGroupProps<V extends string> = {
  readonly label: string
  readonly value: V
  readonly onChange: (value: V) => void
  readonly options: readonly {
    readonly value: V
    readonly label: ReactNode
    readonly hint?: ReactNode
    readonly disabled?: boolean
  }[]
  /** In a row instead of a column. */
  readonly inline?: boolean
}

export function RadioGroup<V extends string>({ label, value, onChange, options, inline }: RadioGroupProps<V>) {
  const name = useId()
  return (
    <fieldset className="min-w-0">
      <legend className="pb-1 font-medium text-small text-text-2">{label}</legend>
      <div className={clsx('flex', inline ? 'flex-wrap gap-x-4 gap-y-1' : 'flex-col gap-1')}>
        {options.map((option) => (
          <label
            key={option.value}
            className={clsx(
              'flex min-h-6 items-start gap-2 pointer-coarse:min-h-11',
              option.disabled && 'cursor-not-allowed text-text-3',
            )}
          >
            <input
              type="radio"
              name={name}
              value={option.value}
              checked={option.value === value}
              disabled={option.disabled}
              onChange={() => onChange(option.value)}
              className="mt-0.5 size-4 shrink-0 accent-accent"
            />
            <span className="min-w-0">
              {option.label}
              {option.hint && <span className="block text-small text-text-3">{option.hint}</span>}
            </span>
          </label>
        ))}
      </div>
    </fieldset>
  )
}
