'use client'
/**
 * Navigation without a request to the server: the URL changes, and the shell shows the page (features/shell/outlet.tsx).
 * Links are plain links that work before any script runs; one listener handles their clicks. URLs outside the console are
 * left to the browser.
 */

import { setAddress } from './address.tsx'
import { AT, NOW } from './past.ts'

/** Implemented by the shell. */
export type Pages = {
  /** The path of the page shown for a path, after redirects; undefined when there is none. */
  resolve(path: string): string | undefined
  /** Loads the code of a page in advance. */
  preload(path: string): void
}

let pages: Pages | undefined
let navigatedTo: string | undefined

/** Navigates as a click on a link would. */
export function navigate(href: string): void {
  const url = new URL(href, location.href)
  const path = pathOfPage(url)
  if (path === undefined) return location.assign(url)
  keepTime(url, path)
  const to = path + url.search + url.hash
  if (path !== location.pathname) navigatedTo = path
  setAddress(to, { push: to !== location.pathname + location.search + location.hash })
}

/**
 * A link keeps the moment of the past that is shown, and the time range on pages that have one, unless it names others.
 * `at=now` leads back to the present.
 */
function keepTime({ searchParams }: URL, path: string): void {
  const current = new URLSearchParams(location.search)
  const names = SHOWS_TIME.test(path) ? [AT, ...RANGE] : [AT]
  const hasRange = RANGE.some((name) => searchParams.has(name))
  for (const name of names) {
    const value = current.get(name)
    if (value !== null && !searchParams.has(name) && !(hasRange && name !== AT)) searchParams.set(name, value)
  }
  if (searchParams.get(AT) === NOW) searchParams.delete(AT)
}

const RANGE = ['from', 'to', 'pin']
const SHOWS_TIME = /^\/(dashboards\/|shards\/[^/]+\/(metrics|nodes\/))/

/** True once after each navigation to a page; going back keeps its scroll position. */
export function hasNavigatedTo(path: string): boolean {
  const has = navigatedTo === path
  navigatedTo = undefined
  return has
}

/** Handles clicks on links to pages and preloads pages on hover and focus. Called once, by the shell. */
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
  navigate(link.href)
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
