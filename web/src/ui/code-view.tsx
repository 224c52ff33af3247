'use client'
import clsx from 'clsx'
import * as copy from './copy.ts'
import { CopyButton } from './copy-button.tsx'

type CodeViewProps = {
  readonly label: string
  readonly code: string
  /** Visible lines before it scrolls. */
  readonly lines?: number
  readonly hideLabel?: boolean
  /** Long lines are broken instead of scrolled. */
  readonly wrap?: boolean
  readonly className?: string
}

export function CodeView({ label, code, lines = 16, hideLabel, wrap, className }: CodeViewProps) {
  return (
    <figure className={clsx('w-full min-w-0 overflow-clip rounded-control border border-line bg-sunken', className)}>
      <figcaption className="flex items-center justify-between gap-2 ps-3 text-small text-text-3">
        <span className={clsx(hideLabel && 'sr-only')}>{label}</span>
        <CopyButton text={code} label={copy.codeView.copy(label)} className="ms-auto" />
      </figcaption>
      <pre
        // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable content must be reachable by keyboard.
        tabIndex={0}
        className={clsx(
          'overflow-auto px-3 pb-3 font-mono text-small',
          wrap && 'whitespace-pre-wrap [overflow-wrap:anywhere]',
        )}
        style={{ maxHeight: `${lines + 1}rem` }}
      >
        <code>{code}</code>
      </pre>
    </figure>
  )
}
