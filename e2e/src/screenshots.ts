/**
 * `npm run screenshots`: every page in light and dark, wide and narrow: with a healthy cluster, with half of the nodes
 * silent, and with a control plane without nodes. For manual review.
 */

import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import type { Browser } from '@playwright/test'
import { openBrowser } from './browser.ts'
import { ready, signIn } from './console.ts'
import { startControlPlane } from './control-plane.ts'
import { makeJobs } from './jobs.ts'
import { pagesOf } from './pages.ts'
import { startStack } from './stack.ts'
import { startWriter } from './writer.ts'

const SIZES = [
  { name: 'wide', width: 1280, height: 900 },
  { name: 'narrow', width: 375, height: 812 },
] as const
const SCHEMES = ['light', 'dark'] as const
/** Charts and ages have settled. */
const SETTLE_MS = 700
/** Two of four nodes have been silent for three rounds. */
const SILENCE_MS = 6_000

const { values } = parseArgs({
  options: {
    out: { type: 'string', default: fileURLToPath(new URL('../test-results/screenshots', import.meta.url)) },
    only: { type: 'string', default: '' },
    states: { type: 'string', default: 'full,failing,empty' },
    help: { type: 'boolean', default: false },
  },
})

type Shown = { readonly url: string; readonly link: string; readonly shard: string }

async function shoot(browser: Browser, { url, link, shard }: Shown, state: string): Promise<number> {
  const context = await browser.newContext({ baseURL: url, reducedMotion: 'reduce' })
  const page = await context.newPage()
  await signIn(page, link)
  if (state !== 'empty') await makeJobs(browser, url, await context.storageState())
  let count = 0
  for (const { name, path } of pagesOf({ shard })) {
    if (values.only !== '' && !values.only.split(',').includes(name)) continue
    for (const size of SIZES) {
      for (const colorScheme of SCHEMES) {
        await page.setViewportSize(size)
        await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
        await page.goto(path)
        await ready(page)
        await page.waitForTimeout(SETTLE_MS)
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

if (values.help) {
  console.log('usage: npm run screenshots [-- --out DIR --only overview,shard --states full,failing,empty]')
} else {
  mkdirSync(values.out, { recursive: true })
  const states = values.states.split(',')
  const browser = await openBrowser()
  let count = 0
  if (states.includes('full')) {
    const stack = await startStack()
    const writer = await startWriter(stack)
    count += await shoot(browser, stack, 'full')
    await writer.stop()
    await stack.stop()
  }
  if (states.includes('failing')) {
    const stack = await startStack()
    const writer = await startWriter(stack)
    for (const node of ['n3', 'n4']) stack.signal(node, 'SIGSTOP')
    await new Promise((resolve) => setTimeout(resolve, SILENCE_MS))
    count += await shoot(browser, stack, 'failing')
    for (const node of ['n3', 'n4']) stack.signal(node, 'SIGCONT')
    await writer.stop()
    await stack.stop()
  }
  if (states.includes('empty')) {
    const empty = await startControlPlane()
    count += await shoot(browser, { ...empty, shard: 'quickstart' }, 'empty')
    await empty.stop()
  }
  await browser.close()
  console.log(`${count} pictures in ${values.out}`)
}
