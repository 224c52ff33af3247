/**
 * `npm run picture`: docs/images/overview.png, the overview of a busy cluster. A simulated cluster runs for some minutes,
 * so that the charts have a history; meanwhile leaders change, a node stops and another one lags.
 */

import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { openBrowser } from './browser.ts'
import { ready, signIn } from './console.ts'
import { startSimulation } from './simulation.ts'

const VIEWPORT = { width: 1280, height: 980 }
/** Sharp on dense displays, and small as a file. */
const SCALE = 1.25
const CLUSTER = ['--nodes', '36', '--shards', '12', '--zones', '3', '--seed', '7']
/** Charts and ages have settled. */
const SETTLE_MS = 2_000
const MINUTE_MS = 60_000

const { values } = parseArgs({
  options: {
    out: { type: 'string', default: fileURLToPath(new URL('../../docs/images/overview.png', import.meta.url)) },
    minutes: { type: 'string', default: '12' },
    help: { type: 'boolean', default: false },
  },
})

if (values.help) {
  console.log('usage: npm run picture [-- --out FILE --minutes 12]')
} else {
  await takePicture(Number(values.minutes) * MINUTE_MS)
}

async function takePicture(runMs: number): Promise<void> {
  const simulation = await startSimulation(CLUSTER)
  const browser = await openBrowser()
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
    const context = await browser.newContext({
      baseURL: simulation.url,
      viewport: VIEWPORT,
      deviceScaleFactor: SCALE,
      colorScheme: 'light',
      reducedMotion: 'reduce',
    })
    const page = await context.newPage()
    await signIn(page, simulation.link)
    await page.goto('/')
    await ready(page)
    await sleep(SETTLE_MS)
    await page.screenshot({ path: values.out })
    console.log(values.out)
  } finally {
    await browser.close()
    await simulation.stop()
  }
}
