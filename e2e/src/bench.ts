/**
 * `npm run bench:console`: how long the console takes (console.md §17) over a simulated cluster, as a slow laptop on a
 * mobile network sees it: a processor slowed down four times, 40 ms and 10 Mbit/s. Medians of five.
 *
 * Times are taken inside of the page, from the navigation or from the click itself to what is drawn. Beside them stands
 * the floor of the same run: the same of a page that has nothing to show (the sign-in), and of a click that does nothing.
 * No page of this server can be faster on this machine. Server and cluster run on it, too, with a lower priority than the
 * browser: in life they have machines of their own.
 */

import { readFileSync, writeFileSync } from 'node:fs'
import { loadavg } from 'node:os'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import type { Browser, BrowserContext, Locator, Page } from '@playwright/test'
import { openBrowser } from './browser.ts'
import { ready, signIn } from './console.ts'
import { type Simulation, startSimulation } from './simulation.ts'

const DOCS = fileURLToPath(new URL('../../docs/console.md', import.meta.url))
const BEGIN = '<!-- bench:console: made by the benchmark, not by hand -->'
const END = '<!-- end of bench:console -->'
const RUNS = 5
const NETWORK = { offline: false, latency: 40, downloadThroughput: 1_250_000, uploadThroughput: 1_250_000 }
const SLOWDOWN = 4
/** Changes that are waited for, one after another. */
const CHANGES = 20
const CHARTS = 12
const CANVASES = '#content figure[data-chart] canvas'
/** After it a page has asked for all it wants. */
const SETTLE_MS = 1_500

const { values } = parseArgs({
  options: { write: { type: 'boolean', default: false }, help: { type: 'boolean', default: false } },
})

type Figure = {
  readonly what: string
  readonly limit: number
  readonly unit: string
  readonly value: number
  /** The same of nothing at all. */
  readonly floor?: number
}
const sizeOf = (nodes: number, shards: number) => [
  ...['--nodes', String(nodes), '--shards', String(shards)],
  ...['--zones', '4', '--seed', '7', '--scenario', 'lag'],
]

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
type State = Awaited<ReturnType<BrowserContext['storageState']>>
type Told = { lcp: number; fcp: number; cls: number; ready: number; events: number[] }
const told = (page: Page): Promise<Told> => page.evaluate('window.told')

async function slowPage(context: BrowserContext): Promise<Page> {
  const page = await context.newPage()
  await page.addInitScript(OBSERVE)
  const session = await context.newCDPSession(page)
  await session.send('Network.enable')
  await session.send('Network.emulateNetworkConditions', NETWORK)
  await session.send('Emulation.setCPUThrottlingRate', { rate: SLOWDOWN })
  return page
}

async function open(page: Page, url: string): Promise<void> {
  const usable = page.waitForEvent('console', (message) => message.text() === USABLE)
  await page.goto(url)
  await usable
}

const quantile = (numbers: readonly number[], part: number): number =>
  numbers.toSorted((a, b) => a - b)[Math.min(numbers.length - 1, Math.floor(numbers.length * part))] ?? 0
const median = (numbers: readonly number[]): number => quantile(numbers, 0.5)

/** From a click to the frame that shows the page it leads to. */
async function changeTo(page: Page, name: 'Shards' | 'Overview'): Promise<number> {
  const painted = page.evaluate<number>(`painted('[data-page="${name.toLowerCase()}"]')`)
  await page.getByRole('navigation').getByRole('link', { name, exact: true }).click()
  return await painted
}

/** From a click to the next frame. */
async function clickPainted(page: Page, on: Locator): Promise<number> {
  const painted = page.evaluate<number>('nextClickPainted()')
  await on.click()
  return await painted
}

/** A page without anything to show. */
async function measureBare(page: Page, url: string): Promise<Told> {
  await open(page, `${url}/sign-in`)
  return await told(page)
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

/** The link signs in once. */
async function signedIn(browser: Browser, { link, url }: Simulation): Promise<State> {
  const context = await browser.newContext()
  await signIn(await context.newPage(), link)
  await warmUp(context, url)
  const state = await context.storageState()
  await context.close()
  return state
}

async function measureOverview(browser: Browser, { url }: Simulation, storageState: State): Promise<Figure[]> {
  const cold: number[] = []
  const warm: number[] = []
  const shifts: number[] = []
  const changes: number[] = []
  const bareCold: number[] = []
  const bareWarm: number[] = []
  const idle: number[] = []
  const interactions: number[] = []
  for (let run = 0; run < RUNS; run++) {
    const context = await browser.newContext({ storageState, viewport: { width: 1280, height: 800 } })
    const page = await slowPage(context)
    for (const times of [cold, warm]) {
      await open(page, url)
      await page.waitForTimeout(500)
      const { lcp, cls } = await told(page)
      times.push(lcp)
      shifts.push(cls)
    }
    for (const name of ['Shards', 'Overview', 'Shards', 'Overview'] as const) {
      changes.push(await changeTo(page, name))
      await page.waitForTimeout(200)
    }
    idle.push(await clickPainted(page, page.getByRole('heading', { level: 1 })))
    await page.keyboard.press('Control+k')
    await page.getByRole('combobox').first().fill('s1')
    await page.waitForTimeout(200)
    await page.keyboard.press('Escape')
    await open(page, `${url}/shards`)
    await page.keyboard.press('/')
    await page.keyboard.type('state:behind', { delay: 20 })
    await page.waitForTimeout(300)
    interactions.push(...(await told(page)).events)
    await context.close()
    const stranger = await browser.newContext({ viewport: { width: 1280, height: 800 } })
    const bare = await slowPage(stranger)
    bareCold.push((await measureBare(bare, url)).fcp)
    bareWarm.push((await measureBare(bare, url)).fcp)
    await stranger.close()
  }
  return [
    {
      what: 'LCP of the overview, 40 shards, cold',
      limit: 1_500,
      unit: 'ms',
      value: median(cold),
      floor: median(bareCold),
    },
    { what: 'the same, warm', limit: 800, unit: 'ms', value: median(warm), floor: median(bareWarm) },
    { what: 'layout shift (CLS), largest', limit: 0.02, unit: '', value: Math.max(...shifts) },
    { what: 'interactions (INP), p75', limit: 150, unit: 'ms', value: quantile(interactions, 0.75) },
    { what: 'interactions, longest', limit: 300, unit: 'ms', value: Math.max(0, ...interactions) },
    {
      what: 'change of route, data known, from the click to the screen',
      limit: 100,
      unit: 'ms',
      value: median(changes),
      floor: median(idle),
    },
  ]
}

/**
 * The twelve charts of a shard, their code and values being there: from the click to the frame with the lines of those
 * in view, and to the one with the last.
 */
async function measureCharts(browser: Browser, { url }: Simulation, storageState: State): Promise<Figure[]> {
  const context = await browser.newContext({ storageState, viewport: { width: 1280, height: 800 } })
  const page = await slowPage(context)
  await open(page, `${url}/shards/s1/metrics`)
  await page
    .locator(CANVASES)
    .nth(CHARTS - 1)
    .waitFor()
  const inView = await page
    .locator(CANVASES)
    .evaluateAll((charts) => charts.filter((chart) => chart.getBoundingClientRect().top < innerHeight).length)
  const first: number[] = []
  const all: number[] = []
  for (let run = 0; run <= RUNS; run++) {
    const tab = (name: string) => page.getByRole('navigation', { name: 'Shard s1' }).getByRole('link', { name })
    await tab('Events').click()
    await ready(page, 'shard-events')
    await page.waitForTimeout(SETTLE_MS)
    const drawn = [inView, CHARTS].map((count) => page.evaluate<number>(`drawnAfterClick('${CANVASES}', ${count})`))
    await tab('Metrics').click()
    const [inViewMs = 0, allMs = 0] = await Promise.all(drawn)
    first.push(inViewMs)
    all.push(allMs)
  }
  await context.close()
  return [
    {
      what: `twelve charts, values known, from the click to the ${inView} in view`,
      limit: 200,
      unit: 'ms',
      value: median(first.slice(1)),
    },
    { what: 'the same, to the last below', limit: 1_000, unit: 'ms', value: median(all.slice(1)) },
  ]
}

/** From a change on a node to the frame that shows it, and from the click that confirms a plan to its first answer. */
async function measureChanges(browser: Browser, simulation: Simulation, storageState: State): Promise<Figure[]> {
  const context = await browser.newContext({ storageState, viewport: { width: 1280, height: 800 } })
  const page = await slowPage(context)
  await page.goto(simulation.url)
  await ready(page)
  await page.waitForTimeout(SETTLE_MS)
  const followers = await page
    .locator('a.slot[data-role="follower"][data-state="healthy"]')
    .evaluateAll((slots) =>
      slots.map(({ dataset }) => ({ shard: dataset['shard'] ?? '', node: dataset['node'] ?? '' })),
    )
  const changes: number[] = []
  for (const { shard, node } of followers.slice(0, CHANGES)) {
    const slot = `a.slot[data-shard="${shard}"][data-node="${node}"]`
    const seen = page.evaluate<number>(`shown('${slot}[data-state="far-behind"]')`)
    const at = Date.now()
    await simulation.act('lag', { shard, node })
    changes.push((await seen) - at)
  }
  const confirms: number[] = []
  const oneAShard = [...new Map(followers.map((follower) => [follower.shard, follower])).values()]
  for (const { shard, node } of oneAShard.slice(-RUNS)) {
    await page.goto(`${simulation.url}/shards/${shard}?plan=transfer:${shard}:${node}`)
    const button = page.getByRole('dialog').getByRole('button', { name: `Transfer leadership to ${node}` })
    await button.waitFor()
    await page.waitForTimeout(SETTLE_MS)
    confirms.push(await clickPainted(page, button))
  }
  await context.close()
  return [
    {
      what: 'a change on a node, until it is on the screen, p95',
      limit: 1_600,
      unit: 'ms',
      value: quantile(changes, 0.95),
    },
    { what: 'confirming a plan, from the click to “Requested…”', limit: 100, unit: 'ms', value: median(confirms) },
  ]
}

async function measureLarge(browser: Browser, { url }: Simulation, storageState: State): Promise<Figure[]> {
  const context = await browser.newContext({ storageState, viewport: { width: 1280, height: 800 } })
  const bare: number[] = []
  const usable: number[] = []
  const filters: number[] = []
  let rows = 0
  for (let run = 0; run < RUNS; run++) {
    const page = await slowPage(context)
    await open(page, url)
    usable.push((await told(page)).ready)
    await open(page, `${url}/shards`)
    rows = Math.max(rows, await page.locator('tbody tr').count())
    await page.keyboard.press('/')
    await page.keyboard.type('s12')
    await page.waitForTimeout(300)
    filters.push(...(await told(page)).events)
    bare.push((await measureBare(page, url)).ready)
    await page.close()
  }
  await context.close()
  return [
    {
      what: '1,000 nodes in 300 shards: overview usable after navigation',
      limit: 1_500,
      unit: 'ms',
      value: median(usable),
      floor: median(bare),
    },
    { what: '300 rows: rows in the document', limit: 80, unit: '', value: rows },
    { what: '300 rows: a key in the filter, p75', limit: 100, unit: 'ms', value: quantile(filters, 0.75) },
  ]
}

function tableOf(figures: readonly Figure[]): string {
  const rows = figures.map(({ what, limit, unit, value, floor }) => {
    const shown = (one: number) => (unit === 'ms' ? `${Math.round(one)} ms` : String(Math.round(one * 1000) / 1000))
    const bare = floor === undefined ? '' : `${shown(floor)}, ×${(value / floor).toFixed(1)}`
    return `| ${what} | ${shown(value)} | ≤ ${limit}${unit && ` ${unit}`} | ${value <= limit ? 'met' : '**missed**'} | ${bare} |`
  })
  return ['| What | Value | Budget | | Floor |', '|---|---:|---:|---|---:|', ...rows].join('\n')
}

function writeDocs(table: string): void {
  const page = readFileSync(DOCS, 'utf8')
  const [before, rest] = page.split(BEGIN)
  const after = rest?.split(END)[1]
  if (before === undefined || after === undefined) throw new Error(`${DOCS} has no place for the figures`)
  writeFileSync(DOCS, `${before}${BEGIN}\n\n${table}\n\n${END}${after}`)
}

if (values.help) {
  console.log('usage: npm run bench:console [-- --write]\n\n--write puts the table into docs/console.md.')
} else {
  const browser = await openBrowser()
  console.log(`load before: ${loadavg().map((one) => one.toFixed(1))}`)
  const small = await startSimulation(sizeOf(120, 40), { isBehind: true })
  const inSmall = await signedIn(browser, small)
  const figures = await measureOverview(browser, small, inSmall)
  figures.push(...(await measureChanges(browser, small, inSmall)))
  figures.push(...(await measureCharts(browser, small, inSmall)))
  await small.stop()
  const large = await startSimulation(sizeOf(1_000, 300), { isBehind: true })
  figures.push(...(await measureLarge(browser, large, await signedIn(browser, large))))
  await large.stop()
  await browser.close()
  console.log(`load after: ${loadavg().map((one) => one.toFixed(1))}`)
  const table = tableOf(figures)
  console.log(table)
  if (values.write) writeDocs(table)
}
