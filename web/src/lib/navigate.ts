'use client'
/**
 * Navigation without a request to the server: the URL changes, and the shell shows the page (features/shell/outlet.tsx).
 * Links are plain links that work before any script runs; one listener handles their clicks. URLs outside the console are
 * left to the browser.
 */

import { setAddress } from './address.tsx'
import { pageAt } from './pages.ts'
import { AT, NOW } from './past.ts'

/** Loads the code of a page in advance. Undefined outside of the shell, where every link is left to the browser. */
let preload: ((path: string) => void) | undefined
let navigatedTo: string | undefined

/** Navigates as a click on a link would. */
export function navigate(href: string): void {
  const url = new URL(href, location.href)
  const page = pageOf(url)
  if (!page) return location.assign(url)
  const { path } = page
  keepTime(url, page.showsTime)
  const to = path + url.search + url.hash
  if (path !== location.pathname) navigatedTo = path
  setAddress(to, { push: to !== location.pathname + location.search + location.hash })
}

/**
 * A link keeps the moment of the past that is shown, and the time range on pages that have one, unless it names others.
 * `at=now` leads back to the present.
 */
function keepTime({ searchParams }: URL, showsTime: boolean): void {
  const current = new URLSearchParams(location.search)
  const names = showsTime ? [AT, ...RANGE] : [AT]
  const hasRange = RANGE.some((name) => searchParams.has(name))
  for (const name of names) {
    const value = current.get(name)
    if (value !== null && !searchParams.has(name) && !(hasRange && name !== AT)) searchParams.set(name, value)
  }
  if (searchParams.get(AT) === NOW) searchParams.delete(AT)
}

const RANGE = ['from', 'to', 'pin']

/** True once after each navigation to a page; going back keeps its scroll position. */
export function hasNavigatedTo(path: string): boolean {
  const has = navigatedTo === path
  navigatedTo = undefined
  return has
}

/** Handles clicks on links to pages and preloads pages on hover and focus. Called once, by the shell. */
export function listenForLinks(load: (path: string) => void): () => void {
  preload = load
  document.addEventListener('click', onClick)
  document.addEventListener('pointerover', onAim, { passive: true })
  document.addEventListener('focusin', onAim)
  return () => {
    preload = undefined
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
  if (isPartOfPage || !pageOf(url)) return
  event.preventDefault()
  navigate(link.href)
}

function onAim(event: Event): void {
  const link = linkOf(event)
  const page = link ? pageOf(new URL(link.href)) : undefined
  if (page) preload?.(page.path)
}

function linkOf({ target }: Event): HTMLAnchorElement | null {
  return target instanceof Element ? target.closest<HTMLAnchorElement>('a[href]') : null
}

function pageOf(url: URL) {
  return preload && url.origin === location.origin ? pageAt(url.pathname) : undefined
}
