/** Network links that are cut while a page is open: between control plane and node, and between browser and control plane. */

import { openRelay, type Relay } from '@vacancy/testkit/relay'
import { expect, ready, signIn, test } from './console.ts'
import { type ControlPlane, startControlPlane } from './control-plane.ts'
import { heir, infoOf, row } from './members.ts'

/** Host and port of a URL. */
const placeOf = (url: string) => ({ host: new URL(url).hostname, port: Number(new URL(url).port) })

/** A node counts as down after three rounds, a silent connection after two pings of 5 s. */
const NOTICED_MS = 45_000

test('a node behind a cut link is shown as silent while the others continue, and recovers with the link', async ({
  browser,
  stack,
}) => {
  test.setTimeout(240_000)
  const cables = new Map<string, Relay>()
  let plane: ControlPlane | undefined
  try {
    for (const { id, api } of stack.nodes) cables.set(id, await openRelay(placeOf(api)))
    const nodes = [...cables.values()].map(({ at }) => `http://${at.host}:${at.port}`)
    plane = await startControlPlane(['--nodes', nodes.join(',')])
    const context = await browser.newContext({ baseURL: plane.url, storageState: { cookies: [], origins: [] } })
    const page = await context.newPage()
    await signIn(page, plane.link)
    const [{ leader_id: leader }, target] = [await infoOf(stack), await heir(stack)]
    await page.goto(`/shards/${stack.shard}`)
    await ready(page)
    await expect(row(page, target)).toHaveAttribute('data-state', 'healthy', { timeout: NOTICED_MS })

    cables.get(target)?.cut()

    await expect(row(page, target)).toHaveAttribute('data-state', 'not-answering', { timeout: NOTICED_MS })
    await expect(row(page, leader)).toHaveAttribute('data-state', 'healthy')
    await expect(row(page, leader)).toHaveAttribute('data-role', 'leader')
    await page.goto('/')
    await ready(page)
    await expect(page.getByRole('list', { name: 'Needs attention' })).toContainText(target)

    cables.get(target)?.mend()

    await page.goto(`/shards/${stack.shard}`)
    await expect(row(page, target)).toHaveAttribute('data-state', 'healthy', { timeout: NOTICED_MS })
    await context.close()
  } finally {
    await plane?.stop()
    for (const cable of cables.values()) await cable.close()
  }
})

test('a disconnected browser keeps its content, disables actions, and catches up', async ({ context, stack }) => {
  test.setTimeout(180_000)
  const cable = await openRelay(placeOf(stack.url))
  try {
    const page = await context.newPage()
    const target = await heir(stack)
    await page.goto(`http://${cable.at.host}:${cable.at.port}/shards/${stack.shard}`)
    await ready(page)
    await page.locator('[data-live="live"]').waitFor()
    const act = page.getByRole('button', { name: `Make leader… ${target}` })
    await expect(act).toBeEnabled()
    const banner = page.getByRole('status').filter({ hasText: 'Disconnected from the control plane' })

    cable.cut()

    await expect(banner).toBeVisible({ timeout: NOTICED_MS })
    await expect(act).toBeDisabled()
    await expect(row(page, target)).toHaveAttribute('data-role', 'follower')

    // Meanwhile a connected tab transfers leadership.
    const other = await context.newPage()
    await other.goto(`/shards/${stack.shard}?plan=transfer:${stack.shard}:${target}`)
    await other.getByRole('button', { name: `Transfer leadership to ${target}` }).click()
    await expect.poll(async () => (await infoOf(stack)).leader_id, { timeout: NOTICED_MS }).toBe(target)
    cable.mend()

    await expect(banner).toBeHidden({ timeout: NOTICED_MS })
    await expect(row(page, target)).toHaveAttribute('data-role', 'leader', { timeout: NOTICED_MS })
  } finally {
    await cable.close()
  }
})

test('code that cannot be loaded leaves the page as it is, and is loaded when it is wanted again', async ({ page }) => {
  let loaded = 0
  page.on('request', (request) => {
    if (request.url().includes('/_next/static/')) loaded++
  })
  await page.goto('/')
  await ready(page, 'overview')
  const help = page.getByRole('dialog', { name: 'Keyboard shortcuts' })
  // The parts of this page, and pages that are likely next, have been loaded.
  let before = 0
  const grown = () => {
    const more = loaded - before
    before = loaded
    return more
  }
  await expect.poll(grown, { intervals: [1_000] }).toBe(0)
  await page.route('**/_next/static/**', (route) => route.abort('connectionreset'))

  const notifications = page.getByRole('region', { name: 'Notifications' })

  // On a busy machine the page may not listen to keys yet.
  await expect(async () => {
    await page.keyboard.press('?')
    await expect(notifications).toContainText('could not be shown', { timeout: 10_000 })
  }).toPass({ timeout: NOTICED_MS })
  await expect(page.locator('[data-page="overview"]')).toBeVisible()
  await expect(help).toBeHidden()

  await page.unroute('**/_next/static/**')
  await page.keyboard.press('?')
  await expect(help).toBeVisible()
})

test('a page whose code cannot be loaded is announced while it is awaited, and then says why', async ({ page }) => {
  let giveUp = () => {}
  const isGivenUp = new Promise<void>((resolve) => {
    giveUp = resolve
  })
  await page.goto('/')
  await ready(page, 'overview')
  await page.route('**/_next/static/**', async (route) => {
    await isGivenUp
    await route.abort('connectionreset')
  })
  await page.getByRole('link', { name: 'Audit' }).first().click()
  await expect(page.getByRole('status').filter({ hasText: 'Loading the page' })).toBeVisible()
  await expect(page.locator('[data-page="overview"]')).toBeVisible()
  giveUp()
  await expect(page.getByRole('heading', { name: 'This page failed' })).toBeVisible()
  await expect(page.getByRole('alert').first()).toContainText('code could not be loaded')
  await page.unroute('**/_next/static/**')
  await page.getByRole('button', { name: 'Retry' }).click()
  await expect(page.locator('[data-page="audit"]')).toBeVisible()
})
