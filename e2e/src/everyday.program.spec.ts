/** What people do every day, on a shard of real nodes: the browser tests of every run. */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, ready, test } from './console.ts'
import { flowOf, install, newImport, rowsOf, sampleWithPrice } from './import-steps.ts'
import { heir, infoOf, row } from './members.ts'
import { pricesAt } from './prices.ts'

test('shard health: the overview leads to a shard and to each of its members', async ({ page, stack }) => {
  await expect.poll(async () => (await infoOf(stack)).leader_id).toMatch(/^n\d$/)
  const { leader_id: leader, members } = await infoOf(stack)
  await page.goto('/')
  await ready(page)

  await page.locator(`[data-shard="${stack.shard}"][data-node="${leader}"]`).first().click()
  await ready(page)

  await expect(row(page, leader)).toHaveAttribute('data-role', 'leader')
  for (const voter of members.voters.filter((id) => id !== leader))
    await expect(row(page, voter)).toHaveAttribute('data-role', 'follower')
  for (const learner of members.learners) await expect(row(page, learner)).toHaveAttribute('data-role', 'learner')
})

test('leadership is transferred to a follower in three clicks from the overview, and the page shows it', async ({
  page,
  stack,
}) => {
  await page.goto('/')
  await ready(page)
  const target = await heir(stack)

  await page.locator(`[data-shard="quickstart"][data-node="${target}"]`).first().click()
  await ready(page)
  await page.getByRole('button', { name: `Make leader… ${target}` }).click()
  const dialog = page.getByRole('dialog', { name: `Transfer leadership of quickstart to ${target}` })
  await expect(dialog.locator('[data-check][data-level="block"]')).toHaveCount(0)
  await dialog.getByRole('button', { name: `Transfer leadership to ${target}` }).click()

  await expect(page.locator('[data-op-state="done"]').first()).toBeVisible()
  await expect(row(page, target)).toHaveAttribute('data-role', 'leader')
  // The first queried node may learn of the new leader last.
  await expect.poll(async () => (await infoOf(stack)).leader_id).toBe(target)

  const timeline = page.getByRole('region', { name: 'Leadership timeline, last 24 h' })
  await expect(timeline.locator('[data-stretch="leader"]').last()).toHaveAttribute('data-leader', target)
  await expect(timeline).toContainText(/\d election/)
  // The shard is younger than a day: the time before is shown as unknown.
  await expect(timeline.locator('[data-stretch]').first()).toHaveAttribute('data-stretch', 'unknown')
  await timeline.getByRole('button', { name: 'Show as table' }).click()
  await expect(timeline.getByRole('table', { name: 'Leadership' }).getByRole('row').nth(1)).toContainText(target)
})

test('two CSV files are uploaded, built into a snapshot and installed, and all nodes have the new prices', async ({
  page,
  stack,
}) => {
  test.setTimeout(240_000)
  const folder = mkdtempSync(join(tmpdir(), 'vacancy-e2e-csv-'))
  await newImport(page, 'everyday', sampleWithPrice(stack, folder, 55))

  await page.getByRole('button', { name: 'Upload and build' }).click()
  await expect(flowOf(page, 'everyday')).toHaveAttribute('data-import-state', 'built', { timeout: 90_000 })
  await install(page)

  for (const node of stack.nodes) {
    await expect.poll(async () => [...new Set(await pricesAt(node, rowsOf(stack)))], { timeout: 60_000 }).toEqual([55])
  }
  rmSync(folder, { recursive: true, force: true })
})

test('the playground opens with a query and its results, which runs again with one key', async ({ page }) => {
  await page.goto('/playground')
  await ready(page)
  const result = page.locator('[data-result-count]')
  await expect(result).toBeVisible()
  await page.keyboard.press('Control+Enter')
  expect(Number(await result.getAttribute('data-result-count'))).toBeGreaterThan(0)
  for (const view of ['Calendar', 'Map', 'JSON', 'Wire', 'Timing', 'Table']) {
    await page.getByRole('tablist', { name: 'Result as' }).getByRole('tab', { name: view }).click()
    await expect(page.getByRole('tabpanel', { name: view })).toBeVisible()
  }
})

test('a job that is submitted to a new topic is seen in the queue', async ({ page }) => {
  const topic = `everyday-${Date.now()}`
  await page.goto('/queue')
  await ready(page)
  await page.getByRole('button', { name: 'New topic' }).first().click()
  await page.getByRole('textbox', { name: /^Name/ }).fill(topic)
  await page.getByRole('textbox', { name: /^Name/ }).press('Enter')
  await ready(page, 'queue-topic')

  await page.getByRole('button', { name: 'Submit job' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByRole('textbox', { name: /^Job ID/ }).fill('first')
  await dialog.getByRole('textbox', { name: 'Payload' }).fill('{"hotel":"h-1"}')
  await dialog.getByRole('button', { name: `Submit to ${topic}` }).click()
  await page.getByRole('link', { name: 'Open job' }).click()

  await ready(page, 'queue-job')
  await expect(page.getByRole('heading', { level: 1 })).toHaveText('first')
  await expect(page.getByRole('tabpanel')).toContainText('"hotel": "h-1"')
})
