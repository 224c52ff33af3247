/** The automatable rules of WCAG 2.2 AA. */
import { AxeBuilder } from '@axe-core/playwright'
import type { Page } from '@playwright/test'

const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']
const COLOUR_RULES = ['color-contrast']

/** Violations on the current page. Only one rule depends on colours; the others are checked in one scheme. */
export async function violationsOf(page: Page, scheme: 'light' | 'dark'): Promise<string[]> {
  // Details of what passes would take a third of the time.
  const axe = new AxeBuilder({ page }).setLegacyMode(true).options({ resultTypes: ['violations'] })
  const { violations } = await (scheme === 'light' ? axe.withTags(RULES) : axe.withRules(COLOUR_RULES)).analyze()
  return violations.map(({ id, nodes }) => `${scheme} ${id}: ${nodes.map(({ html }) => html).join(' | ')}`)
}
