/** Steps of imports that several tests take. */

import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Locator, Page } from '@playwright/test'
import { expect, ready } from './console.ts'
import type { Stack } from './stack.ts'

const DAY_MS = 86_400_000

/** The sample with a new price, so that nodes that serve it can be distinguished from others: packages, properties. */
export function sampleWithPrice(stack: Stack, folder: string, price: number): [string, string] {
  const [packages, properties] = [join(folder, 'packages.csv'), join(folder, 'properties.csv')]
  cpSync(join(stack.folder, 'csv/properties.csv'), properties)
  const rows = readFileSync(join(stack.folder, 'csv/packages.csv'), 'utf8')
  const [header, ...lines] = rows.split('\n')
  const priced = lines.map((line) => line.replace(/^([^,]*,[^,]*,[^,]*,[^,]*),[^,]*/, `$1,${price}`))
  writeFileSync(packages, [header, ...priced].join('\n'))
  return [packages, properties]
}

/** Opens the page of a new import and chooses the files. */
export async function newImport(page: Page, name: string, files: readonly string[]): Promise<void> {
  await page.goto('/imports/new')
  await ready(page)
  await page.getByRole('textbox', { name: /^Name/ }).fill(name)
  await page
    .locator('input[type="file"]')
    .first()
    .setInputFiles([...files])
  await expect(page.getByRole('button', { name: 'Upload and build' })).not.toHaveAttribute('aria-disabled', 'true')
}

export const flowOf = (page: Page, name: string): Locator => page.getByRole('region', { name: `Import ${name}` })

/** Installs the built import whose page is shown on the shard of the stack, and waits until that is done. */
export async function install(page: Page): Promise<void> {
  await page
    .getByRole('button', { name: /^Install on quickstart…/ })
    .first()
    .click()
  const act = page.getByRole('dialog').getByRole('button', { name: /^Install/ })
  await expect(act).not.toHaveAttribute('aria-disabled', 'true', { timeout: 30_000 })
  await act.click()
  const installed = async () => {
    const { operations } = await (await page.request.get('/api/v1/operations?limit=10')).json()
    return operations.find(({ kind }: { kind: string }) => kind === 'install')?.state
  }
  await expect.poll(installed, { timeout: 120_000 }).toBe('done')
}

/** Packages of the sample that are still on sale if midnight passes during the test. */
export function rowsOf(stack: Stack): string[] {
  const later = new Date(Date.now() + 3 * DAY_MS).toISOString().slice(0, 10)
  const rows = readFileSync(join(stack.folder, 'csv/packages.csv'), 'utf8').split('\n').slice(1)
  return rows.filter((row) => (row.split(',')[2] ?? '') >= later).slice(2_000, 2_100)
}
