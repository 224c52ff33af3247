/** Overview and shards stay in the document while other pages are shown, without visible effects. */

import { expect, ready, test } from './console.ts'

test('a page that is shown again follows its address; keys and title belong to the visible page', async ({
  page,
  stack,
}) => {
  const goTo = (name: string) => page.getByRole('navigation').getByRole('link', { name, exact: true }).click()
  const filter = page.getByRole('combobox', { name: 'Filter shards' })
  const rows = page.getByRole('table', { name: 'Shards' }).getByRole('row')

  await page.goto('/')
  await ready(page, 'overview')
  await goTo('Shards')
  await ready(page, 'shards')
  await expect(page).toHaveTitle(/Shards · Vacancy$/)
  await expect(rows).toHaveCount(2)
  // Without a click before.
  await page.keyboard.press('j')
  await expect(rows.nth(1)).toBeFocused()
  await page.keyboard.press('/')
  await page.keyboard.type('no-such')
  await expect(page).toHaveURL(/\?filter=no-such$/)
  await expect(rows).toHaveCount(0)

  await goTo('Overview')
  await ready(page, 'overview')
  await expect(page).toHaveTitle(/Overview · Vacancy$/)
  await expect(filter).toBeHidden()
  // Hidden pages receive no clicks and are hidden from assistive technology.
  await expect(page.getByRole('heading', { level: 1 })).toHaveCount(1)
  await page.getByRole('heading', { level: 1, name: 'Overview' }).click()
  // This page has no filter: the key must not reach the hidden filter of another page.
  await page.keyboard.press('/')
  await page.keyboard.type('x')

  await page.goBack()
  await ready(page, 'shards')
  await expect(filter).toHaveValue('no-such')
  await goTo('Overview')
  await ready(page, 'overview')
  await goTo('Shards')
  await ready(page, 'shards')
  await expect(filter).toHaveValue('')
  await expect(rows).toHaveCount(2)
  await expect(page).toHaveURL(/\/shards$/)

  await rows.getByRole('link', { name: stack.shard }).click()
  await ready(page, 'shard')
  await expect(page.locator('#content')).toHaveCount(1)
  await page.goBack()
  await ready(page, 'shards')
  await expect(page).toHaveTitle(/Shards · Vacancy$/)
})
