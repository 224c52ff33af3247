/** From two CSV files to searches on all nodes, through the browser. */

import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import type { Page } from '@playwright/test'
import { expect, ready, test } from './console.ts'
import { pricesAt } from './prices.ts'
import type { Stack } from './stack.ts'

const DAY_MS = 86_400_000
let folder: string

test.beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'vacancy-e2e-csv-'))
})
test.afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** The sample with every price set anew, so that whoever serves it can be told from who does not. */
function filesOf(stack: Stack, price: number): string[] {
  const [properties, packages] = ['properties.csv', 'packages.csv'].map((name) => join(folder, name)) as [
    string,
    string,
  ]
  cpSync(join(stack.folder, 'csv/properties.csv'), properties)
  const rows = readFileSync(join(stack.folder, 'csv/packages.csv'), 'utf8')
  writeFileSync(packages, rows.replace(/^([^,]*,[^,]*,[^,]*,[^,]*),[^,]*/gm, `$1,${price}`))
  return [packages, properties]
}

async function newImport(page: Page, name: string, files: readonly string[]): Promise<void> {
  await page.goto('/imports/new')
  await ready(page)
  await page.getByRole('textbox', { name: /^Name/ }).fill(name)
  await page
    .locator('input[type="file"]')
    .first()
    .setInputFiles([...files])
  await expect(page.getByRole('button', { name: 'Upload and build' })).not.toHaveAttribute('aria-disabled', 'true')
}

const flow = (page: Page, name: string) => page.getByRole('region', { name: `Import ${name}` })

/** Packages that are still on sale when midnight comes in between. */
function rowsOf(stack: Stack): string[] {
  const later = new Date(Date.now() + 3 * DAY_MS).toISOString().slice(0, 10)
  const rows = readFileSync(join(stack.folder, 'csv/packages.csv'), 'utf8').split('\n').slice(1)
  return rows.filter((row) => (row.split(',')[2] ?? '') >= later).slice(2_000, 2_100)
}

test('an upload that is interrupted goes on after a reload, is built, installed, and searchable on all nodes', async ({
  page,
  stack,
}) => {
  test.setTimeout(240_000)
  const files = filesOf(stack, 77)
  await newImport(page, 'hotels-77', files)
  await page.route('**/api/v1/uploads/*', (route) =>
    route.request().method() === 'PATCH' ? route.abort() : route.continue(),
  )
  await page.getByRole('button', { name: 'Upload and build' }).click()
  await expect(flow(page, 'hotels-77')).toHaveAttribute('data-import-state', 'uploading')
  await page.reload()
  await ready(page)
  await page.unroute('**/api/v1/uploads/*')

  for (const file of files) {
    const upload = page.locator('[data-upload]').filter({ hasText: `Choose ${basename(file)} again` })
    await upload.locator('input[type="file"]').setInputFiles(file)
  }
  await expect(flow(page, 'hotels-77')).toHaveAttribute('data-import-state', 'built', { timeout: 90_000 })
  await expect(page.locator('[data-agree="true"]')).toBeVisible()

  await page
    .getByRole('button', { name: /^Install on quickstart…/ })
    .first()
    .click()
  const dialog = page.getByRole('dialog')
  const act = dialog.getByRole('button', { name: /^Install/ })
  await expect(act).not.toHaveAttribute('aria-disabled', 'true', { timeout: 30_000 })
  await act.click()
  const installed = async () => {
    const { operations } = await (await page.request.get('/api/v1/operations?limit=10')).json()
    return operations.find(({ kind }: { kind: string }) => kind === 'install')?.state
  }
  await expect.poll(installed, { timeout: 120_000 }).toBe('done')

  for (const node of stack.nodes) {
    await expect.poll(async () => [...new Set(await pricesAt(node, rowsOf(stack)))], { timeout: 60_000 }).toEqual([77])
  }
})

test('rows that are wrong end the import with file, line and value, and nothing is built', async ({ page, stack }) => {
  test.setTimeout(120_000)
  const [packages, properties] = filesOf(stack, 50) as [string, string]
  const rows = readFileSync(packages, 'utf8').split('\n')
  rows[4_000] = 'alp_000001,double,2026-02-31,3,50,'
  writeFileSync(packages, rows.join('\n'))
  await newImport(page, 'wrong', [packages, properties])

  await page.getByRole('button', { name: 'Upload and build' }).click()

  await expect(flow(page, 'wrong')).toHaveAttribute('data-import-state', 'failed', { timeout: 90_000 })
  await expect(page.getByRole('table', { name: 'Errors' })).toContainText('2026-02-31')
  await expect(page.getByRole('table', { name: 'Errors' })).toContainText(/4,?\s?001/)
})
