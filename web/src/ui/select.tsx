'use client'
import clsx from 'clsx'
import type { ComponentProps } from 'react'
import { Icon } from '../icons/icon.tsx'
import { Field, type FieldProps } from './field.tsx'

type SelectProps = Omit<ComponentProps<'select'>, 'children'> & {
  readonly options: readonly { readonly value: string; readonly label: string; readonly disabled?: boolean }[]
}

/** A native select: works on phones, by keyboard and with screen readers. */
export function Select({ options, className, ...rest }: SelectProps) {
  return (
    <span className={clsx('relative inline-flex min-w-0', className)}>
      <select
        {...rest}
        className="h-control w-full min-w-0 appearance-none truncate rounded-control border border-line-strong bg-surface ps-2.5 pe-8 text-body text-text aria-invalid:border-crit"
      >
        {options.map(({ value, label, disabled }) => (
          <option key={value} value={value} disabled={disabled}>
            {label}
          </option>
        ))}
      </select>
      <Icon
        name="chevron-down"
        size={14}
        className="pointer-events-none absolute inset-y-0 end-2.5 my-auto text-text-2"
      />
    </span>
  )
}

type SelectFieldProps = Pick<FieldProps, 'label' | 'hint' | 'error'> &
  Omit<SelectProps, 'onChange'> & { readonly onChange: (value: string) => void; readonly fieldClassName?: string }

/** A labelled select. */
export function SelectField({ label, hint, error, fieldClassName, onChange, ...select }: SelectFieldProps) {
  return (
    <Field {...{ label, hint, error, className: fieldClassName }}>
      {(wire) => <Select {...wire} {...select} onChange={({ target }) => onChange(target.value)} />}
    </Field>
  )
}
