/** Shard health and leadership, on real nodes. */

import type { Page } from '@playwright/test'
import { expect, ready, test } from './console.ts'
import type { Stack } from './stack.ts'

const PERSISTENT_MS = 20_000

type Info = { leader_id: string; members: { voters: string[]; learners: string[] } }

async function infoOf(stack: Stack): Promise<Info> {
  for (const { api } of stack.nodes) {
    const answer = await fetch(`${api}/cluster/info`, { signal: AbortSignal.timeout(1_000) }).catch(() => undefined)
    if (answer?.ok) {
      const info = (await answer.json()) as Info
      if (info.leader_id !== '') return info
    }
  }
  throw new Error('nobody leads')
}

async function heir(stack: Stack): Promise<string> {
  const { leader_id: leader, members } = await infoOf(stack)
  const other = members.voters.find((voter) => voter !== leader)
  if (other === undefined) throw new Error('there is no other voter')
  return other
}

/** Of the table of members. */
const row = (page: Page, node: string) => page.locator(`tr[data-node="${node}"][data-role]`)

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
  expect((await infoOf(stack)).leader_id).toBe(target)
})

test('the same with the keyboard alone', async ({ page, stack }) => {
  const target = await heir(stack)

  await page.keyboard.press('Control+k')
  await page.getByRole('dialog', { name: 'Commands' }).waitFor()
  await page.keyboard.type(`transfer ${stack.shard} ${target}`)
  await expect(page.getByRole('option').first()).toContainText(new RegExp(`transfer.*${target}`, 'i'))
  await page.keyboard.press('Enter')
  const dialog = page.getByRole('dialog', { name: `Transfer leadership of quickstart to ${target}` })
  await expect(dialog).toBeVisible()
  const act = dialog.getByRole('button', { name: `Transfer leadership to ${target}` })
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
  await expect(row(page, target)).toHaveAttribute('data-state', 'unreachable')
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
