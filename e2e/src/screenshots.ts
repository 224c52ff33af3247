/**
 * `npm run console -- screenshots`: every page in light and dark, wide and narrow: with a healthy cluster, with half of the nodes
 * silent, and with a control plane without nodes; and of simulated clusters the pages that differ there: 300 shards, a
 * lost quorum, and the past. Names pages that scroll sideways. For manual review.
 */

import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import type { Browser, Page } from '@playwright/test'
import { openBrowser } from './browser.ts'
import { buildImport } from './build-import.ts'
import { ready, signIn } from './console.ts'
import { startControlPlane } from './control-plane.ts'
import { makeJobs } from './jobs.ts'
import { type PageOf, pagesOf } from './pages.ts'
import { type Simulation, startSimulation } from './simulation.ts'
import { type Stack, startStack } from './stack.ts'
import { startWriter } from './writer.ts'

const SIZES = [
  { name: 'wide', width: 1440, height: 900 },
  { name: 'narrow', width: 390, height: 844 },
] as const
const SCHEMES = ['light', 'dark'] as const
/** Charts and ages have settled. */
const SETTLE_MS = 700
/** Two of four nodes have been silent for three rounds. */
const SILENCE_MS = 6_000
/** A part of the charts is filled, and changes are separate events. */
const HISTORY_MS = 30_000
const STATES = 'full,failing,empty,fleet,quorum,past'

const { values } = parseArgs({
  options: {
    out: { type: 'string', default: fileURLToPath(new URL('../test-results/screenshots', import.meta.url)) },
    only: { type: 'string', default: '' },
    states: { type: 'string', default: STATES },
    help: { type: 'boolean', default: false },
  },
})

type Shown = { readonly url: string; readonly link: string }

/** @param prepare makes data by hand, and returns pages of it */
async function shoot(
  browser: Browser,
  { url, link }: Shown,
  state: string,
  pages: readonly PageOf[],
  prepare: (page: Page) => Promise<readonly PageOf[]> = async () => [],
): Promise<number> {
  const context = await browser.newContext({ baseURL: url, reducedMotion: 'reduce' })
  const page = await context.newPage()
  await signIn(page, link)
  let count = 0
  for (const { name, path } of [...pages, ...(await prepare(page))]) {
    if (values.only !== '' && !values.only.split(',').includes(name)) continue
    for (const size of SIZES) {
      for (const colorScheme of SCHEMES) {
        await page.setViewportSize(size)
        await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
        await page.goto(path)
        await ready(page)
        await page.waitForTimeout(SETTLE_MS)
        const sideways = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)
        if (sideways > 0) console.log(`${state}  ${name} scrolls sideways by ${sideways} px at ${size.width} px`)
        const file = join(values.out, `${name}.${state}.${size.name}.${colorScheme}.png`)
        await page.screenshot({ path: file, fullPage: size.name === 'wide' })
        count++
      }
    }
    console.log(`${state}  ${name}`)
  }
  await context.close()
  return count
}

/** Jobs, and an import that was built. */
async function makeData(browser: Browser, page: Page, stack: Stack): Promise<readonly PageOf[]> {
  await makeJobs(browser, stack.url, await page.context().storageState())
  await buildImport(page, stack)
  const { nodes } = await (await page.request.get(`/api/v1/shards/${stack.shard}`)).json()
  const follower = nodes.find(({ role }: { role: string }) => role === 'follower')?.id ?? 'n2'
  return [
    { name: 'import', path: new URL(page.url()).pathname },
    { name: 'plan-of-follower', path: `/shards/${stack.shard}?plan=transfer:${stack.shard}:${follower}` },
  ]
}

async function simulated(args: readonly string[], take: (simulation: Simulation) => Promise<number>): Promise<number> {
  const simulation = await startSimulation(args)
  try {
    return await take(simulation)
  } finally {
    await simulation.stop()
  }
}

function takeFleet(browser: Browser): Promise<number> {
  const pages = [
    { name: 'overview', path: '/' },
    { name: 'shards', path: '/shards' },
    { name: 'topology', path: '/topology' },
    { name: 'dashboard', path: '/dashboards/engine' },
    { name: 'new-handover', path: '/operations/handovers/new?zone=zone-1' },
  ]
  return simulated(['--nodes', '900', '--shards', '300', '--zones', '3', '--seed', '7'], async (simulation) => {
    await sleep(HISTORY_MS)
    await simulation.act('lag', { shard: 's7', node: 'n1', entries: 12_400, perSecond: 8 })
    await simulation.act('stop', { shard: 's4', node: 'n2' })
    await sleep(SILENCE_MS)
    return shoot(browser, simulation, 'fleet', pages)
  })
}

function takeQuorumLost(browser: Browser): Promise<number> {
  const pages = [
    { name: 'overview', path: '/' },
    { name: 'shard', path: '/shards/s1' },
    { name: 'node', path: '/shards/s1/nodes/n1' },
    { name: 'stopped-node', path: '/shards/s1/nodes/n2' },
    { name: 'plan', path: '/shards/s1?plan=transfer:s1:n2' },
  ]
  return simulated(['--nodes', '36', '--shards', '12', '--zones', '3', '--seed', '7'], async (simulation) => {
    await sleep(HISTORY_MS)
    for (const node of ['n2', 'n3']) await simulation.act('stop', { shard: 's1', node })
    await sleep(SILENCE_MS)
    return shoot(browser, simulation, 'quorum', pages)
  })
}

/** The moment is before a change of leader, with a node that lags. */
function takePast(browser: Browser): Promise<number> {
  return simulated(['--nodes', '36', '--shards', '12', '--zones', '3', '--seed', '7'], async (simulation) => {
    await sleep(HISTORY_MS)
    await simulation.act('lag', { shard: 's1', node: 'n2', entries: 60_000 })
    await sleep(2 * HISTORY_MS)
    const at = new Date().toISOString()
    await sleep(SILENCE_MS)
    await simulation.act('lead', { shard: 's1', node: 'n3' })
    await sleep(SILENCE_MS)
    return shoot(browser, simulation, 'past', [
      { name: 'overview', path: `/?at=${at}` },
      { name: 'shard', path: `/shards/s1?at=${at}` },
      { name: 'node', path: `/shards/s1/nodes/n2?at=${at}` },
      { name: 'shard-events', path: `/shards/s1/events?at=${at}` },
      { name: 'playground', path: `/playground?at=${at}` },
    ])
  })
}

const states = values.states.split(',')
const unknown = states.find((state) => !STATES.split(',').includes(state))

if (values.help) {
  console.log(`usage: npm run console -- screenshots [-- --out DIR --only overview,shard --states ${STATES}]`)
} else if (unknown !== undefined) {
  console.error(`screenshots: --states: there is no ${unknown}; there are ${STATES}`)
  process.exitCode = 64
} else {
  mkdirSync(values.out, { recursive: true })
  const browser = await openBrowser()
  let count = 0
  if (states.includes('full')) {
    const stack = await startStack()
    const writer = await startWriter(stack)
    count += await shoot(browser, stack, 'full', pagesOf(stack), (page) => makeData(browser, page, stack))
    await writer.stop()
    await stack.stop()
  }
  if (states.includes('failing')) {
    const stack = await startStack()
    const writer = await startWriter(stack)
    for (const node of ['n3', 'n4']) stack.signal(node, 'SIGSTOP')
    await sleep(SILENCE_MS)
    count += await shoot(browser, stack, 'failing', pagesOf(stack))
    for (const node of ['n3', 'n4']) stack.signal(node, 'SIGCONT')
    await writer.stop()
    await stack.stop()
  }
  if (states.includes('empty')) {
    const empty = await startControlPlane()
    count += await shoot(browser, empty, 'empty', pagesOf({ shard: 'quickstart' }))
    await empty.stop()
  }
  if (states.includes('fleet')) count += await takeFleet(browser)
  if (states.includes('quorum')) count += await takeQuorumLost(browser)
  if (states.includes('past')) count += await takePast(browser)
  await browser.close()
  console.log(`${count} pictures in ${values.out}`)
  if (count === 0) {
    console.error(`screenshots: --only: no page is named ${values.only}`)
    process.exitCode = 64
  }
}
