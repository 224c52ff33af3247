/** Queries from the form to the answer of a real shard. */

import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { deflateRawSync } from 'node:zlib'
import type { Page } from '@playwright/test'
import { expect, ready, test } from './console.ts'

const CLIENT = join(import.meta.dirname, '../../client')
const run = promisify(execFile)

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

test('a calendar of many properties draws the rows in sight, and the keys go beyond them', async ({ page }) => {
  const { shard } = await (await page.request.get('/api/v1/playground')).json()
  const { segment, roomType, dates } = shard.example.fields
  const fields = { segment, roomType, dates, availability: 0 }
  const q = deflateRawSync(JSON.stringify({ s: shard.id, c: 'SEARCHAVAIL', f: fields })).toString('base64url')
  await page.goto(`/playground?q=${q}&run=1&view=calendar`)
  const grid = page.getByRole('grid', { name: 'Prices by property and date' })
  await expect(grid).toBeVisible()
  const all = Number(await grid.getAttribute('aria-rowcount')) - 1
  expect(all).toBeGreaterThan(25)
  const drawn = () => grid.getByRole('row').count()
  expect(await drawn()).toBeLessThan(all - 5)

  await grid.getByRole('gridcell').first().focus()
  for (const [key, at] of [
    ['PageDown', '10,0'],
    ['PageDown', '20,0'],
    ['ArrowDown', '21,0'],
    ['End', `21,${dates.length - 1}`],
    ['PageUp', `11,${dates.length - 1}`],
    ['Home', '11,0'],
    ['PageUp', '1,0'],
  ] as const) {
    await page.keyboard.press(key)
    const cell = grid.locator(`[data-at="${at}"]`)
    await expect(cell).toBeFocused()
    await expect(cell).toBeInViewport({ ratio: 1 })
  }
  expect(await drawn()).toBeLessThan(all - 5)
})

test('a property that is missing is explained, and all replicas answer the same', async ({ page }) => {
  await page.getByRole('button', { name: 'Why not…' }).click()
  const why = page.getByRole('dialog')
  await why.getByLabel('Property').fill('alp_000002')
  await why.getByRole('button', { name: 'Ask why' }).click()
  await expect(why.getByRole('list', { name: 'Conditions' })).toBeVisible()
  await page.keyboard.press('Escape')

  await page.getByRole('button', { name: 'Every replica' }).click()
  await expect(page.getByRole('dialog')).toContainText(/4 of 4 .*equal/)
})

test('choices of a field in a dialog are seen whole; Escape closes them first, then the dialog', async ({ page }) => {
  await page.getByRole('button', { name: 'Why not…' }).click()
  const why = page.getByRole('dialog')
  const property = why.getByLabel('Property')
  await property.fill('alp_')
  const choices = why.getByRole('option')
  await expect(choices.nth(4)).toBeInViewport({ ratio: 1 })

  await page.keyboard.press('Escape')
  await expect(choices).toHaveCount(0)
  await expect(why).toBeVisible()
  await property.press('ArrowDown')
  await property.press('ArrowDown')
  await property.press('Enter')
  await expect(property).not.toHaveValue('alp_')
  await page.keyboard.press('Escape')
  await expect(why).toHaveCount(0)
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

/** What the clipboard holds after the one key that copies. */
async function copied(page: Page): Promise<string> {
  const read = () => page.evaluate(() => navigator.clipboard.readText())
  await page.evaluate(() => navigator.clipboard.writeText(''))
  await page.keyboard.press('Control+.')
  await expect.poll(read).not.toBe('')
  return await read()
}

test('run with one key and copied with one more: the TypeScript and the curl find the same, unchanged', async ({
  page,
  context,
}) => {
  await context.grantPermissions(['clipboard-read', 'clipboard-write'])
  await page.keyboard.press('Control+Enter')
  const found = Number(await page.locator('[data-result-count]').getAttribute('data-result-count'))
  expect(found).toBeGreaterThan(0)
  const { csrf } = await (await page.request.get('/api/v1/me')).json()
  const made = await page.request.post('/api/v1/tokens', {
    data: { name: `copied ${Date.now()}`, role: 'client' },
    headers: { 'x-csrf': csrf },
  })
  const { value: token } = await made.json()
  const folder = mkdtempSync(join(tmpdir(), 'vacancy-copied-'))
  try {
    mkdirSync(join(folder, 'node_modules/@vacancy'), { recursive: true })
    symlinkSync(CLIENT, join(folder, 'node_modules/@vacancy/client'), 'dir')

    writeFileSync(join(folder, 'query.ts'), await copied(page))
    const typescript = await run(process.execPath, ['query.ts'], { cwd: folder })
    expect(JSON.parse(typescript.stdout).properties).toHaveLength(found)

    await page.getByRole('button', { name: 'Copy as' }).click()
    await page.getByRole('menuitem', { name: 'curl' }).click()
    await expect(page.getByText('Copied as curl').first()).toBeVisible()
    writeFileSync(join(folder, 'query.sh'), await copied(page))
    const env = { PATH: process.env['PATH'] ?? '', VACANCY_TOKEN: token }
    const curl = await run('/bin/sh', ['query.sh'], { cwd: folder, env })
    expect(JSON.parse(curl.stdout).count).toBe(found)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})
