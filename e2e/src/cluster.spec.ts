/** Shard health and leadership, on real nodes. */

import { expect, ready, test } from './console.ts'
import { heir, infoOf, row } from './members.ts'

const PERSISTENT_MS = 45_000
const CHUNK_MS = 700

test.beforeEach(async ({ stack, page }) => {
  await expect.poll(async () => (await infoOf(stack)).leader_id, { timeout: PERSISTENT_MS }).toMatch(/^n\d$/)
  await page.goto('/')
  await ready(page)
})

test('from the overview leadership goes to a follower in three clicks, and the page shows it', async ({
  page,
  stack,
}) => {
  const target = await heir(stack)

  await page.locator(`[data-shard="quickstart"][data-node="${target}"]`).first().click()
  await ready(page)
  await page.getByRole('button', { name: `Make leader… ${target}` }).click()
  const dialog = page.getByRole('dialog', { name: `Transfer leadership of quickstart to ${target}` })
  await expect(dialog.locator('[data-check][data-level="block"]')).toHaveCount(0)
  await dialog.getByRole('button', { name: `Transfer leadership to ${target}` }).click()

  await expect(page.locator('[data-op-state="done"]').first()).toBeVisible()
  await expect(row(page, target)).toHaveAttribute('data-role', 'leader')
  // Whoever is asked first may hear of it last.
  await expect.poll(async () => (await infoOf(stack)).leader_id).toBe(target)
})

test('the same with the keyboard alone', async ({ page, stack }) => {
  const target = await heir(stack)

  // The code of the palette comes late: what is typed meanwhile is not lost.
  await page.route('**/_next/static/**', async (route) => {
    await new Promise((resolve) => setTimeout(resolve, CHUNK_MS))
    await route.continue()
  })
  await page.keyboard.press('Control+k')
  await page.keyboard.type(`transfer ${stack.shard} ${target}`)
  await expect(page.getByRole('option').first()).toContainText(new RegExp(`transfer.*${target}`, 'i'))
  await page.keyboard.press('Enter')
  const dialog = page.getByRole('dialog', { name: `Transfer leadership of quickstart to ${target}` })
  await expect(dialog).toBeVisible()
  const act = dialog.getByRole('button', { name: `Transfer leadership to ${target}` })
  await expect(act).toBeEnabled()
  for (let presses = 0; presses < 40; presses++) {
    if (await act.evaluate((button) => button === document.activeElement)) break
    await page.keyboard.press('Tab')
  }
  await page.keyboard.press('Enter')

  await expect(page.locator('[data-op-state="done"]').first()).toBeVisible()
  await expect.poll(async () => (await infoOf(stack)).leader_id).toBe(target)
})

test('a learner is promoted and demoted again; the audit log says who did it', async ({ page, stack }) => {
  await page.goto(`/shards/${stack.shard}`)
  await ready(page)

  await page.getByRole('button', { name: 'Promote… n4' }).click()
  await page
    .getByRole('dialog')
    .getByRole('button', { name: /^Promote n4/ })
    .click()
  await expect.poll(async () => (await infoOf(stack)).members.voters, { timeout: 60_000 }).toContain('n4')
  await expect(row(page, 'n4')).toHaveAttribute('data-role', 'follower')

  await page.getByRole('button', { name: 'Demote… n4' }).click()
  await page
    .getByRole('dialog')
    .getByRole('button', { name: /^Demote n4/ })
    .click()
  await expect.poll(async () => (await infoOf(stack)).members.learners, { timeout: 60_000 }).toContain('n4')
  await expect(row(page, 'n4')).toHaveAttribute('data-role', 'learner')

  await page.goto('/audit')
  await ready(page)
  await expect(page.getByRole('row').filter({ hasText: 'operation.start' }).first()).toContainText(/admin.*n4/)
})

test('a node that is killed is shown as what it is, and comes back', async ({ page, stack }) => {
  const target = await heir(stack)
  await page.goto(`/shards/${stack.shard}`)
  await ready(page)

  stack.signal(target, 'SIGKILL')
  // It is started again after 5 s: what is there for so short a time is looked for without pauses.
  await page.locator(`tr[data-node="${target}"][data-role][data-state="unreachable"]`).waitFor()
  await expect(row(page, target)).toHaveAttribute('data-state', 'healthy', { timeout: 60_000 })
})

test('with half of the nodes silent every page still says what it knows', async ({ page, stack }) => {
  const { leader_id: leader } = await infoOf(stack)
  const silent = stack.nodes
    .map(({ id }) => id)
    .filter((id) => id !== leader)
    .slice(0, 2)
  for (const node of silent) stack.signal(node, 'SIGSTOP')
  try {
    await page.goto(`/shards/${stack.shard}`)
    for (const node of silent) await expect(row(page, node)).toHaveAttribute('data-state', 'not-answering')
    for (const path of [
      '/',
      '/shards',
      `/shards/${stack.shard}`,
      '/operations',
      '/audit',
      '/playground',
      '/registry/services',
    ]) {
      await page.goto(path)
      await ready(page)
    }
    await page.goto('/')
    await ready(page)
    await expect(page.getByRole('region', { name: 'Attention' })).toContainText(silent[0] as string)
  } finally {
    for (const node of silent) stack.signal(node, 'SIGCONT')
  }
  await page.goto(`/shards/${stack.shard}`)
  for (const node of silent) await expect(row(page, node)).toHaveAttribute('data-state', 'healthy', { timeout: 60_000 })
})

test('two tabs show the same change', async ({ page, context, stack }) => {
  const target = await heir(stack)
  const other = await context.newPage()
  for (const tab of [page, other]) {
    await tab.goto(`/shards/${stack.shard}`)
    await ready(tab)
    await expect(tab.locator('[data-live="live"]')).toBeVisible()
  }

  await page.getByRole('button', { name: `Make leader… ${target}` }).click()
  await page
    .getByRole('dialog')
    .getByRole('button', { name: `Transfer leadership to ${target}` })
    .click()

  await expect(row(other, target)).toHaveAttribute('data-role', 'leader')
})
