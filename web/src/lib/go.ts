'use client'
/**
 * Going to a page of the console without asking the server: the address changes, and the shell draws the page that stands
 * there (features/shell/outlet.tsx). Links are plain links, so that they work before any script does; one listener takes
 * the clicks. What is no page of the console is left to the browser.
 */

import { setAddress } from './address.tsx'

/** What the shell knows of pages. */
export type Pages = {
  /** The path that is drawn for a path: itself, or where it leads on to; undefined when it is no page. */
  resolve(path: string): string | undefined
  /** Fetches the code of a page before it is gone to. */
  preload(path: string): void
}

let pages: Pages | undefined
let goneTo: string | undefined

/** Goes there, as a click on a link would. */
export function go(href: string): void {
  const url = new URL(href, location.href)
  const path = pathOfPage(url)
  if (path === undefined) return location.assign(url)
  const to = path + url.search + url.hash
  if (path !== location.pathname) goneTo = path
  setAddress(to, { push: to !== location.pathname + location.search + location.hash })
}

/** Once for each page that was gone to: a page that is come back to stays where it was scrolled. */
export function hasGoneTo(path: string): boolean {
  const has = goneTo === path
  goneTo = undefined
  return has
}

/** Takes clicks on links to pages, and fetches the code of what is pointed at. The shell does it once. */
export function listenForLinks(known: Pages): () => void {
  pages = known
  document.addEventListener('click', onClick)
  document.addEventListener('pointerover', onAim, { passive: true })
  document.addEventListener('focusin', onAim)
  return () => {
    pages = undefined
    document.removeEventListener('click', onClick)
    document.removeEventListener('pointerover', onAim)
    document.removeEventListener('focusin', onAim)
  }
}

function onClick(event: MouseEvent): void {
  if (event.defaultPrevented || event.button !== 0) return
  if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
  const link = linkOf(event)
  if (!link || (link.target !== '' && link.target !== '_self') || link.hasAttribute('download')) return
  const url = new URL(link.href)
  const isPartOfPage = url.hash !== '' && url.pathname === location.pathname && url.search === location.search
  if (isPartOfPage || pathOfPage(url) === undefined) return
  event.preventDefault()
  go(link.href)
}

function onAim(event: Event): void {
  const link = linkOf(event)
  const path = link ? pathOfPage(new URL(link.href)) : undefined
  if (path !== undefined) pages?.preload(path)
}

function linkOf({ target }: Event): HTMLAnchorElement | null {
  return target instanceof Element ? target.closest<HTMLAnchorElement>('a[href]') : null
}

function pathOfPage(url: URL): string | undefined {
  return url.origin === location.origin ? pages?.resolve(url.pathname) : undefined
}
