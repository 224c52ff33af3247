// @vitest-environment happy-dom
import { expect, test } from 'vitest'
import { applyAppearance, parseAppearance } from './appearance.ts'

test.each([
  ['dark.dense', 'dark', 'dense'],
  ['contrast.comfortable', 'contrast', 'comfortable'],
  ['dark', 'dark', 'compact'],
  ['nonsense.dense', 'system', 'dense'],
  ['', 'system', 'compact'],
  [undefined, 'system', 'compact'],
])('the appearance of the cookie %j', (value, theme, density) => {
  expect(parseAppearance(value)).toEqual({ theme, density })
})

test('an appearance is on the page at once, and in the cookie for the next one', () => {
  applyAppearance({ theme: 'light', density: 'dense' })

  expect(document.documentElement.dataset).toMatchObject({ theme: 'light', density: 'dense' })
  expect(document.cookie).toContain('vacancy-look=light.dense')
})
