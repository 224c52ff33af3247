'use client'
import type { Level } from '@vacancy/shared/contract'
import { useEffect, useSyncExternalStore } from 'react'
import { Icon } from '../icons/icon.tsx'
import { announce } from './announce.ts'
import { LEVEL_ICONS, LEVEL_TEXT } from './badge.tsx'
import { Button } from './button.tsx'
import * as copy from './copy.ts'
import { IconButton } from './icon-button.tsx'
import { Link } from './link.tsx'

export type Toast = {
  readonly message: string
  readonly level?: Level
  /** Reverts the action; offered for 10 s. */
  readonly undo?: { readonly label: string; readonly act: () => void }
  readonly href?: { readonly to: string; readonly label: string }
}

type Shown = Toast & { readonly id: number }

const SHOWN_MAX = 3
const STAYS_MS = 10_000

let shown: readonly Shown[] = []
let lastId = 0
const readers = new Set<() => void>()

function show(next: readonly Shown[]): void {
  shown = next
  for (const reader of readers) reader()
}

/** Reports the result of a user action. What must be read is a banner instead. */
export function toast(one: Toast): void {
  lastId += 1
  show([...shown, { ...one, id: lastId }].slice(-SHOWN_MAX))
  announce(one.message)
}

/** In the header, where it covers nothing that is read or clicked. The newest is shown; earlier ones return when it leaves. */
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
      aria-label={copy.toasts.label}
      data-no-print=""
      className="pointer-events-none fixed top-0.5 start-1/2 z-60 w-full max-w-140 -translate-x-1/2 px-4 rtl:translate-x-1/2"
    >
      <ol>
        {toasts.map((one, at) => (
          <ToastRow key={one.id} toast={one} earlier={at} isShown={at === toasts.length - 1} />
        ))}
      </ol>
    </section>
  )
}

type ToastRowProps = { readonly toast: Shown; readonly earlier: number; readonly isShown: boolean }

function ToastRow({ toast: { id, message, level = 'ok', undo, href }, earlier, isShown }: ToastRowProps) {
  const close = () => show(shown.filter((other) => other.id !== id))
  useEffect(() => {
    const timer = setTimeout(() => show(shown.filter((other) => other.id !== id)), STAYS_MS)
    return () => clearTimeout(timer)
  }, [id])
  return (
    <li
      hidden={!isShown}
      className="enter pointer-events-auto flex min-h-11 items-center gap-2 rounded-panel border border-line bg-overlay ps-3 pe-1 shadow-layer [&[hidden]]:hidden"
    >
      <Icon name={LEVEL_ICONS[level]} className={LEVEL_TEXT[level]} />
      <span className="min-w-0 grow break-words py-1.5">{message}</span>
      {earlier > 0 && (
        <small className="whitespace-nowrap text-small text-text-3">{copy.toasts.earlier(earlier)}</small>
      )}
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
      <IconButton label={copy.toasts.close} icon="cross" onClick={close} />
    </li>
  )
}
