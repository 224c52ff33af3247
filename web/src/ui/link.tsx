import clsx from 'clsx'
import type { ComponentProps } from 'react'

type LinkProps = ComponentProps<'a'> & { readonly href: string }

/** A link in text, underlined so that colour is never the only sign. */
export function Link({ href, className, children, ...rest }: LinkProps) {
  return (
    <a
      href={href}
      className={clsx(
        'rounded-[2px] text-accent underline decoration-1 decoration-current/40 underline-offset-3 hover:decoration-current',
        className,
      )}
      {...rest}
    >
      {children}
    </a>
  )
}
