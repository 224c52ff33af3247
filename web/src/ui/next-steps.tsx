'use client'
import * as copy from './data-copy.ts'
import { Link } from './link.tsx'

export type NextStep = { readonly href: string; readonly label: string; readonly hint: string }

/** Where to go from here, at the end of a short page. */
export function NextSteps({ steps }: { readonly steps: readonly NextStep[] }) {
  return (
    <nav aria-label={copy.nextSteps} className="flex flex-wrap gap-x-8 gap-y-2 border-line border-t pt-3">
      {steps.map(({ href, label, hint }) => (
        <p key={href} className="min-w-0">
          <Link href={href}>{label}</Link>: <span className="text-text-2">{hint}</span>
        </p>
      ))}
    </nav>
  )
}
