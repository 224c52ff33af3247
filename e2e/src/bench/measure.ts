/** How the console is measured: a slow laptop on a mobile network, times as the page itself has them. */

import type { Browser, BrowserContext, Locator, Page } from '@playwright/test'
import { openProfile } from '../browser.ts'
import { ready, type State, signedIn } from '../console.ts'

export const RUNS = 5
const NETWORK = { offline: false, latency: 40, downloadThroughput: 1_250_000, uploadThroughput: 1_250_000 }
const SLOWDOWN = 4
/** After it a page has asked for all it wants. */
export const SETTLE_MS = 1_500

export type Figure = {
  readonly what: string
  readonly limit: number
  readonly unit: string
  readonly value: number
  /** The same of nothing at all. */
  readonly floor?: number
}
/** What a page says when it can be used. Asking it instead would put the code that asks into it, while it starts. */
const USABLE = 'usable'

/** What the browser itself tells of loading and of interactions. */
const OBSERVE = `
  window.told = { lcp: 0, fcp: 0, cls: 0, ready: 0, clickedAt: 0, events: [] }
  new PerformanceObserver((list) => { for (const entry of list.getEntries()) told.lcp = entry.startTime }).observe({ type: 'largest-contentful-paint', buffered: true })
  new PerformanceObserver((list) => { for (const entry of list.getEntries()) if (!entry.hadRecentInput) told.cls += entry.value }).observe({ type: 'layout-shift', buffered: true })
  new PerformanceObserver((list) => { for (const entry of list.getEntries()) if (entry.interactionId) told.events.push(entry.duration) }).observe({ type: 'event', durationThreshold: 16, buffered: true })
  new PerformanceObserver((list) => { for (const entry of list.getEntries()) if (entry.name === 'first-contentful-paint') told.fcp = entry.startTime }).observe({ type: 'paint', buffered: true })
  addEventListener('click', (event) => { told.clickedAt = event.timeStamp }, true)
  const whenReady = (where, act) => {
    const isReady = () => document.querySelector('main' + where + '[data-ready="true"]')
    if (isReady()) return act()
    const observer = new MutationObserver(() => { if (isReady()) { observer.disconnect(); act() } })
    observer.observe(document, { subtree: true, childList: true, attributeFilter: ['data-page', 'data-ready'] })
  }
  whenReady('', () => { told.ready = performance.now(); console.debug('${USABLE}') })
  // A task behind the next frame: what was drawn is on the screen.
  const afterPaint = (resolve) => requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - told.clickedAt)))
  window.painted = (where) => new Promise((resolve) => whenReady(where, () => afterPaint(resolve)))
  // Milliseconds since 1970 of the frame that shows something for the first time.
  window.shown = (selector) => new Promise((resolve) => {
    const look = () => { if (!document.querySelector(selector)) return false; requestAnimationFrame(() => setTimeout(() => resolve(Date.now()))); return true }
    if (look()) return
    const observer = new MutationObserver(() => { if (look()) observer.disconnect() })
    observer.observe(document, { subtree: true, childList: true, attributes: true })
  })
  // From the next click to the frame that shows so many of something.
  window.drawnAfterClick = (selector, count) => new Promise((resolve) => addEventListener('click', () => {
    const look = () => { if (document.querySelectorAll(selector).length < count) return false; afterPaint(resolve); return true }
    const observer = new MutationObserver(() => { if (look()) observer.disconnect() })
    observer.observe(document, { subtree: true, childList: true })
  }, { once: true }))
  window.nextClickPainted = () => new Promise((resolve) => addEventListener('click', () => afterPaint(resolve), { once: true }))
`
export type Told = { lcp: number; fcp: number; cls: number; ready: number; events: number[] }
export const told = (page: Page): Promise<Told> => page.evaluate('window.told')

const VIEWPORT = { width: 1280, height: 800 }

/** The window of a laptop, for who is signed in to one server. */
export function windowOf(browser: Browser, url: string, storageState: State): Promise<BrowserContext> {
  return browser.newContext({ storageState, baseURL: url, viewport: VIEWPORT })
}

/** The same of who has worked with this console before. */
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

/** The server compiles what it runs often: nobody is the first to ask for a page. */
async function warmUp(context: BrowserContext, url: string): Promise<void> {
  const page = await context.newPage()
  for (const path of ['/', '/shards', '/sign-in', '/', '/shards', '/']) {
    await page.goto(url + path)
    await ready(page)
  }
  await page.close()
}

type Console = { readonly link: string; readonly url: string }

/** Signed in, with a server that was asked for its pages before. */
export async function signedInTo(browser: Browser, { link, url }: Console): Promise<State> {
  const state = await signedIn(browser, link)
  const context = await windowOf(browser, url, state)
  await warmUp(context, url)
  await context.close()
  return state
}
