/** A golden search, from the playground to the plan of an install that would lose its results. */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from '@playwright/test'
import { expect, ready, test } from './console.ts'
import { flowOf, newImport, sampleWithPrice } from './import-steps.ts'
import { violationsOf } from './violations.ts'

const NAME = 'Sold every week'

let folder: string

test.beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'vacancy-e2e-golden-'))
})
test.afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** The sample without the properties of a segment. */
function without(segment: string, [packages, properties]: readonly [string, string]): void {
  const lines = readFileSync(properties, 'utf8').split('\n')
  const gone = new Set(lines.filter((line) => line.split(',')[1] === segment).map((line) => line.split(',')[0]))
  expect(gone.size).toBeGreaterThan(0)
  for (const file of [packages, properties]) {
    const kept = readFileSync(file, 'utf8').split('\n')
    writeFileSync(file, kept.filter((line) => !gone.has(line.split(',')[0])).join('\n'))
  }
}

async function remove(page: Page): Promise<void> {
  await page.goto('/golden')
  await ready(page)
  await page.getByRole('button', { name: `Actions for ${NAME}` }).click()
  await page.getByRole('menuitem', { name: 'Remove…' }).click()
  await page
    .getByRole('dialog')
    .getByRole('button', { name: `Remove ${NAME}` })
    .click()
  await expect(page.getByText('No golden searches yet.')).toBeVisible()
}

test('a search of the playground is kept as golden, and the plan of a snapshot that loses it needs the name of the shard', async ({
  page,
  stack,
}) => {
  test.setTimeout(300_000)
  await test.step('it is saved from the playground, where it holds', async () => {
    await page.goto('/playground')
    await ready(page)
    await page.getByRole('toolbar').getByRole('button', { name: 'More' }).click()
    await page.getByRole('menuitem', { name: 'Save as golden search…' }).click()
    const dialog = page.getByRole('dialog', { name: 'Golden search of quickstart' })
    await dialog.getByRole('textbox', { name: /^Name/ }).fill(NAME)
    await expect(dialog.getByRole('button', { name: 'Save golden search' })).toHaveAttribute('aria-disabled', 'true')
    await dialog.getByRole('textbox', { name: 'Properties at least' }).fill('1')
    await dialog.getByRole('button', { name: 'Try on the shard' }).click()
    await expect(dialog.locator('[data-verdict="passed"]')).toContainText('Holds now: finds')
    expect(await violationsOf(page, 'light')).toEqual([])
    await dialog.getByRole('button', { name: 'Save golden search' }).click()
    await expect(page.getByText(`Saved ${NAME}.`).first()).toBeVisible()
  })

  await test.step('the list runs it on the shard, without sideways scrolling on a small phone', async () => {
    await page.goto('/golden')
    await ready(page)
    const row = page.locator(`[data-golden="${NAME}"]`)
    await expect(row).toContainText('at least 1 property')
    await page.getByRole('button', { name: 'Run all on quickstart' }).click()
    await expect(row).toHaveAttribute('data-last', 'passed')
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      expect(await violationsOf(page, colorScheme)).toEqual([])
    }
    const before = page.viewportSize()
    await page.setViewportSize({ width: 320, height: 700 })
    expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBeLessThanOrEqual(0)
    if (before) await page.setViewportSize(before)
  })

  try {
    const { searches } = await (await page.request.get('/api/v1/golden-searches')).json()
    const files = sampleWithPrice(stack, folder, 91)
    without(searches[0].fields.segment, files)
    await newImport(page, 'loses-one', files)
    await page.getByRole('button', { name: 'Upload and build' }).click()
    await expect(flowOf(page, 'loses-one')).toHaveAttribute('data-import-state', 'built', { timeout: 90_000 })

    await page
      .getByRole('button', { name: /^Install on quickstart…/ })
      .first()
      .click()

    const plan = page.getByRole('dialog')
    const check = plan.locator('[data-check="golden"]')
    await expect(check).toContainText('1 of 1 golden searches lose their results', { timeout: 90_000 })
    await expect(plan.locator('[data-check^="golden-"]')).toContainText(
      new RegExp(`${NAME}: finds 0 properties, at least 1 expected \\(\\d+ on the shard now\\)`),
    )
    const act = plan.getByRole('button', { name: /^Install loses-one/ })
    await expect(act).toHaveAttribute('aria-disabled', 'true')
    // The searches ran after the dialog was opened.
    await plan.getByRole('button', { name: 'Use the updated plan' }).click()
    await plan.getByRole('textbox', { name: /^Reason/ }).fill('the segment is given up')
    const typed = plan.getByRole('textbox', { name: /quickstart/ })
    await typed.fill('quickstar')
    await expect(act).toHaveAttribute('aria-disabled', 'true')
    await typed.fill('quickstart')
    await expect(act).not.toHaveAttribute('aria-disabled', 'true')

    await page.keyboard.press('Escape')
    const { snapshots } = await (await page.request.get('/api/v1/snapshots')).json()
    const { id } = snapshots.find((snapshot: { readonly name: string }) => snapshot.name === 'loses-one')
    await page.goto(`/snapshots/${id}`)
    await expect(page.locator('[data-golden-check="done"]')).toContainText('1 of 1 fail.')
    expect(await violationsOf(page, 'light')).toEqual([])
  } finally {
    await remove(page)
  }
})
