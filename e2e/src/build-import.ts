/** An import of the sample data of a stack, for pictures. */
import { join } from 'node:path'
import type { Page } from '@playwright/test'
import { ready } from './console.ts'
import type { Stack } from './stack.ts'

const BUILT_MS = 300_000

/** Uploads the files and builds a snapshot; the page of the import is shown then. */
export async function buildImport(page: Page, stack: Stack): Promise<void> {
  await page.goto('/imports/new')
  await ready(page)
  await page.getByRole('textbox', { name: /^Name/ }).fill('hotels-november')
  const files = ['packages.csv', 'properties.csv'].map((name) => join(stack.folder, 'csv', name))
  await page.locator('input[type="file"]').first().setInputFiles(files)
  await page.getByRole('button', { name: 'Upload and build' }).click()
  await page.locator('[data-import-state="built"]').waitFor({ timeout: BUILT_MS })
}
