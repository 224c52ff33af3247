/**
 * `npm run console -- picture`: the pictures of README.md and docs/console.md. The overview is that of a busy simulated cluster,
 * which runs for some minutes, so that its chart has a history; meanwhile leaders change, a node stops and another one
 * lags. The other pages are those of a real shard under writes.
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
import { startSimulation } from './simulation.ts'
import { startStack } from './stack.ts'
import { startWriter } from './writer.ts'

const VIEWPORT = { width: 1280, height: 800 }
const OVERVIEW = { width: 1280, height: 980 }
/** Sharp on dense displays, and small as a file. */
const SCALE = 1.25
const CLUSTER = ['--nodes', '36', '--shards', '12', '--zones', '3', '--seed', '7']
/** Enough for a coverage of many nights. */
const SHARD = ['--packages', '300000']
const WRITES_PER_SECOND = 100
/** Charts and ages have settled. */
const SETTLE_MS = 2_000
const MINUTE_MS = 60_000

const { values } = parseArgs({
  options: {
    out: { type: 'string', default: fileURLToPath(new URL('../../docs/images', import.meta.url)) },
    minutes: { type: 'string', default: '12' },
    only: { type: 'string', default: 'overview,pages' },
    help: { type: 'boolean', default: false },
  },
})

if (values.help) {
  console.log('usage: npm run console -- picture [-- --out FOLDER --only overview,pages --minutes 12]')
} else {
  const only = values.only.split(',')
  const browser = await openBrowser()
  mkdirSync(values.out, { recursive: true })
  try {
    if (only.includes('pages')) await takePages(browser)
    if (only.includes('overview')) await takeOverview(browser, Number(values.minutes) * MINUTE_MS)
  } finally {
    await browser.close()
  }
}

type Shown = { readonly url: string; readonly link: string }

async function openPage(browser: Browser, { url, link }: Shown, viewport = VIEWPORT, scale = 1): Promise<Page> {
  const context = await browser.newContext({
    ...{ baseURL: url, viewport, deviceScaleFactor: scale },
    ...{ colorScheme: 'light', reducedMotion: 'reduce' },
  })
  const page = await context.newPage()
  await signIn(page, link)
  return page
}

async function take(page: Page, name: string): Promise<void> {
  await sleep(SETTLE_MS)
  const path = join(values.out, `${name}.png`)
  await page.screenshot({ path })
  console.log(path)
}

async function takeOverview(browser: Browser, runMs: number): Promise<void> {
  const simulation = await startSimulation(CLUSTER)
  try {
    await sleep(runMs / 3)
    await simulation.act('lead', { shard: 's5', node: 'n2' })
    await sleep(runMs / 3)
    await simulation.act('lead', { shard: 's2', node: 'n3' })
    await simulation.act('lead', { shard: 's9', node: 'n1' })
    await sleep(runMs / 6)
    // The last events are the ones that need attention.
    await simulation.act('lag', { shard: 's7', node: 'n1', entries: 12_400, perSecond: 8 })
    await sleep(runMs / 12)
    await simulation.act('stop', { shard: 's4', node: 'n2' })
    await sleep(runMs / 12)
    const page = await openPage(browser, simulation, OVERVIEW, SCALE)
    await page.goto('/')
    await ready(page)
    await take(page, 'overview')
  } finally {
    await simulation.stop()
  }
}

/** A plan, a query with its result, and an import with its coverage. */
async function takePages(browser: Browser): Promise<void> {
  const stack = await startStack(SHARD)
  const writer = await startWriter(stack, WRITES_PER_SECOND)
  try {
    const page = await openPage(browser, stack)
    const { nodes } = await (await page.request.get(`/api/v1/shards/${stack.shard}`)).json()
    const target = nodes.find(({ role }: { role: string }) => role === 'follower')?.id ?? 'n2'

    await page.goto('/playground')
    await ready(page)
    // The first run connects.
    for (let run = 0; run < 2; run++) {
      await page.keyboard.press('Control+Enter')
      await sleep(SETTLE_MS)
      await page.locator('[data-result-state="done"]').waitFor()
    }
    await take(page, 'playground')

    await buildImport(page, stack)
    await take(page, 'import')

    // The checks of a plan warn of a leader that is younger.
    await sleep(MINUTE_MS)
    await page.goto(`/shards/${stack.shard}?plan=transfer:${stack.shard}:${target}`)
    await page
      .getByRole('dialog')
      .getByRole('button', { name: /^Transfer leadership to/ })
      .waitFor()
    await take(page, 'plan')
  } finally {
    await writer.stop()
    await stack.stop()
  }
}
