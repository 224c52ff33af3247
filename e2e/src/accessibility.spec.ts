/**
 * The rules of WCAG 2.2 AA that a machine can check, on every page, in light and dark. Leaves a picture of each in
 * e2e/screenshots, one wide and light, one narrow and dark; `npm run screenshots` makes all of them.
 */

import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { AxeBuilder } from '@axe-core/playwright'
import { expect, ready, test } from './console.ts'
import { pagesOf } from './pages.ts'

const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']
const COLOUR_RULES = ['color-contrast']
const PICTURES = join(import.meta.dirname, '../screenshots')
const LOOKS = [
  { colorScheme: 'light', size: 'wide', viewport: { width: 1280, height: 800 } },
  { colorScheme: 'dark', size: 'narrow', viewport: { width: 375, height: 812 } },
] as const

test.beforeAll(() => void mkdirSync(PICTURES, { recursive: true }))

for (const { name, path } of pagesOf({ shard: 'quickstart' })) {
  test(`${name} has no violation in light and dark`, async ({ page }) => {
    await page.emulateMedia({ reducedMotion: 'reduce' })
    await page.goto(path)
    await ready(page)
    for (const { colorScheme, size, viewport } of LOOKS) {
      await page.emulateMedia({ colorScheme })
      const axe = new AxeBuilder({ page }).setLegacyMode(true)
      // Of all the rules one looks at colours; the others say the same in both.
      const { violations } = await (colorScheme === 'light'
        ? axe.withTags(RULES)
        : axe.withRules(COLOUR_RULES)
      ).analyze()
      const said = violations.map(
        ({ id, nodes }) => `${colorScheme} ${id}: ${nodes.map(({ html }) => html).join(' | ')}`,
      )
      expect(said).toEqual([])
      await page.setViewportSize(viewport)
      await page.screenshot({ path: join(PICTURES, `${name}.${size}.${colorScheme}.png`) })
    }
  })
}
