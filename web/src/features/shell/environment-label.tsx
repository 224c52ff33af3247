import type { Environment } from '@vacancy/shared/contract'
import clsx from 'clsx'

const LOOKS: Record<Environment['kind'], string> = {
  production: 'border-text bg-text text-bg',
  staging: 'border-text text-text',
  development: 'border-dashed border-line-strong text-text-2',
}

/** Which cluster this is: on every page and in every plan, so that nobody acts on the wrong one. */
export function EnvironmentLabel({ environment }: { readonly environment: Environment }) {
  return (
    <span
      data-environment={environment.kind}
      className={clsx(
        'inline-block h-5 max-w-40 truncate leading-4.5 rounded-control border px-1.5 font-semibold text-small tracking-wide',
        LOOKS[environment.kind],
      )}
    >
      {environment.label}
    </span>
  )
}
