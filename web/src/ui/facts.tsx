import { Fragment, type ReactNode } from 'react'

type FactsProps = { readonly facts: readonly (readonly [name: string, value: ReactNode])[] }

/** A list of names with values. */
export function Facts({ facts }: FactsProps) {
  return (
    <dl className="grid grid-cols-1 gap-x-6 gap-y-1.5 sm:grid-cols-[minmax(8rem,auto)_1fr]">
      {facts.map(([name, value]) => (
        <Fragment key={name}>
          <dt className="text-text-2 max-sm:text-small">{name}</dt>
          <dd className="min-w-0 break-words max-sm:pb-1">{value}</dd>
        </Fragment>
      ))}
    </dl>
  )
}
