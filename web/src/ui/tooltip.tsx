'use client'
/**
 * One tooltip for the whole console: any element with `data-tip` shows it on hover and focus. No wrapper is needed, so
 * ten thousand cells may have one. It can be hovered, Escape hides it, and it describes its element.
 */
import { useEffect, useRef, useState } from 'react'

type Tip = { readonly of: HTMLElement; readonly text: string }

const AFTER_MS = 400
const GONE_AFTER_MS = 120
const GAP = 6
const EDGE = 8

export function TooltipHost() {
  const [tip, setTip] = useState<Tip>()
  const box = useRef<HTMLDivElement>(null)

  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined
    const plan = (next: Tip | undefined, milliseconds: number) => {
      clearTimeout(timer)
      timer = setTimeout(() => setTip(next), milliseconds)
    }
    const over = (event: Event) => {
      if (!(event.target instanceof Element) || box.current?.contains(event.target)) return clearTimeout(timer)
      const of = event.target.closest<HTMLElement>('[data-tip]')
      const text = of?.dataset['tip']
      if (event.type === 'focusin' && !event.target.matches(':focus-visible')) return
      plan(of && text ? { of, text } : undefined, of && text ? AFTER_MS : GONE_AFTER_MS)
    }
    const away = () => plan(undefined, 0)
    const key = (event: KeyboardEvent) => event.key === 'Escape' && away()
    document.addEventListener('pointerover', over)
    document.addEventListener('focusin', over)
    document.addEventListener('focusout', away)
    document.addEventListener('pointerdown', away)
    document.addEventListener('keydown', key)
    addEventListener('scroll', away, { capture: true, passive: true })
    return () => {
      clearTimeout(timer)
      document.removeEventListener('pointerover', over)
      document.removeEventListener('focusin', over)
      document.removeEventListener('focusout', away)
      document.removeEventListener('pointerdown', away)
      document.removeEventListener('keydown', key)
      removeEventListener('scroll', away, { capture: true })
    }
  }, [])

  useEffect(() => {
    const element = box.current
    if (!tip || !element) return
    // The browser's top layer, above dialogs as well.
    element.showPopover()
    place(element, tip.of)
    // Not repeated where it equals the accessible name.
    const isNamed = tip.of.getAttribute('aria-label') === tip.text || tip.of.hasAttribute('aria-describedby')
    if (!isNamed) tip.of.setAttribute('aria-describedby', element.id)
    return () => {
      if (!isNamed) tip.of.removeAttribute('aria-describedby')
      if (element.isConnected) element.hidePopover()
    }
  }, [tip])

  return (
    <div
      ref={box}
      id="tip"
      role="tooltip"
      popover="manual"
      className="m-0 max-w-80 whitespace-pre-line break-words rounded-control border border-line bg-overlay px-2 py-1 text-small text-text shadow-layer"
    >
      {tip?.text}
    </div>
  )
}

/** Below its element, above if there is no room, and always inside the window. */
function place(box: HTMLElement, of: HTMLElement): void {
  const target = of.getBoundingClientRect()
  const own = box.getBoundingClientRect()
  const isBelow = target.bottom + GAP + own.height <= innerHeight - EDGE
  const left = target.left + target.width / 2 - own.width / 2
  box.style.position = 'fixed'
  box.style.inset = 'auto'
  box.style.left = `${Math.max(EDGE, Math.min(left, innerWidth - own.width - EDGE))}px`
  box.style.top = `${Math.max(EDGE, isBelow ? target.bottom + GAP : target.top - GAP - own.height)}px`
}
