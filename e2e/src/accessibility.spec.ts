/**
 * Checks the automatable rules of WCAG 2.2 AA on every page, in light and dark. Writes two pictures of each page to
 * e2e/screenshots, one wide and light, one narrow and dark; `npm run console -- screenshots` takes all of them.
 */

import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from '@playwright/test'
import { expect, ready, test } from './console.ts'
import { JOBS_TOPIC, makeJobs } from './jobs.ts'
import { pagesOf } from './pages.ts'
import { violationsOf } from './violations.ts'

const PICTURES = join(import.meta.dirname, '../screenshots')
const LOOKS = [
  { colorScheme: 'light', size: 'wide', viewport: { width: 1280, height: 800 } },
  { colorScheme: 'dark', size: 'narrow', viewport: { width: 375, height: 812 } },
] as const

/** The narrowest window in which nothing scrolls sideways but tables. */
const LEAST = { width: 320, height: 640 }

/** All pages are loaded in one window, which keeps compiled code as the browser of a person does. */
let page: Page

test.beforeAll(async ({ browser, stack, admin }) => {
  mkdirSync(PICTURES, { recursive: true })
  await makeJobs(browser, stack.url, admin)
  page = await browser.newPage({ baseURL: stack.url, storageState: admin, reducedMotion: 'reduce' })
})

test.afterAll(() => page.close())

for (const { name, path } of pagesOf({ shard: 'quickstart' })) {
  test(`${name} has no violation in light and dark`, async () => {
    await page.setViewportSize(LOOKS[0].viewport)
    await page.goto(path)
    await ready(page)
    for (const { colorScheme, size, viewport } of LOOKS) {
      await page.emulateMedia({ colorScheme })
      // The dialog of a plan may be about to open.
      await expect(async () => expect(await violationsOf(page, colorScheme)).toEqual([])).toPass({ timeout: 30_000 })
      await page.setViewportSize(viewport)
      // On narrow screens the row of tabs scrolls; the tab of the page used to be out of view.
      const tabs = await page.locator('main[data-ready="true"] [data-path-tabs] [aria-current]').all()
      for (const tab of tabs) await expect(tab).toBeInViewport({ ratio: 0.9 })
      await page.screenshot({ path: join(PICTURES, `${name}.${size}.${colorScheme}.png`) })
    }
    await page.setViewportSize(LEAST)
    // Maps take their new width after the window has its own.
    await expect.poll(() => page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(LEAST.width)
  })
}

test('with reduced motion nothing moves or fades', async ({ page }) => {
  await page.emulateMedia({ reducedMotion: 'reduce' })
  await page.goto('/shards/quickstart')
  await ready(page)
  await page.evaluate(() => {
    document.addEventListener('transitionrun', ({ propertyName }) => {
      document.body.dataset['moved'] = propertyName
    })
  })
  for (const row of await page.locator('tr[data-node][data-role]').all()) await row.hover()
  await page.getByRole('button', { name: 'More' }).hover()
  await expect(page.locator('body[data-moved]')).toHaveCount(0)
})

test('with the colours of the system a heat map keeps its own', async ({ page }) => {
  await page.emulateMedia({ forcedColors: 'active' })
  await page.goto('/shards/quickstart/segments/dolomites/properties/alp_000006?metric=price')
  await ready(page)
  const nights = page.locator('[role="gridcell"][data-price]')
  const grounds = await nights.evaluateAll((cells) => cells.map((cell) => getComputedStyle(cell).backgroundColor))
  expect(new Set(grounds).size).toBeGreaterThan(1)
})

test('focus returns to the element that opened a layer, unless another element has it by then', async ({ page }) => {
  await page.goto('/shards')
  await ready(page)
  const columns = page.getByRole('button', { name: 'Columns', exact: true })
  const views = page.getByRole('button', { name: 'Views', exact: true })

  await test.step('of a popover', async () => {
    await columns.press('Enter')
    await expect(page.getByRole('dialog', { name: 'Columns' })).toBeVisible()
    await page.keyboard.press('Escape')
    await expect(columns).toBeFocused()
  })

  await test.step('of a menu, and of a dialog that the menu opened', async () => {
    await views.press('Enter')
    await page.getByRole('menuitem', { name: 'Save this view…' }).press('Escape')
    await expect(views).toBeFocused()
    await views.press('Enter')
    await page.getByRole('menuitem', { name: 'Save this view…' }).press('Enter')
    await expect(page.getByRole('dialog').getByRole('textbox').first()).toBeFocused()
    await page.keyboard.press('Escape')
    await expect(views).toBeFocused()
  })

  await test.step('of the palette', async () => {
    await page.keyboard.press('Control+k')
    await expect(page.getByRole('combobox', { name: 'Search or run a command' })).toBeFocused()
    await page.keyboard.press('Escape')
    await expect(views).toBeFocused()
  })

  await test.step('not after a key pressed before the layer has closed', async () => {
    await columns.press('Enter')
    await expect(page.getByRole('dialog', { name: 'Columns' })).toBeVisible()
    await page.evaluate(async () => {
      const press = (key: string) =>
        document.activeElement?.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }))
      press('Escape')
      // The layer is closed, but no timer has fired yet.
      while (document.querySelector('[role="dialog"]')) await null
      press('/')
      await new Promise((resolve) => setTimeout(resolve, 50))
    })
    await expect(page.getByRole('combobox', { name: 'Filter shards' })).toBeFocused()
  })
})

test('the page has the focus after each way to it', async ({ page }) => {
  const isInPage = () => page.evaluate(() => document.activeElement?.closest('main')?.checkVisibility() ?? false)
  const arrives = async (way: string, id: string, go: () => Promise<unknown>) => {
    await test.step(way, async () => {
      await go()
      // Until it is drawn, the page before it is there, ready and with the focus.
      await ready(page, id)
      await expect.poll(isInPage).toBe(true)
    })
  }
  await page.goto('/shards')
  await ready(page, 'shards')
  await page.locator('tr[data-key="quickstart"]').focus()
  await arrives('Enter on a row', 'shard', () => page.keyboard.press('Enter'))
  await arrives('the key of the next tab', 'shard-segments', () => page.keyboard.press(']'))
  await arrives('a click on a tab', 'shard-stays', () => page.getByRole('link', { name: 'Stays', exact: true }).click())
  await arrives('Back', 'shard-segments', () => page.goBack())
  await arrives('Back to a page that was kept', 'shard', () => page.goBack())
  await arrives('Back to the table', 'shards', () => page.goBack())
  await arrives('a link of the menu', 'queue', () => page.getByRole('link', { name: 'Queue' }).first().click())
})

test('every dialog starts in its first field, keeps the focus, and gives it back', async ({ page }) => {
  let dialogs = 0
  for (const path of [
    '/shards/quickstart',
    `/queue/topics/${JOBS_TOPIC}`,
    `/queue/topics/${JOBS_TOPIC}?state=dead`,
    '/playground',
    '/settings/tokens',
    '/settings/people',
  ]) {
    await page.goto(path)
    await ready(page)
    const openers = page.locator('#content button:not([aria-disabled="true"])').filter({ hasText: /…$|^(Add|Create) / })
    const names = new Set(await openers.allTextContents())
    for (const name of names) {
      const opener = openers.filter({ hasText: name }).first()
      await opener.click()
      const dialog = page.locator('[role="dialog"][data-state="open"]')
      await expect(dialog).toBeVisible()
      const where = () =>
        dialog.evaluate((element) => {
          const { activeElement: at } = document
          if (!element.contains(at)) return `outside, on ${at?.tagName}`
          const fields = 'input:not([type="radio"], [type="checkbox"], [type="hidden"]), select, textarea'
          return element.querySelector(fields) && !at?.matches(fields) ? 'not on a field' : 'fine'
        })
      await expect.poll(where, { message: `${path}: ${name}` }).toBe('fine')
      for (const key of ['Shift+Tab', 'Shift+Tab', 'Tab', 'Tab', 'Tab']) {
        await page.keyboard.press(key)
        expect(await where(), `${path}: ${name}, after ${key}`).not.toContain('outside')
      }
      await page.keyboard.press('Escape')
      await expect(dialog).toHaveCount(0)
      await expect(opener).toBeFocused()
      dialogs++
    }
  }
  expect(dialogs).toBeGreaterThan(8)
})

test('palette keys: arrows wrap around, Home stays in the text, Ctrl+Enter opens a tab', async ({ page }) => {
  await page.goto('/shards')
  await ready(page)
  await page.keyboard.press('Control+k')
  const field = page.getByRole('combobox', { name: 'Search or run a command' })
  const chosen = page.getByRole('dialog', { name: 'Commands' }).getByRole('option', { selected: true })
  await field.fill('settings')
  await expect(chosen).toHaveCount(1)
  const first = (await chosen.textContent()) ?? ''
  expect(await violationsOf(page, 'light')).toEqual([])

  await page.keyboard.press('ArrowUp')
  await expect(chosen).not.toHaveText(first)
  await page.keyboard.press('ArrowDown')
  await expect(chosen).toHaveText(first)
  await page.keyboard.press('Home')
  await page.keyboard.press('Delete')
  await expect(field).toHaveValue('ettings')

  await field.fill('audit')
  await expect(chosen).toContainText('Audit')
  const opened = page.waitForEvent('popup')
  await page.keyboard.press('Control+Enter')
  await expect(await opened).toHaveURL(/\/audit$/)
  await expect(page).toHaveURL(/\/shards$/)
})
