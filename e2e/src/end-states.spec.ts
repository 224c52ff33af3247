/** Every way in which an operation can end, in words, over a simulated cluster that does as it is told. */

import { type BrowserContext, test as base, expect, type Page } from '@playwright/test'
import { ready, signIn } from './console.ts'
import { type Simulation, startSimulation } from './simulation.ts'

/** An operation is called unconfirmed 30 s after it was asked for. */
const END_MS = 50_000

/** The link signs in once. */
let state: Awaited<ReturnType<BrowserContext['storageState']>> | undefined

const test = base.extend<{ signedIn: Page }, { simulation: Simulation }>({
  simulation: [
    async ({ browserName: _ }, use) => {
      const simulation = await startSimulation(['--nodes', '24', '--shards', '8', '--zones', '2', '--seed', '7'])
      await use(simulation)
      await simulation.stop()
    },
    { scope: 'worker', timeout: 90_000 },
  ],
  signedIn: [
    async ({ browser, simulation }, use) => {
      state ??= await (async () => {
        const context = await browser.newContext()
        await signIn(await context.newPage(), simulation.link)
        const signed = await context.storageState()
        await context.close()
        return signed
      })()
      const context = await browser.newContext({
        baseURL: simulation.url,
        storageState: state,
        viewport: { width: 1280, height: 800 },
      })
      await use(await context.newPage())
      await context.close()
    },
    { scope: 'test' },
  ],
})

/** Opens the shard and asks for leadership to go to its first follower. */
async function transfer(page: Page, shard: string): Promise<string> {
  await page.goto(`/shards/${shard}`)
  await ready(page)
  const target = (await page.locator('tr[data-role="follower"]').first().getAttribute('data-node')) ?? ''
  await page.goto(`/shards/${shard}?plan=transfer:${shard}:${target}`)
  const dialog = page.getByRole('dialog')
  const reason = dialog.getByLabel(/^Reason/)
  if (await reason.isVisible()) await reason.fill('a test of how it ends')
  await dialog.getByRole('button', { name: `Transfer leadership to ${target}` }).click()
  return target
}

const ended = (page: Page, end: string) => page.locator(`[data-op-state="${end}"]`).first()

test('done', async ({ signedIn: page }) => {
  await transfer(page, 's1')
  await expect(ended(page, 'done')).toBeVisible({ timeout: END_MS })
})

test('elsewhere', async ({ signedIn: page, simulation }) => {
  await page.goto('/shards/s2')
  await ready(page)
  const other = (await page.locator('tr[data-role="follower"]').last().getAttribute('data-node')) ?? ''
  await simulation.act('elsewhere', { shard: 's2', node: other })
  const target = await transfer(page, 's2')
  await expect(ended(page, 'elsewhere')).toContainText(`Leadership went to ${other}, not ${target}`, {
    timeout: END_MS,
  })
})

test('refused', async ({ signedIn: page, simulation }) => {
  await simulation.act('refuse', { shard: 's3', status: 409, text: 'a <b>change</b> is running' })
  await transfer(page, 's3')
  await expect(ended(page, 'refused')).toBeVisible({ timeout: END_MS })
  await expect(page.getByText('answered 409: a <b>change</b> is running').first()).toBeVisible()
})

test('no change', async ({ signedIn: page, simulation }) => {
  await simulation.act('never', { shard: 's4' })
  await transfer(page, 's4')
  await expect(ended(page, 'no-change')).toBeVisible({ timeout: END_MS })
})

test('unconfirmed, when nobody says anything any more', async ({ signedIn: page, simulation }) => {
  await simulation.act('hang', { shard: 's5' })
  await transfer(page, 's5')
  for (const node of ['n1', 'n2', 'n3']) await simulation.act('silent', { shard: 's5', node })
  await expect(ended(page, 'unconfirmed')).toBeVisible({ timeout: END_MS })
})

test('a plan is refused with a new one when the leader changed meanwhile', async ({ signedIn: page, simulation }) => {
  await page.goto('/shards/s6')
  await ready(page)
  const followers = page.locator('tr[data-role="follower"]')
  const [first, second] = [
    await followers.first().getAttribute('data-node'),
    await followers.last().getAttribute('data-node'),
  ]
  await page.goto(`/shards/s6?plan=transfer:s6:${first}`)
  const act = page.getByRole('dialog').getByRole('button', { name: `Transfer leadership to ${first}` })
  await expect(act).toBeVisible()

  await simulation.act('lead', { shard: 's6', node: first ?? '' })

  await expect(act).toHaveAttribute('aria-disabled', 'true')
  await expect(page.getByRole('dialog').locator('[data-check][data-level="block"]').first()).toBeVisible()
  expect(second).not.toBe(first)
})

test('the overview and a shard say what is wrong, and who did not answer', async ({ signedIn: page, simulation }) => {
  await simulation.act('garbage', { shard: 's7', node: 'n2' })
  await simulation.act('lag', { shard: 's8', node: 'n2', entries: 60_000 })
  await page.goto('/shards/s7')
  await ready(page)
  await expect(page.locator('tr[data-node="n2"][data-role]')).toHaveAttribute('data-state', 'unknown', {
    timeout: 30_000,
  })
  await page.goto('/')
  await ready(page)

  const attention = page.getByRole('region', { name: 'Attention' })
  await expect(attention).toContainText(/s8 \/ \S+ is far behind/, { timeout: 30_000 })
})
