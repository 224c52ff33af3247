'use client'
/**
 * Keyboard shortcuts: single keys (`p`), sequences (`g s`), with Ctrl or ⌘ (`mod+k`), and arrows with Shift. Single keys never fire in a
 * field or with a layer open, and can be turned off. Each shortcut is registered with the label that the help shows.
 */
import { useLayoutEffect, useRef, useSyncExternalStore } from 'react'

export type Shortcut = {
  readonly keys: string
  readonly label: string
  readonly act: () => void
  /** What it acts on; without such an element on the page it is not listed. */
  readonly on: string | undefined
}

const BETWEEN_MS = 1_200

let isOn = true
let first: { key: string; until: number } | undefined
let known: readonly Shortcut[] = []
const readers = new Set<() => void>()

/** Turns single-key shortcuts on or off: speech input triggers them by accident. */
export function setKeysOn(on: boolean): void {
  isOn = on
}

/**
 * Registers a shortcut while the component is mounted.
 *
 * @param on selector of what it acts on
 */
export function useKey(keys: string, act: () => void, label: string, on?: string): void {
  const latest = useRef(act)
  // Not `useEffect`: on a busy machine the component would be visible before its key works.
  useLayoutEffect(() => {
    latest.current = act
  })
  useLayoutEffect(() => {
    const shortcut: Shortcut = { keys, label, on, act: () => latest.current() }
    change([...known, shortcut])
    return () => change(known.filter((other) => other !== shortcut))
  }, [keys, label, on])
}

/** All active shortcuts. */
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

/** Listens for keys on the page. Called once, by the shell. */
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

/** `k`, `mod+k` with Ctrl or ⌘, or `shift+ArrowLeft`: Shift is part of the name of a character. */
function pressed({ key, ctrlKey, metaKey, altKey, shiftKey }: KeyboardEvent): string {
  if (altKey) return ''
  if (shiftKey && key.startsWith('Arrow')) return `shift+${key}`
  return ctrlKey || metaKey ? `mod+${key.toLowerCase()}` : key
}

function find(name: string, target: EventTarget | null): Shortcut | undefined {
  if (!name) return undefined
  // The last one registered wins: a layer over a page over the shell.
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
  // A kept page may contain a hidden one.
  return [...layers].some((layer) => layer.checkVisibility())
}
