'use client'
import clsx from 'clsx'
import type { ReactNode } from 'react'
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
    <figure
      className={clsx(
        'relative w-full min-w-0 overflow-clip rounded-control border border-line bg-sunken',
        hideLabel && 'pointer-coarse:min-h-11',
        className,
      )}
    >
      {/* Without a label the button is beside the code and takes no line. */}
      <figcaption
        className={clsx(
          'flex items-center justify-between gap-2 text-small text-text-3',
          hideLabel ? 'absolute end-0 top-0' : 'ps-3',
        )}
      >
        <span className={clsx(hideLabel && 'sr-only')}>{label}</span>
        <CopyButton text={code} label={copy.codeView.copy(label)} className="ms-auto" />
      </figcaption>
      <pre
        // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable content must be reachable by keyboard.
        tabIndex={0}
        className={clsx(
          'overflow-auto px-3 pb-3 font-mono text-small',
          hideLabel && 'pe-12 pt-2',
          wrap && 'whitespace-pre-wrap [overflow-wrap:anywhere]',
        )}
        style={{ maxHeight: `${lines + 1}rem` }}
      >
        <code>{wrap ? wordsOf(code) : code}</code>
      </pre>
    </figure>
  )
}

/** Each word in a box of its own: browsers break lines within `--token-file`, after its hyphens. */
function wordsOf(code: string): ReactNode {
  return code.split(/(\s+)/).map((part, at) =>
    at % 2 === 1 ? (
      part
    ) : (
      <span key={at} className="inline-block max-w-full">
        {part}
      </span>
    ),
  )
}
