'use client'
/**
 * Marks the container of a scrolling element while more is to be seen at its end, so that its edge can show it. Of a table
 * it also measures the first column, beside which another may be pinned.
 */
import { type RefObject, useEffect } from 'react'

/** A pixel of rounding. */
const SLACK = 1

export function useScrollHint(scroller: RefObject<HTMLElement | null>): void {
  useEffect(() => {
    const element = scroller.current
    const holder = element?.parentElement
    if (!element || !holder) return
    const mark = () => {
      const left = element.scrollWidth - element.clientWidth - Math.abs(element.scrollLeft)
      holder.toggleAttribute('data-more', left > SLACK)
    }
    const name = element.querySelector('thead th')
    const sizes = new ResizeObserver(() => {
      mark()
      holder.style.setProperty('--name-width', `${name?.getBoundingClientRect().width ?? 0}px`)
    })
    sizes.observe(element)
    for (const part of [element.firstElementChild, name]) if (part) sizes.observe(part)
    // Before a virtual table renders the rows that scrolling brings into view: measuring after it would lay them out.
    const early = { passive: true, capture: true }
    element.addEventListener('scroll', mark, early)
    return () => {
      sizes.disconnect()
      element.removeEventListener('scroll', mark, early)
    }
  }, [scroller])
}
