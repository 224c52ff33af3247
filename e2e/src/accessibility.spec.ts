/** The rules of WCAG 2.2 AA that a machine can check, on every page, in light and dark. */

import { AxeBuilder } from '@axe-core/playwright'
import { expect, ready, test } from './console.ts'
import { pagesOf } from './pages.ts'

const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']

for (const { name, path } of pagesOf({ shard: 'quickstart' })) {
  test(`${name} has no violation in light and dark`, async ({ page }) => {
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
      await page.goto(path)
      await ready(page)
      const { violations } = await new AxeBuilder({ page }).withTags(RULES).analyze()
      const said = violations.map(
        ({ id, nodes }) => `${colorScheme} ${id}: ${nodes.map(({ html }) => html).join(' | ')}`,
      )
      expect(said).toEqual([])
    }
  })
}
