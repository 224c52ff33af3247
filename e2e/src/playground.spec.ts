/** Queries from the form to the answer of a real shard. */

import { expect, ready, test } from './console.ts'

test.beforeEach(async ({ page }) => {
  await page.goto('/playground')
  await ready(page)
})

test('it opens with a query that finds something, run with one key', async ({ page }) => {
  await page.keyboard.press('Control+Enter')

  const result = page.locator('[data-result-count]')
  await expect(result).toBeVisible()
  expect(Number(await result.getAttribute('data-result-count'))).toBeGreaterThan(0)
  for (const view of ['Calendar', 'Map', 'JSON', 'Wire', 'Timing', 'Table']) {
    await page.getByRole('tablist', { name: 'Result as' }).getByRole('tab', { name: view }).click()
    await expect(page.getByRole('tabpanel', { name: view })).toBeVisible()
  }
})

test('a property that is missing is explained, and all replicas answer the same', async ({ page }) => {
  await page.getByRole('button', { name: 'Why not…' }).click()
  const why = page.getByRole('dialog')
  await why.getByLabel('Property').fill('alp_000002')
  await why.getByRole('button', { name: /^(Ask|Explain)/ }).click()
  await expect(why.getByRole('list', { name: 'Conditions' }).first()).toBeVisible()
  await page.keyboard.press('Escape')

  await page.getByRole('button', { name: 'Every replica' }).click()
  await expect(page.getByRole('dialog')).toContainText(/4 of 4 .*equal/)
})

test('a shared link of a read opens the same request with its result', async ({ page, context }) => {
  await context.grantPermissions(['clipboard-read', 'clipboard-write'])
  await page.keyboard.press('Control+Enter')
  const result = page.locator('[data-result-count]')
  const found = (await result.getAttribute('data-result-count')) ?? ''
  await page.getByRole('button', { name: 'Share' }).click()
  await expect.poll(() => page.evaluate(() => navigator.clipboard.readText())).toContain('/playground?q=')

  await page.goto(await page.evaluate(() => navigator.clipboard.readText()))
  await ready(page)

  await expect(page.getByRole('form', { name: 'Request' })).toBeVisible()
  await expect(result).toHaveAttribute('data-result-count', found)
})
