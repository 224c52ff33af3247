/** The topology: a killed bridge with what it cuts off, the route of a segment by keyboard, and accessibility. */

import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from '@playwright/test'
import { ready } from './console.ts'
import { simulated } from './simulation.ts'
import { violationsOf } from './violations.ts'

const PICTURES = join(import.meta.dirname, '../screenshots')
/** Shown within 3 s. */
const SHOWN_MS = 3_000
/** The past is known once all shards were recorded. */
const RECORDED_MS = 20_000
const SIZES = [
  { size: 'wide', viewport: { width: 1440, height: 900 } },
  { size: 'medium', viewport: { width: 1000, height: 800 } },
  { size: 'narrow', viewport: { width: 390, height: 844 } },
] as const

const test = simulated(['--nodes', '18', '--shards', '6', '--zones', '2', '--seed', '7', '--fabric'])

test('a killed bridge is shown within 3 s, with what it cuts off, and leaves the problems when it is back', async ({
  page,
  simulation,
}) => {
  await page.goto('/topology?view=table')
  await ready(page, 'topology')
  const bridge = page.locator('tr[data-thing="bridge b-s2"]')
  await expect(bridge).toHaveAttribute('data-state', 'ready')

  await simulation.act('stop-component', { component: 'b-s2' })
  const problem = page.locator('[data-component="bridge b-s2"]')
  await expect(problem).toHaveAttribute('data-state', 'unreachable', { timeout: SHOWN_MS })
  await expect(problem.locator('[data-cut]')).toHaveText(
    'Cut off: Shard s2 (3 segments): no bridge is left, reads and writes get 503.',
  )
  await expect(page.locator('tr[data-thing="shard s2"]')).toContainText('Cut off')

  await problem.getByRole('button').click()
  const inspector = page.locator('[data-inspector="bridge b-s2"]')
  await expect(inspector).toContainText('The registry lists it, but it does not respond')
  let then = ''
  const recorded = async () => {
    then = new Date(Date.now() - 1_000).toISOString()
    const past = await (await page.request.get(`/api/v1/past/topology?at=${then}`)).json()
    return past.components?.find(({ key }: { key: string }) => key === 'bridge b-s2')?.state
  }
  await expect.poll(recorded, { timeout: RECORDED_MS }).toBe('unreachable')

  await simulation.act('start-component', { component: 'b-s2' })
  await expect(problem).toHaveCount(0)
  await expect(bridge).toHaveAttribute('data-state', 'ready')

  await page.goto(`/topology?view=table&at=${then}`)
  await expect(bridge).toHaveAttribute('data-state', 'unreachable')
  await expect(page.getByText('the past has none')).toBeVisible()
})

test('the route of a segment is three steps from home by keyboard: palette, name, Enter', async ({ page }) => {
  await page.goto('/')
  await ready(page, 'overview')

  await page.keyboard.press('Control+k')
  await expect(page.getByRole('combobox', { name: 'Search or run a command' })).toBeFocused()
  await page.keyboard.type('route s3-segment-1')
  await expect(page.getByRole('option', { selected: true })).toContainText('Route of s3-segment-1')
  await page.keyboard.press('Enter')

  await ready(page, 'topology')
  await expect(page.getByRole('region', { name: 'Route of s3-segment-1' })).toContainText('goes to shard s3')
  await expect(page.locator('[data-hop="bridge b-s3"]')).toContainText('Writes to')
  await expect(page.locator('[data-hop="node s3/n1"]')).toBeVisible()
})

test('the tree of the map is walked by keyboard, and the inspector follows', async ({ page }) => {
  await page.goto('/')
  await ready(page, 'overview')
  await page.keyboard.press('g')
  await page.keyboard.press('t')
  await ready(page, 'topology')

  const tree = page.getByRole('tree')
  await tree.focus()
  await page.keyboard.press('End')
  await expect(page.getByRole('treeitem', { selected: true })).toHaveAttribute('data-thing', /^shard s/)
  await page.keyboard.press('ArrowRight')
  await page.keyboard.press('ArrowRight')
  await expect(page.getByRole('treeitem', { selected: true })).toHaveAttribute('data-thing', /^bridge b-s/)
  await expect(page.locator('[data-inspector^="bridge b-s"]')).toContainText('Sends to')
  await page.keyboard.press('ArrowLeft')
  await expect(page.getByRole('treeitem', { selected: true })).toHaveAttribute('data-thing', /^shard s/)
})

test('a component is found by its name, and the map flows unless motion is unwanted', async ({ page }) => {
  await page.goto('/topology?view=map&collapse=zone-1,zone-2')
  await ready(page, 'topology')
  await expect(page.locator('canvas[data-flow]')).toHaveAttribute('data-flow', 'moving')
  const find = page.getByRole('combobox', { name: 'Find…' })
  await find.fill('b-s4')
  await expect(page.getByRole('listbox').getByRole('option')).toHaveText([/bridge b-s4/])
  await page.keyboard.press('Enter')
  await expect(page.locator('[data-inspector="bridge b-s4"]')).toContainText('Sends to')
  await expect(page.getByRole('treeitem', { selected: true })).toHaveAttribute('data-thing', 'bridge b-s4')
  await expect(find).toHaveValue('')

  await page.emulateMedia({ reducedMotion: 'reduce' })
  await expect(page.locator('canvas[data-flow]')).toHaveCount(0)
})

test('without room beside the map the inspector is a drawer, which walking the map does not open', async ({ page }) => {
  await page.setViewportSize({ width: 1000, height: 800 })
  await page.goto('/topology?view=map')
  await ready(page, 'topology')
  const tree = page.getByRole('tree')
  await tree.focus()
  await page.keyboard.press('Home')
  const selected = page.getByRole('treeitem', { selected: true })
  const key = (await selected.getAttribute('data-thing')) as string
  await expect(page.getByRole('dialog')).toHaveCount(0)

  await page.keyboard.press('Enter')
  await expect(page.getByRole('dialog').locator(`[data-inspector="${key}"]`)).toBeVisible()
  expect(await violationsOf(page, 'light')).toEqual([])
  await page.keyboard.press('Escape')
  await expect(page.getByRole('dialog')).toHaveCount(0)
  await expect(tree).toBeFocused()
})

test('segments of the registry lead to their route', async ({ page }) => {
  await page.goto('/registry/datasets?filter=s4')
  await ready(page, 'registry-datasets')
  await expect(page.locator('tr[data-segment]')).toHaveCount(3)
  await page.getByRole('link', { name: 'Show route of s4-segment-2' }).click()
  await expect(page.getByRole('region', { name: 'Route of s4-segment-2' })).toContainText('goes to shard s4')
})

for (const { name, path } of [
  { name: 'topology-map', path: '/topology?view=map&focus=bridge%20b-s1' },
  { name: 'topology-table', path: '/topology?view=table' },
  { name: 'topology-text', path: '/topology?view=text' },
  { name: 'topology-route', path: '/topology?segment=s1-segment-1' },
  { name: 'registry-datasets', path: '/registry/datasets' },
]) {
  test(`${name} has no violation in light and dark`, async ({ page, simulation }) => {
    mkdirSync(PICTURES, { recursive: true })
    await simulation.act('stop-component', { component: 'b-s5' })
    await page.emulateMedia({ reducedMotion: 'reduce' })
    await page.goto(path)
    await ready(page)
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
      expect(await violationsOf(page, colorScheme)).toEqual([])
      for (const { size, viewport } of SIZES) {
        await page.setViewportSize(viewport)
        const sideways = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)
        expect(sideways).toBeLessThanOrEqual(0)
        await page.screenshot({ path: join(PICTURES, `${name}.${size}.${colorScheme}.png`) })
      }
    }
  })
}
