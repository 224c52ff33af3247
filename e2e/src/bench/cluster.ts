/** Measurements with a simulated cluster: first pages, changes, charts, a thousand nodes. */

import type { Browser, BrowserContext, Page } from '@playwright/test'
import { ready, type State } from '../console.ts'
import type { Simulation } from '../simulation.ts'
import {
  clickPainted,
  type Figure,
  figure,
  knownWindowOf,
  median,
  open,
  quantile,
  RUNS,
  SETTLE_MS,
  slowPage,
  type Timings,
  timingsOf,
  windowOf,
} from './measure.ts'

/** Number of sequential changes. */
const CHANGES = 20
const CHARTS = 12
const CANVASES = '#content figure[data-chart] canvas'

/** From a click to the frame that shows the target page. */
async function changeTo(page: Page, name: 'Shards' | 'Overview'): Promise<number> {
  const painted = page.evaluate<number>(`painted('[data-page="${name.toLowerCase()}"]')`)
  await page.getByRole('navigation').getByRole('link', { name, exact: true }).click()
  return await painted
}

/** A page without data. */
async function measureBare(page: Page, url: string): Promise<Timings> {
  await open(page, `${url}/sign-in`)
  return await timingsOf(page)
}

export async function measureOverview(browser: Browser, { url }: Simulation, storageState: State): Promise<Figure[]> {
  const cold: number[] = []
  const warm: number[] = []
  const shifts: number[] = []
  const changes: number[] = []
  const bareCold: number[] = []
  const bareWarm: number[] = []
  const idle: number[] = []
  const interactions: number[] = []
  for (let run = 0; run < RUNS; run++) {
    const context = await windowOf(browser, url, storageState)
    const page = await slowPage(context)
    for (const times of [cold, warm]) {
      await open(page, url)
      await page.waitForTimeout(500)
      const { lcp, cls } = await timingsOf(page)
      times.push(lcp)
      shifts.push(cls)
    }
    // After the first paint, the page prefetches the data for route changes.
    await page.waitForTimeout(SETTLE_MS)
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
    interactions.push(...(await timingsOf(page)).events)
    await context.close()
    const stranger = await browser.newContext({ viewport: { width: 1280, height: 800 } })
    const bare = await slowPage(stranger)
    bareCold.push((await measureBare(bare, url)).fcp)
    bareWarm.push((await measureBare(bare, url)).fcp)
    await stranger.close()
  }
  return [
    figure('LCP of the overview, 40 shards, cold', 1_500, 'ms', median(cold), median(bareCold)),
    figure('the same, warm', 800, 'ms', median(warm), median(bareWarm)),
    figure('layout shift (CLS), largest', 0.02, '', Math.max(...shifts)),
    figure('interactions (INP), p75', 150, 'ms', quantile(interactions, 0.75)),
    figure('interactions, longest', 300, 'ms', Math.max(0, ...interactions)),
    figure('change of route, data known, from the click to the screen', 100, 'ms', median(changes), median(idle)),
  ]
}

/**
 * The twelve charts of a shard, with code and values loaded: from the click to the frame with the lines of the charts
 * in view, and to the frame with the last one.
 */
export async function measureCharts(browser: Browser, { url }: Simulation, storageState: State): Promise<Figure[]> {
  const context = await windowOf(browser, url, storageState)
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
    figure(`twelve charts, values known, from the click to the ${inView} in view`, 200, 'ms', median(first.slice(1))),
    figure('the same, to the last below', 1_000, 'ms', median(all.slice(1))),
  ]
}

/** From a change on a node to the frame that shows it, and from the click that confirms a plan to its first response. */
export async function measureChanges(browser: Browser, simulation: Simulation, storageState: State): Promise<Figure[]> {
  const context = await windowOf(browser, simulation.url, storageState)
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
    figure('a change on a node, until it is on the screen, p95', 1_600, 'ms', quantile(changes, 0.95)),
    figure('confirming a plan, from the click to “Requested…”', 100, 'ms', median(confirms)),
  ]
}

export async function measureLarge({ url }: Simulation, storageState: State): Promise<Figure[]> {
  const context = await knownWindowOf(url, storageState)
  const bare: number[] = []
  const usable: number[] = []
  const filters: number[] = []
  let rows = 0
  for (let run = 0; run < RUNS; run++) {
    const page = await slowPage(context)
    await open(page, url)
    usable.push((await timingsOf(page)).ready)
    await open(page, `${url}/shards`)
    rows = Math.max(rows, await page.locator('tbody tr').count())
    await page.keyboard.press('/')
    await page.keyboard.type('s12')
    await page.waitForTimeout(300)
    filters.push(...(await timingsOf(page)).events)
    bare.push((await measureBare(page, url)).ready)
    await page.close()
  }
  await context.close()
  const scrolled: number[] = []
  for (const path of SCROLLED) scrolled.push(await measureScroll(await knownWindowOf(url, storageState), path))
  return [
    figure('1,000 nodes in 300 shards: overview usable after navigation', 1_500, 'ms', median(usable), median(bare)),
    figure('300 rows: rows in the document', 80, '', rows),
    figure('300 rows: a key in the filter, p75', 100, 'ms', quantile(filters, 0.75)),
    figure('1,000 nodes: a frame while overview or lists are scrolled, p95', 20, 'ms', Math.max(...scrolled)),
  ]
}

const SCROLLS = 120
/** The overview with every shard of every zone, and the longest lists. */
const SCROLLED = [
  '/?zones=zone-1,zone-2,zone-3,zone-4',
  ...['/shards', '/topology?view=table', '/registry/services', '/registry/datasets', '/snapshots', '/failures'],
]

/** Without a slow-down: frames while a page is scrolled down and up. */
async function measureScroll(context: BrowserContext, path: string): Promise<number> {
  const page = await context.newPage()
  await page.goto(path)
  await ready(page)
  await page.waitForTimeout(SETTLE_MS)
  await page.mouse.move(600, 400)
  await page.evaluate(OBSERVE_FRAMES)
  for (let step = 0; step < SCROLLS; step++) await page.mouse.wheel(0, step < SCROLLS / 2 ? 60 : -60)
  const frames = await page.evaluate<number[]>('frames_')
  await context.close()
  return quantile(frames, 0.95)
}

const PANS = 120
const ZOOMS = 40
const WATCHED_MS = 10_000

/** Frames of the page while something happens. */
const OBSERVE_FRAMES = `
  window.frames_ = []
  let before = 0
  const frame = (now) => { if (before > 0) frames_.push(now - before); before = now; requestAnimationFrame(frame) }
  requestAnimationFrame(frame)
`

/** How long the main thread is busy at a time. Its messages delay the frames of a page that is scrolled. */
const OBSERVE_TASKS = `
  window.busiest = 0
  const { port1, port2 } = new MessageChannel()
  let pinged = performance.now()
  port1.onmessage = () => { const now = performance.now(); busiest = Math.max(busiest, now - pinged); pinged = now; setTimeout(() => { pinged = performance.now(); port2.postMessage(0) }) }
  port2.postMessage(0)
`

/** The topology of a thousand nodes: until it is usable, while it is panned and zoomed, and while it is updated. */
export async function measureTopology({ url }: Simulation, storageState: State): Promise<Figure[]> {
  const context = await knownWindowOf(url, storageState)
  const usable: number[] = []
  const bare: number[] = []
  for (let run = 0; run < RUNS; run++) {
    const page = await slowPage(context)
    await open(page, `${url}/topology`)
    usable.push((await timingsOf(page)).ready)
    bare.push((await measureBare(page, url)).ready)
    await page.close()
  }
  // Without a slow-down.
  const page = await context.newPage()
  await page.goto(`${url}/topology`)
  await ready(page, 'topology')
  const map = page.locator('canvas[data-map]')
  await map.scrollIntoViewIfNeeded()
  const box = await map.boundingBox()
  if (!box) throw new Error('the map is not on the page')
  const [x, y] = [box.x + box.width / 2, box.y + box.height / 2]
  await page.evaluate(OBSERVE_FRAMES)
  await page.mouse.move(x, y)
  await page.mouse.down()
  for (let step = 1; step <= PANS; step++) await page.mouse.move(x + Math.sin(step / 8) * 200, y - step)
  await page.mouse.up()
  await page.keyboard.down('Control')
  for (let step = 0; step < ZOOMS; step++) await page.mouse.wheel(0, step < ZOOMS / 2 ? 40 : -40)
  await page.keyboard.up('Control')
  const frames = await page.evaluate<number[]>('frames_')
  await page.evaluate(OBSERVE_TASKS)
  await page.waitForTimeout(WATCHED_MS)
  const busiest = await page.evaluate<number>('busiest')
  await context.close()
  return [
    figure('1,000 nodes in 300 shards: topology usable after navigation', 1_500, 'ms', median(usable), median(bare)),
    figure('the same: a frame while its map is panned and zoomed, p95', 20, 'ms', quantile(frames, 0.95)),
    figure('the same: the longest task while everything is updated', 50, 'ms', busiest),
  ]
}
