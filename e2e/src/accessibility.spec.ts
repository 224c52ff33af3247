/**
 * The rules of WCAG 2.2 AA that a machine can check, on every page, in light and dark. Leaves a picture of each, wide and
 * narrow, in e2e/screenshots.
 */

import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { AxeBuilder } from '@axe-core/playwright'
import { expect, ready, test } from './console.ts'
import { pagesOf } from './pages.ts'

const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']
const PICTURES = join(import.meta.dirname, '../screenshots')
const WIDE = { width: 1280, height: 800 }
const NARROW = { width: 375, height: 812 }

test.beforeAll(() => void mkdirSync(PICTURES, { recursive: true }))

for (const { name, path } of pagesOf({ shard: 'quickstart' })) {
  test(`${name} has no violation in light and dark`, async ({ page }) => {
    await page.emulateMedia({ reducedMotion: 'reduce' })
    await page.goto(path)
    await ready(page)
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      const { violations } = await new AxeBuilder({ page }).withTags(RULES).analyze()
      const said = violations.map(
        ({ id, nodes }) => `${colorScheme} ${id}: ${nodes.map(({ html }) => html).join(' | ')}`,
      )
      expect(said).toEqual([])
      for (const [size, viewport] of Object.entries({ wide: WIDE, narrow: NARROW })) {
        await page.setViewportSize(viewport)
        await page.screenshot({ path: join(PICTURES, `${name}.${size}.${colorScheme}.png`) })
      }
      await page.setViewportSize(WIDE)
    }
  })
}
