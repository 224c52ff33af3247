import type { Environment } from '@vacancy/shared/contract'
import clsx from 'clsx'

const STYLES: Record<Environment['kind'], string> = {
  production: 'border-text bg-text text-bg',
  staging: 'border-text text-text',
  development: 'border-dashed border-line-strong text-text-2',
}

/** The label of the environment, on every page and in every plan, to prevent acting on the wrong cluster. */
export function EnvironmentLabel({ environment }: { readonly environment: Environment }) {
  return (
    <span
      data-environment={environment.kind}
      className={clsx(
        'inline-block h-5 max-w-40 truncate leading-4.5 rounded-control border px-1.5 font-semibold text-small tracking-wide',
        STYLES[environment.kind],
      )}
    >
      {environment.label}
    </span>
  )
}
