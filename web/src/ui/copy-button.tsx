'use client'
import { useEffect, useState } from 'react'
import { announce } from './announce.ts'
import { Button, type ButtonKind } from './button.tsx'
import * as copy from './copy.ts'
import { IconButton } from './icon-button.tsx'

const SHOWN_MS = 2_000

/** Copies text, also over plain HTTP, where browsers hide the clipboard API. @returns whether it worked */
export async function copyText(text: string): Promise<boolean> {
  if (navigator.clipboard) {
    try {
      await navigator.clipboard.writeText(text)
      return true
    } catch {
      // Refused, for example because the window lost focus: fall back to the older API.
    }
  }
  const area = document.createElement('textarea')
  area.value = text
  area.style.position = 'fixed'
  area.style.opacity = '0'
  const focused = document.activeElement
  // Inside the layer that has the focus: a dialog takes the focus back from anywhere else.
  ;(focused?.closest('[role="dialog"]') ?? document.body).append(area)
  area.select()
  const isCopied = document.execCommand('copy')
  area.remove()
  if (focused instanceof HTMLElement) focused.focus()
  return isCopied
}

type CopyProps = {
  /** The text, or a function that is called only on click. */
  readonly text: string | (() => string)
  /** "Copy id", "Copy curl". */
  readonly label: string
  /** Renders a button with a text instead of an icon. */
  readonly kind?: ButtonKind
  readonly className?: string
}

export function CopyButton({ text, label, kind, className }: CopyProps) {
  const [outcome, setOutcome] = useState<'copied' | 'failed'>()
  useEffect(() => {
    if (!outcome) return
    const timer = setTimeout(() => setOutcome(undefined), SHOWN_MS)
    return () => clearTimeout(timer)
  }, [outcome])
  const onCopy = async () => {
    const isCopied = await copyText(typeof text === 'string' ? text : text())
    setOutcome(isCopied ? 'copied' : 'failed')
    announce(isCopied ? copy.clipboard.copied : copy.clipboard.blocked)
  }
  const icon = outcome === 'copied' ? 'check' : outcome === 'failed' ? 'cross' : 'copy'
  if (kind) {
    return (
      <Button kind={kind} icon={icon} onClick={onCopy} {...(className ? { className } : {})}>
        {label}
      </Button>
    )
  }
  return <IconButton label={label} icon={icon} onClick={onCopy} {...(className ? { className } : {})} />
}
