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

/** The same as tiles, each name above its value, for short values side by side. */
export function FactTiles({ facts }: FactsProps) {
  return (
    <dl className="grid grid-cols-2 gap-x-6 gap-y-3 sm:grid-cols-3 lg:grid-cols-4">
      {facts.map(([name, value]) => (
        <div key={name} className="min-w-0">
          <dt className="text-small text-text-2">{name}</dt>
          <dd className="break-words">{value}</dd>
        </div>
      ))}
    </dl>
  )
}

/** Figures side by side, each name above its value. */
export function FactRow({ facts, isLarge = false }: FactsProps & { readonly isLarge?: boolean }) {
  return (
    <dl className={`flex min-w-0 flex-wrap ${isLarge ? 'gap-x-8 gap-y-3' : 'gap-x-6 gap-y-1'}`}>
      {facts.map(([name, value]) => (
        <div key={name} className="min-w-0">
          <dt className="text-small text-text-2">{name}</dt>
          <dd className={`break-words tabular-nums ${isLarge ? 'text-section' : ''}`}>{value}</dd>
        </div>
      ))}
    </dl>
  )
}
