'use client'
/**
 * Keys of the console: single ones (`p`), two in a row (`g s`), and with Ctrl or ⌘ (`mod+k`). Single keys never fire
 * while something is typed, nor with a layer open, and can be switched off; whoever registers one says what it does, and
 * the help shows just that.
 */
import { useEffect, useRef, useSyncExternalStore } from 'react'

export type Shortcut = { readonly keys: string; readonly says: string; readonly act: () => void }

const BETWEEN_MS = 1_200

let isOn = true
let first: { key: string; until: number } | undefined
let known: readonly Shortcut[] = []
const readers = new Set<() => void>()

/** Single keys can be turned off: speech input types them by accident. */
export function setKeysOn(on: boolean): void {
  isOn = on
}

/** While it is shown, the keys do this. */
export function useKey(keys: string, act: () => void, says: string): void {
  const latest = useRef(act)
  useEffect(() => {
    latest.current = act
  })
  useEffect(() => {
    const shortcut: Shortcut = { keys, says, act: () => latest.current() }
    change([...known, shortcut])
    return () => change(known.filter((other) => other !== shortcut))
  }, [keys, says])
}

/** All keys that do something now. */
export function useShortcuts(): readonly Shortcut[] {
  return useSyncExternalStore(
    (reader) => {
      readers.add(reader)
      return () => readers.delete(reader)
    },
    () => known,
    () => known,
  )
}

function change(next: readonly Shortcut[]): void {
  known = next
  for (const reader of readers) reader()
}

/** Listens on the page; the shell does it once. */
export function listenForKeys(): () => void {
  document.addEventListener('keydown', onKeyDown)
  return () => document.removeEventListener('keydown', onKeyDown)
}

function onKeyDown(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.isComposing || event.repeat) return
  const shortcut = find(pressed(event), event.target)
  if (!shortcut) return
  event.preventDefault()
  shortcut.act()
}

/** `mod+k`, `shift` only where it makes no letter of its own. */
function pressed({ key, ctrlKey, metaKey, altKey }: KeyboardEvent): string {
  if (altKey) return ''
  return ctrlKey || metaKey ? `mod+${key.toLowerCase()}` : key
}

function find(name: string, target: EventTarget | null): Shortcut | undefined {
  if (!name) return undefined
  // The latest one that was put up wins: a layer over a page over the shell.
  const byKeys = (keys: string) => known.findLast((one) => one.keys === keys)
  if (name.startsWith('mod+')) return byKeys(name)
  if (!isOn || isTyping(target) || isLayerOpen()) return undefined
  const before = first && first.until > performance.now() ? first.key : undefined
  first = undefined
  const second = before === undefined ? undefined : byKeys(`${before} ${name}`)
  if (second) return second
  if (known.some(({ keys }) => keys.startsWith(`${name} `))) {
    first = { key: name, until: performance.now() + BETWEEN_MS }
    return undefined
  }
  return byKeys(name)
}

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement && target.matches('input, textarea, select, [contenteditable], [role="menuitem"]')
  )
}

function isLayerOpen(): boolean {
  const layers = document.querySelectorAll('[role="dialog"][data-state="open"], [role="menu"]')
  // A page that is kept may hide one.
  return [...layers].some((layer) => layer.checkVisibility())
}
