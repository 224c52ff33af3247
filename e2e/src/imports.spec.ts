/** From two CSV files to searches on all nodes, through the browser. */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { expect, ready, signIn, test } from './console.ts'
import { startControlPlane } from './control-plane.ts'
import { flowOf, install, newImport, rowsOf, sampleWithPrice } from './import-steps.ts'
import { pricesAt } from './prices.ts'

let folder: string

test.beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'vacancy-e2e-csv-'))
})
test.afterAll(() => rmSync(folder, { recursive: true, force: true }))

test('an interrupted upload resumes after a reload, is built, installed, and searchable on all nodes', async ({
  page,
  stack,
}) => {
  test.setTimeout(240_000)
  const files = sampleWithPrice(stack, folder, 77)
  await newImport(page, 'hotels-77', files)
  await page.route('**/api/v1/uploads/*', (route) =>
    route.request().method() === 'PATCH' ? route.abort() : route.continue(),
  )
  await page.getByRole('button', { name: 'Upload and build' }).click()
  await expect(flowOf(page, 'hotels-77')).toHaveAttribute('data-import-state', 'uploading')
  await page.reload()
  await ready(page)
  await page.unroute('**/api/v1/uploads/*')

  for (const file of files) {
    const upload = page.locator('[data-upload]').filter({ hasText: `Choose ${basename(file)} again` })
    await upload.locator('input[type="file"]').setInputFiles(file)
  }
  await expect(flowOf(page, 'hotels-77')).toHaveAttribute('data-import-state', 'built', { timeout: 90_000 })
  await expect(page.locator('[data-agree="true"]')).toBeVisible()

  await install(page)

  for (const node of stack.nodes) {
    await expect.poll(async () => [...new Set(await pricesAt(node, rowsOf(stack)))], { timeout: 60_000 }).toEqual([77])
  }
})

test('columns are read by the names of the header: a different order gives the same snapshot', async ({
  page,
  stack,
}) => {
  test.setTimeout(240_000)
  const files = sampleWithPrice(stack, folder, 66)
  const [packages] = files
  const snapshotOf = async (name: string): Promise<string | undefined> => {
    const { imports } = await (await page.request.get('/api/v1/imports')).json()
    return imports.find((each: { readonly name: string }) => each.name === name)?.snapshot
  }
  const build = async (name: string) => {
    await page.getByRole('button', { name: 'Upload and build' }).click()
    await expect(flowOf(page, name)).toHaveAttribute('data-import-state', 'built', { timeout: 90_000 })
    await expect(page.locator('[data-agree="true"]')).toBeVisible()
  }
  await newImport(page, 'in-order', files)
  await build('in-order')

  const exchange = (line: string) => line.replace(/^([^,]*,[^,]*,[^,]*),([^,]*),([^,]*)/, '$1,$3,$2')
  writeFileSync(packages, readFileSync(packages, 'utf8').split('\n').map(exchange).join('\n'))
  await newImport(page, 'exchanged', files)
  await expect(page.getByText('packages.csv has its columns in another order; they are read by name')).toBeVisible()
  await build('exchanged')
  expect(await snapshotOf('exchanged')).toBe(await snapshotOf('in-order'))
  expect(await snapshotOf('exchanged')).toMatch(/^[0-9a-f]{64}$/)

  writeFileSync(packages, readFileSync(packages, 'utf8').replace('FinalPrice', 'Price'))
  await page.goto('/imports/new')
  await ready(page)
  await page.locator('input[type="file"]').first().setInputFiles(files)
  await expect(page.getByText('unknown name "Price" (nearest: FinalPrice)')).toBeVisible()
  await expect(page.locator('[data-file="packages"]')).toContainText('not chosen yet')
})

test('invalid rows fail the import with file, line and value, and nothing is built', async ({ page, stack }) => {
  test.setTimeout(120_000)
  const [packages, properties] = sampleWithPrice(stack, folder, 50)
  const rows = readFileSync(packages, 'utf8').split('\n')
  rows[4_000] = 'alp_000001,double,2026-02-31,3,50,'
  writeFileSync(packages, rows.join('\n'))
  await newImport(page, 'wrong', [packages, properties])

  await page.getByRole('button', { name: 'Upload and build' }).click()

  await expect(flowOf(page, 'wrong')).toHaveAttribute('data-import-state', 'failed', { timeout: 90_000 })
  await expect(page.getByRole('table', { name: 'Errors' })).toContainText('2026-02-31')
  await expect(page.getByRole('table', { name: 'Errors' })).toContainText(/4,?\s?001/)
  const failed = page.url()

  // A fixed file replaces the invalid one; the valid file stays.
  await page.getByRole('link', { name: 'Replace packages.csv' }).click()
  await expect(page.locator('[data-file="properties"]')).toHaveAttribute('data-from', 'upload')
  await expect(page.locator('[data-file="packages"]')).toContainText('not chosen yet')

  await page.goto(failed)
  await page.getByRole('button', { name: 'Build again without the 1 rejected row…' }).click()
  const dialog = page.getByRole('dialog', { name: 'Build wrong without 1 row' })
  await dialog.getByRole('textbox', { name: /^Reason/ }).fill('one invalid date')
  await dialog.getByRole('button', { name: 'Build without 1 row' }).click()
  await expect(page.locator('[data-import-state="built"]')).toBeVisible({ timeout: 90_000 })
  await expect(page.locator('[data-agree="true"]')).toContainText('1 row skipped that the previous import rejected')
})

test('without any node: files of the import folder, a given codec list, and two swapped files', async ({ browser }) => {
  test.setTimeout(120_000)
  const night = new Date(Date.now() + 5 * 86_400_000).toISOString().slice(0, 10)
  writeFileSync(join(folder, 'a.csv'), 'hotel_1,alpine,valley,hotel,standard,3,47.123456,11.123456,wifi\n')
  writeFileSync(join(folder, 'b.csv'), `hotel_1,double,${night},2,120,sauna\n`)
  writeFileSync(join(folder, 'codecs.yml'), 'rate_features:\n  - breakfast\n  - sauna\n')
  const plane = await startControlPlane(['--import-folder', folder])
  const context = await browser.newContext({ baseURL: plane.url, storageState: { cookies: [], origins: [] } })
  try {
    const page = await context.newPage()
    await signIn(page, plane.link)
    await page.goto('/imports/new')
    await ready(page)
    await page.getByRole('textbox', { name: /^Name/ }).fill('by itself')
    await page.getByRole('combobox', { name: /^Shard/ }).fill('s1')
    // Swapped, as when chosen in alphabetical order.
    for (const [kind, file] of [
      ['properties', 'b.csv'],
      ['packages', 'a.csv'],
    ] as const) {
      const choice = page.getByRole('combobox', { name: `${kind}.csv in the folder` })
      await choice.fill(file)
      await page.getByRole('option', { name: new RegExp(`^${file}`) }).click()
      await expect(page.locator(`[data-file="${kind}"]`)).toContainText(file)
    }
    await page.getByRole('button', { name: 'Swap files' }).click()
    await expect(page.locator('[data-file="properties"]')).toContainText('a.csv')
    await page.locator('input[type="file"]').first().setInputFiles(join(folder, 'codecs.yml'))
    await expect(page.locator('[data-file="codecs"]')).toContainText('breakfast, sauna')
    await expect(page.locator('[data-file="packages"]')).toHaveAttribute('data-from', 'folder')

    await page.getByRole('button', { name: 'Build', exact: true }).click()

    await expect(flowOf(page, 'by itself')).toHaveAttribute('data-import-state', 'built', { timeout: 60_000 })
    await expect(page.locator('[data-agree="true"]')).toBeVisible()
  } finally {
    await context.close()
    await plane.stop()
  }
})
