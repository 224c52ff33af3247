/** The rules of WCAG 2.2 AA that a machine can check. */
import { AxeBuilder } from '@axe-core/playwright'
import type { Page } from '@playwright/test'

const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']
const COLOUR_RULES = ['color-contrast']

/** What breaks them on the page as it is drawn now. Of all the rules one looks at colours; the others say the same in both. */
export async function violationsOf(page: Page, scheme: 'light' | 'dark'): Promise<string[]> {
  const axe = new AxeBuilder({ page }).setLegacyMode(true)
  const { violations } = await (scheme === 'light' ? axe.withTags(RULES) : axe.withRules(COLOUR_RULES)).analyze()
  return violations.map(({ id, nodes }) => `${scheme} ${id}: ${nodes.map(({ html }) => html).join(' | ')}`)
}
