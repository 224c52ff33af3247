'use client'
import { useEffect, useState } from 'react'
import { announce } from './announce.ts'
import { Button, type ButtonKind } from './button.tsx'
import { IconButton } from './icon-button.tsx'

const SHOWN_MS = 2_000

/** Copies text, also where the page came over plain HTTP and browsers hide the clipboard. */
export async function copyText(text: string): Promise<boolean> {
  if (navigator.clipboard) {
    try {
      await navigator.clipboard.writeText(text)
      return true
    } catch {
      // Refused, for instance because the window lost the focus: the older way may still do.
    }
  }
  const area = document.createElement('textarea')
  area.value = text
  area.style.position = 'fixed'
  area.style.opacity = '0'
  const focused = document.activeElement
  // Inside of the layer that has the focus: a dialog takes it back from anywhere else.
  ;(focused?.closest('[role="dialog"]') ?? document.body).append(area)
  area.select()
  const isCopied = document.execCommand('copy')
  area.remove()
  if (focused instanceof HTMLElement) focused.focus()
  return isCopied
}

type CopyProps = {
  /** What is copied, or how it is made: then it is only made when asked for. */
  readonly text: string | (() => string)
  /** "Copy id", "Copy curl". */
  readonly label: string
  /** As a button with words instead of an icon. */
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
  const copy = async () => {
    const isCopied = await copyText(typeof text === 'string' ? text : text())
    setOutcome(isCopied ? 'copied' : 'failed')
    announce(isCopied ? 'Copied' : 'The browser did not allow copying. Select the text instead.')
  }
  const icon = outcome === 'copied' ? 'check' : outcome === 'failed' ? 'cross' : 'copy'
  if (kind) {
    return (
      <Button kind={kind} icon={icon} onClick={copy} {...(className ? { className } : {})}>
        {label}
      </Button>
    )
  }
  return <IconButton label={label} icon={icon} onClick={copy} {...(className ? { className } : {})} />
}
