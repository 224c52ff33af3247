/** Measuring the console: a slow laptop on a mobile network, with times from inside the page. */

import type { Browser, BrowserContext, Locator, Page } from '@playwright/test'
import { openProfile } from '../browser.ts'
import { ready, type State, signedIn } from '../console.ts'

export const RUNS = 5
const NETWORK = { offline: false, latency: 40, downloadThroughput: 1_250_000, uploadThroughput: 1_250_000 }
const SLOWDOWN = 4
/** After this time a page has sent all of its requests. */
export const SETTLE_MS = 1_500

export type Figure = {
  readonly what: string
  readonly limit: number
  readonly unit: string
  readonly value: number
  /** The same measurement without any work. */
  readonly floor?: number
}

export function figure(what: string, limit: number, unit: string, value: number, floor?: number): Figure {
  return { what, limit, unit, value, ...(floor !== undefined && { floor }) }
}

/** Logged by a page when it is usable. Polling instead would run code in the page while it starts. */
const USABLE = 'usable'

/** Observes the browser's own events of loading and interactions. */
const OBSERVE = `
  window.timings = { lcp: 0, fcp: 0, cls: 0, ready: 0, clickedAt: 0, events: [] }
  new PerformanceObserver((list) => { for (const entry of list.getEntries()) timings.lcp = entry.startTime }).observe({ type: 'largest-contentful-paint', buffered: true })
  new PerformanceObserver((list) => { for (const entry of list.getEntries()) if (!entry.hadRecentInput) timings.cls += entry.value }).observe({ type: 'layout-shift', buffered: true })
  new PerformanceObserver((list) => { for (const entry of list.getEntries()) if (entry.interactionId) timings.events.push(entry.duration) }).observe({ type: 'event', durationThreshold: 16, buffered: true })
  new PerformanceObserver((list) => { for (const entry of list.getEntries()) if (entry.name === 'first-contentful-paint') timings.fcp = entry.startTime }).observe({ type: 'paint', buffered: true })
  addEventListener('click', (event) => { timings.clickedAt = event.timeStamp }, true)
  const whenReady = (where, act) => {
    const isReady = () => document.querySelector('main' + where + '[data-ready="true"]')
    if (isReady()) return act()
    const observer = new MutationObserver(() => { if (isReady()) { observer.disconnect(); act() } })
    observer.observe(document, { subtree: true, childList: true, attributeFilter: ['data-page', 'data-ready'] })
  }
  whenReady('', () => { timings.ready = performance.now(); console.debug('${USABLE}') })
  // A task after the next frame: by then the frame is on the screen.
  const afterPaint = (resolve) => requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - timings.clickedAt)))
  window.painted = (where) => new Promise((resolve) => whenReady(where, () => afterPaint(resolve)))
  // Milliseconds since 1970 of the frame that shows something for the first time.
  window.shown = (selector) => new Promise((resolve) => {
    const look = () => { if (!document.querySelector(selector)) return false; requestAnimationFrame(() => setTimeout(() => resolve(Date.now()))); return true }
    if (look()) return
    const observer = new MutationObserver(() => { if (look()) observer.disconnect() })
    observer.observe(document, { subtree: true, childList: true, attributes: true })
  })
  // From the next click to the frame that shows that many elements.
  window.drawnAfterClick = (selector, count) => new Promise((resolve) => addEventListener('click', () => {
    const look = () => { if (document.querySelectorAll(selector).length < count) return false; afterPaint(resolve); return true }
    const observer = new MutationObserver(() => { if (look()) observer.disconnect() })
    observer.observe(document, { subtree: true, childList: true })
  }, { once: true }))
  window.nextClickPainted = () => new Promise((resolve) => addEventListener('click', () => afterPaint(resolve), { once: true }))
`
export type Timings = { lcp: number; fcp: number; cls: number; ready: number; events: number[] }
export const timingsOf = (page: Page): Promise<Timings> => page.evaluate('window.timings')

const VIEWPORT = { width: 1280, height: 800 }

/** A window of laptop size, signed in to a server. */
export function windowOf(browser: Browser, url: string, storageState: State): Promise<BrowserContext> {
  return browser.newContext({ storageState, baseURL: url, viewport: VIEWPORT })
}

/** The same with a browser profile that has used this console before. */
export async function knownWindowOf(url: string, { cookies }: State): Promise<BrowserContext> {
  const context = await openProfile(url, VIEWPORT)
  await context.addCookies(cookies)
  await warmUp(context, url)
  return context
}

export async function slowPage(context: BrowserContext): Promise<Page> {
  const page = await context.newPage()
  await page.addInitScript(OBSERVE)
  const session = await context.newCDPSession(page)
  await session.send('Network.enable')
  await session.send('Network.emulateNetworkConditions', NETWORK)
  await session.send('Emulation.setCPUThrottlingRate', { rate: SLOWDOWN })
  return page
}

export async function open(page: Page, url: string): Promise<void> {
  const usable = page.waitForEvent('console', (message) => message.text() === USABLE)
  await page.goto(url)
  await usable
}

export const quantile = (numbers: readonly number[], part: number): number =>
  numbers.toSorted((a, b) => a - b)[Math.min(numbers.length - 1, Math.floor(numbers.length * part))] ?? 0
export const median = (numbers: readonly number[]): number => quantile(numbers, 0.5)

/** From a click to the next frame. */
export async function clickPainted(page: Page, on: Locator): Promise<number> {
  const painted = page.evaluate<number>('nextClickPainted()')
  await on.click()
  return await painted
}

/** Warms up the server, since its runtime compiles hot code. */
async function warmUp(context: BrowserContext, url: string): Promise<void> {
  const page = await context.newPage()
  for (const path of ['/', '/shards', '/sign-in', '/', '/shards', '/']) {
    await page.goto(url + path)
    await ready(page)
  }
  await page.close()
}

type Console = { readonly link: string; readonly url: string }

/** Signed in, with a warmed-up server. */
export async function signedInTo(browser: Browser, { link, url }: Console): Promise<State> {
  const state = await signedIn(browser, link)
  const context = await windowOf(browser, url, state)
  await warmUp(context, url)
  await context.close()
  return state
}
