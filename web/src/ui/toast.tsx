'use client'
import type { Level } from '@vacancy/shared/contract'
import { useEffect, useSyncExternalStore } from 'react'
import { Icon } from '../icons/icon.tsx'
import { announce } from './announce.ts'
import { LEVEL_ICONS, LEVEL_TEXT } from './badge.tsx'
import { Button } from './button.tsx'
import { IconButton } from './icon-button.tsx'
import { Link } from './link.tsx'

export type Toast = {
  readonly says: string
  readonly level?: Level
  /** Takes back what was done; offered for 10 s. */
  readonly undo?: { readonly label: string; readonly act: () => void }
  readonly href?: { readonly to: string; readonly label: string }
}

type Shown = Toast & { readonly id: number }

const SHOWN_AT_MOST = 3
const STAYS_MS = 10_000

let shown: readonly Shown[] = []
let lastId = 0
const readers = new Set<() => void>()

function show(next: readonly Shown[]): void {
  shown = next
  for (const reader of readers) reader()
}

/** Says how something went that the user did a moment ago. Not for what must be read: that is a banner. */
export function toast(one: Toast): void {
  lastId += 1
  show([...shown, { ...one, id: lastId }].slice(-SHOWN_AT_MOST))
  announce(one.says)
}

export function ToastHost() {
  const toasts = useSyncExternalStore(
    (reader) => {
      readers.add(reader)
      return () => readers.delete(reader)
    },
    () => shown,
    () => shown,
  )
  return (
    <section
      aria-label="Messages"
      data-no-print=""
      className="pointer-events-none fixed bottom-4 start-1/2 z-40 w-full max-w-140 -translate-x-1/2 px-4 rtl:translate-x-1/2"
    >
      <ol className="flex flex-col gap-2">
        {toasts.map((one) => (
          <ToastRow key={one.id} toast={one} />
        ))}
      </ol>
    </section>
  )
}

function ToastRow({ toast: { id, says, level = 'ok', undo, href } }: { toast: Shown }) {
  const close = () => show(shown.filter((other) => other.id !== id))
  useEffect(() => {
    const timer = setTimeout(() => show(shown.filter((other) => other.id !== id)), STAYS_MS)
    return () => clearTimeout(timer)
  }, [id])
  return (
    <li className="enter pointer-events-auto flex items-center gap-2 rounded-panel border border-line bg-overlay py-1 ps-3 pe-1 shadow-layer">
      <Icon name={LEVEL_ICONS[level]} className={LEVEL_TEXT[level]} />
      <span className="min-w-0 grow break-words py-1.5">{says}</span>
      {href && <Link href={href.to}>{href.label}</Link>}
      {undo && (
        <Button
          kind="quiet"
          icon="back"
          onClick={() => {
            undo.act()
            close()
          }}
        >
          {undo.label}
        </Button>
      )}
      <IconButton label="Close message" icon="cross" onClick={close} />
    </li>
  )
}
