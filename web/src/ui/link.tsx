import clsx from 'clsx'
import NextLink from 'next/link'
import type { ComponentProps } from 'react'

type LinkProps = Omit<ComponentProps<typeof NextLink>, 'href'> & { readonly href: string }

/** A link in text: underlined where it is met, so that colour does not speak alone. */
export function Link({ className, ...rest }: LinkProps) {
  return (
    <NextLink
      prefetch={false}
      className={clsx(
        'rounded-[2px] text-accent underline decoration-1 decoration-current/40 underline-offset-3 hover:decoration-current',
        className,
      )}
      {...rest}
    />
  )
}
