/** Frequent tasks of an operator by keyboard alone, in few steps, with a simulated cluster. */

import { expect, type Page } from '@playwright/test'
import { ready } from './console.ts'
import { simulated } from './simulation.ts'

const SLOW = { shard: 's3', node: 'n2' } as const
/** Whole states are recorded each minute. */
const RECORDED_MS = 90_000
const MOVED_MS = 60_000
/** The bar of the past, on a phone. */
const BAR_PX = 120

const test = simulated(['--nodes', '12', '--shards', '4', '--zones', '2', '--seed', '7', '--spread'])

test.beforeAll(({ simulation }) => simulation.act('slow', SLOW))

/** Chooses an entry of the palette by what is typed. */
async function command(page: Page, typed: string, entry: string): Promise<void> {
  await page.keyboard.press('Control+k')
  await expect(page.getByRole('combobox', { name: 'Search or run a command' })).toBeFocused()
  await page.keyboard.type(typed)
  await expect(page.getByRole('option', { selected: true })).toContainText(entry)
  await page.keyboard.press('Enter')
}

/** Presses Tab until an element has the focus. */
async function tabTo(page: Page, target: ReturnType<Page['locator']>): Promise<void> {
  const has = () => target.evaluate((element) => element === document.activeElement)
  for (let pressed = 0; pressed < 40 && !(await has()); pressed++) await page.keyboard.press('Tab')
  await expect(target).toBeFocused()
}

/** A typed moment has whole seconds. */
const wholeSecond = (ms: number) => new Date(Math.floor(ms / 1_000) * 1_000)

/** As a person types it: in UTC, with seconds. */
const typedTime = (at: Date) => at.toISOString().slice(11, 19)

test('all leaders of a zone are handed over, and brought back', async ({ page }) => {
  await page.goto('/')
  await ready(page, 'overview')

  await command(page, 'prepare zone-1', 'Prepare zone-1 for restart')
  await ready(page, 'new-handover')
  await page.keyboard.press('Control+Enter')
  await ready(page, 'handover')
  await expect(page.getByText(/^No leader is left in zone-1/)).toBeVisible({ timeout: MOVED_MS })
  await tabTo(page, page.getByRole('link', { name: 'Bring leaders back…' }))
  await page.keyboard.press('Enter')
  await ready(page, 'new-handover')
  await page.keyboard.press('Control+Enter')

  await expect(page.getByText('The leaders are back.')).toBeVisible({ timeout: MOVED_MS })
})

test('the node that was slow at a given time is found, with what happened then', async ({ page, simulation }) => {
  let then = new Date()
  const slowest = async () => {
    then = wholeSecond(Date.now() - 1_000)
    const answer = await page.request.get(`/api/v1/past/summary?at=${then.toISOString()}`)
    const { shards = [] } = await answer.json()
    return shards.find(({ id }: { id: string }) => id === SLOW.shard)?.rates.p99 ?? 0
  }
  await expect.poll(slowest, { timeout: RECORDED_MS }).toBeGreaterThan(100)
  await simulation.act('fast', SLOW)
  await page.goto('/')
  await ready(page, 'overview')

  await command(page, typedTime(then), `Cluster at ${typedTime(then)}`)
  await expect(page.locator('[data-past]')).toBeVisible()
  await tabTo(page, page.getByRole('button', { name: /^Read p99/ }))
  await page.keyboard.press('Enter')
  await tabTo(
    page,
    page
      .getByRole('region', { name: /^Load, latency/ })
      .getByRole('link')
      .first(),
  )
  await page.keyboard.press('Enter')
  await ready(page, 'shard')
  await expect(page).toHaveURL(new RegExp(`/shards/${SLOW.shard}\\?at=`))
  const row = page.locator(`tr[data-node="${SLOW.node}"][data-role]`)
  await expect(row).toContainText(/2\d\d.ms/)
  await tabTo(page, row.getByRole('link').first())
  await page.keyboard.press('Enter')

  await ready(page, 'node')
  // The rule of a healthy state is folded.
  await expect(page.getByRole('button', { name: 'Show why this state' })).toHaveAttribute('aria-expanded', 'false')
  await expect(page.getByRole('region', { name: 'Events' })).toBeVisible()
  await expect(page.locator('figure[data-chart="Read p99"]').first()).toBeVisible()
})

test('what changed between two moments is read', async ({ page, simulation }) => {
  await page.goto('/shards/s4')
  await ready(page, 'shard')
  const target = (await page.locator('tr[data-role="follower"]').first().getAttribute('data-node')) ?? ''
  let then = new Date()
  const isRecorded = async () => {
    then = wholeSecond(Date.now() - 1_000)
    return (await page.request.get(`/api/v1/past/summary?at=${then.toISOString()}`)).ok()
  }
  await expect.poll(isRecorded).toBe(true)
  await simulation.act('lead', { shard: 's4', node: target })
  await expect(page.locator(`tr[data-node="${target}"][data-role="leader"]`)).toBeVisible()

  await command(page, typedTime(then), `Cluster at ${typedTime(then)}`)
  await expect(page.getByRole('slider', { name: 'Time' })).toBeVisible()
  await page.keyboard.press('c')
  const changes = page.getByRole('dialog', { name: 'What changed' })
  await expect(changes.getByLabel('From (UTC)')).toBeFocused()
  await page.keyboard.press('Control+a')
  await page.keyboard.type(typedTime(then))
  await page.keyboard.press('Tab')
  await page.keyboard.press('Control+a')
  await page.keyboard.type('now')
  await page.keyboard.press('Enter')

  await expect(changes.locator('[data-change="leader"]')).toContainText(`→ ${target}`)
  await page.keyboard.press('Escape')
  await page.setViewportSize({ width: 390, height: 844 })
  await expect(page.getByRole('button', { name: 'Show more controls' })).toBeVisible()
  // On a phone the bar used to take a third of the screen.
  expect((await page.locator('[data-past]').boundingBox())?.height).toBeLessThanOrEqual(BAR_PX)
})
