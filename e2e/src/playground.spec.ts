/** Queries from the form to the result of a real shard. */

import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { deflateRawSync } from 'node:zlib'
import type { Page } from '@playwright/test'
import { expect, ready, test } from './console.ts'
import { violationsOf } from './violations.ts'

const run = promisify(execFile)

async function choose(page: Page, item: string | RegExp): Promise<void> {
  await page.getByRole('toolbar').getByRole('button', { name: 'More' }).click()
  await page.getByRole('menuitem', { name: item }).click()
}

test.beforeEach(async ({ page }) => {
  await page.goto('/playground')
  await ready(page)
})

test('a map has all of its colours with reduced motion; all used to have the colour that was read last', async ({
  page,
}) => {
  await page.emulateMedia({ reducedMotion: 'reduce' })
  await page.goto('/playground?view=map')
  await ready(page)
  await page.keyboard.press('Control+Enter')
  // The colours of areas; edges are blended with the background.
  const colours = () =>
    page.locator('canvas').evaluate((canvas) => {
      const { width, height } = canvas as HTMLCanvasElement
      const image = (canvas as HTMLCanvasElement).getContext('2d')?.getImageData(0, 0, width, height)
      const seen = new Map<number, number>()
      for (const pixel of new Uint32Array(image?.data.buffer ?? new ArrayBuffer(0)))
        if (pixel >>> 24 === 255) seen.set(pixel, (seen.get(pixel) ?? 0) + 1)
      return [...seen.values()].filter((pixels) => pixels > 30).length
    })
  // The colours of lines and points; with equal prices, points have only one.
  await expect.poll(colours).toBeGreaterThan(1)
})

test('dates are picked with the keyboard, and an unavailable day shows the reason', async ({ page }) => {
  const { shard } = await (await page.request.get('/api/v1/playground')).json()
  const { segment, roomType, dates } = shard.example.fields
  const first: string = dates[0]
  const daysOn = (days: number) => new Date(Date.parse(first) + days * 86_400_000).toISOString().slice(0, 10)
  const fields = { segment, roomType, dates: [first], availability: 0 }
  const q = deflateRawSync(JSON.stringify({ s: shard.id, c: 'SEARCHAVAIL', f: fields })).toString('base64url')
  await page.goto(`/playground?q=${q}`)
  await ready(page)
  const form = page.getByRole('form', { name: 'Request' })
  const typed = form.getByLabel('Dates')
  const focused = form.locator('[data-date]:focus')
  const chosen = form.getByRole('gridcell', { selected: true })
  await form.getByRole('button', { name: 'Calendar' }).click()
  await expect(form.getByRole('grid').locator('th').first()).toHaveText('Mon')
  await expect(chosen).toHaveCount(1)

  await form.locator(`[data-date="${first}"]`).press('Enter')
  await page.keyboard.press('ArrowRight')
  await page.keyboard.press('ArrowRight')
  await expect(focused).toHaveAttribute('data-date', daysOn(2))
  await page.keyboard.press('Enter')
  await expect(typed).toHaveValue(`${first}..${daysOn(2)}`)
  expect(await violationsOf(page, 'light')).toEqual([])

  await page.keyboard.press('ArrowDown')
  await expect(focused).toHaveAttribute('data-date', daysOn(9))
  await page.keyboard.press('Home')
  await expect.poll(async () => new Date((await focused.getAttribute('data-date')) ?? '').getUTCDay()).toBe(1)
  // Before the window of every shard.
  for (let month = 0; month < 13; month++) await page.keyboard.press('PageUp')
  await expect(focused).toHaveAttribute('aria-disabled', 'true')
  await expect(focused).toHaveAttribute('aria-label', /, before the first date of /)
  await page.keyboard.press('Enter')
  await expect(typed).toHaveValue(`${first}..${daysOn(2)}`)
})

test('the cheapest come first, page by page, with the number of all', async ({ page }) => {
  const { shard } = await (await page.request.get('/api/v1/playground')).json()
  const fields = { ...shard.example.fields, limit: 5 }
  expect(fields).toMatchObject({ order: 1, want: 1, count: 1 })
  const q = deflateRawSync(JSON.stringify({ s: shard.id, c: 'SEARCHAVAIL', f: fields })).toString('base64url')
  await page.goto(`/playground?q=${q}`)
  const rows = page.locator('tr[data-total]')
  const ids = async () => (await rows.evaluateAll((all) => all.map((row) => row.dataset['property']))).join()
  const totals = () => rows.evaluateAll((all) => all.map((row) => Number(row.dataset['total'])))
  await expect(page.locator('[data-result-count="5"]')).toContainText(/\d+ match/)
  const [first, firstIds] = [await totals(), await ids()]

  await page.getByRole('button', { name: 'Next page' }).click()
  await expect(page.getByRole('button', { name: 'First page' })).toBeVisible()
  await expect.poll(ids).not.toBe(firstIds)
  const both = [...first, ...(await totals())]
  expect(both).toEqual(both.toSorted((a, b) => a - b))
})

test('a number beside a filter is how many properties it leaves', async ({ page }) => {
  const form = page.getByRole('form', { name: 'Request' })
  const note = form.locator('[data-counts-note]')
  await expect(note).toContainText(/counted on n\d/)
  const chip = form.locator('[data-field="stars"] label', {
    has: page.locator('[data-matches]:not([data-matches="0"])'),
  })
  const matches = Number(await chip.first().locator('[data-matches]').getAttribute('data-matches'))
  await chip.first().click()
  await expect(note).toContainText('last run')

  await page.keyboard.press('Control+Enter')
  await expect(page.locator('[data-result-count]')).toContainText(`${matches} match`)
  // The number of another choice is not of the chosen one: it says what that one would leave instead.
  await expect(note).toContainText(/counted on n\d/)
  expect(await form.locator('[data-field="stars"] [data-matches]:not([data-matches="0"])').count()).toBeGreaterThan(1)
  await page.route('**/api/v1/query/counts', (route) =>
    route.fulfill({ status: 400, json: { code: 'wire-validation-error', detail: 'unknown field' } }),
  )
  await page.keyboard.press('Control+Enter')
  await expect(note).toHaveText('No numbers beside filters: unknown field')
  await expect(form.locator('[data-matches]')).toHaveCount(0)
})

test('the map searches in what is in view, which is a filter of the link until it is removed', async ({ page }) => {
  await page.goto('/playground?view=map')
  await ready(page)
  const result = page.locator('[data-result-count]')
  const map = page.getByRole('group', { name: /^Map of / })
  const box = page.getByText(/^Map box: /)
  await map.focus()
  await expect(page.getByRole('button', { name: 'Search here' })).toHaveCount(0)
  const all = await result.innerText()
  await page.keyboard.press('+')
  await page.keyboard.press('+')
  const inView = Number(await map.getAttribute('data-in-view'))
  await page.getByRole('button', { name: 'Search here' }).click()

  await expect(box).toBeVisible()
  // The map shows all hits of the box.
  await expect(map).toHaveAttribute('data-zoom', '1.00')
  expect(Number(await result.getAttribute('data-result-count'))).toBeGreaterThanOrEqual(inView)
  const boxed = await box.innerText()
  await expect(page).toHaveURL(/q=/)
  await page.reload()
  await expect(box).toHaveText(boxed)
  // What is around the hits is searched, too.
  const boxedHits = Number(await result.getAttribute('data-result-count'))
  await map.focus()
  for (let step = 0; step < 4; step++) await page.keyboard.press('-')
  await page.getByRole('button', { name: 'Search here' }).click()
  await expect(box).not.toHaveText(boxed)
  await expect
    .poll(async () => Number(await result.getAttribute('data-result-count')))
    .toBeGreaterThanOrEqual(boxedHits)
  await page.getByRole('button', { name: 'Remove map box' }).click()
  await expect(box).toHaveCount(0)
  const matches = (text: string) => /[\d,]+ match/.exec(text)?.[0]
  expect(matches(await result.innerText())).toBe(matches(all))
})

test('below the dates are the cheapest totals of other arrivals, and a click or key moves the stay', async ({
  page,
}) => {
  const form = page.getByRole('form', { name: 'Request' })
  const days = form.locator('[data-arrival]')
  const chosen = form.locator('[data-arrival][aria-pressed="true"]')
  const cheapest = page.locator('tr[data-total]').first()
  await expect(chosen).toHaveCount(1)
  // Before today there are none.
  const first = (await chosen.getAttribute('data-arrival')) ?? ''
  expect(await chosen.getAttribute('data-total')).toBe(await cheapest.getAttribute('data-total'))
  expect((await days.first().getAttribute('data-arrival')) ?? '').toMatch(/^\d{4}-\d\d-\d\d$/)
  await expect(form.getByRole('img', { name: /^Price colours/ })).toContainText('per stay')

  await chosen.focus()
  await page.keyboard.press('ArrowDown')
  const later = new Date(Date.parse(first) + 7 * 86_400_000).toISOString().slice(0, 10)
  const moved = form.locator(`[data-arrival="${later}"]`)
  await expect(moved).toBeFocused()
  await expect(moved).toHaveAccessibleName(/^Arrive .*: (from [\d,]+, \d+ propert|no property fits)/)
  await page.keyboard.press('Enter')
  await expect(chosen).toHaveAttribute('data-arrival', later)
  await expect(form.getByLabel('Dates')).toHaveValue(new RegExp(`^${later}`))
  await expect.poll(() => cheapest.getAttribute('data-total')).toBe(await moved.getAttribute('data-total'))
  await expect(form.locator('[data-arrivals-note]')).toHaveCount(0)
  expect(await violationsOf(page, 'light')).toEqual([])
})

test('a calendar of many properties renders only visible rows, and keys move beyond them', async ({ page }) => {
  const { shard } = await (await page.request.get('/api/v1/playground')).json()
  const { segment, roomType, dates } = shard.example.fields
  const fields = { segment, roomType, dates, availability: 0 }
  const q = deflateRawSync(JSON.stringify({ s: shard.id, c: 'SEARCHAVAIL', f: fields })).toString('base64url')
  await page.goto(`/playground?q=${q}&run=1&view=calendar`)
  const grid = page.getByRole('grid', { name: 'Prices by property and date' })
  await expect(grid).toBeVisible()
  const all = Number(await grid.getAttribute('aria-rowcount')) - 1
  expect(all).toBeGreaterThan(25)
  const drawn = () => grid.getByRole('row').count()
  expect(await drawn()).toBeLessThan(all - 5)

  await grid.getByRole('gridcell').first().focus()
  for (const [key, at] of [
    ['PageDown', '10,0'],
    ['PageDown', '20,0'],
    ['ArrowDown', '21,0'],
    ['End', `21,${dates.length - 1}`],
    ['PageUp', `11,${dates.length - 1}`],
    ['Home', '11,0'],
    ['PageUp', '1,0'],
  ] as const) {
    await page.keyboard.press(key)
    const cell = grid.locator(`[data-at="${at}"]`)
    await expect(cell).toBeFocused()
    await expect(cell).toBeInViewport({ ratio: 1 })
  }
  expect(await drawn()).toBeLessThan(all - 5)
})

test('why a property is missing is explained by keyboard alone, and all replicas answer the same', async ({ page }) => {
  await page.keyboard.press('Control+/')
  const why = page.getByRole('dialog')
  // The focus used to be on the title instead of the only field.
  await expect(why.getByLabel('Property')).toBeFocused()
  await page.keyboard.type('alp_000002')
  await page.keyboard.press('Enter')
  await expect(why.getByRole('list', { name: 'Conditions' })).toBeVisible()
  await page.keyboard.press('Tab')
  await page.keyboard.press('Tab')
  await expect(why.getByRole('link', { name: 'Open calendar' })).toBeFocused()
  await page.keyboard.press('Escape')

  await choose(page, 'Compare replicas')
  await expect(page.getByRole('dialog')).toContainText(/4 of 4 .*equal/)
})

test('Explain match leads to the calendar of the property, whose nights are compared, changed and queried', async ({
  page,
}) => {
  const divider = page.getByRole('separator', { name: 'Width of the request' })
  await divider.press('ArrowRight')
  await expect(divider).toHaveAttribute('aria-valuenow', '40')
  await page.getByRole('button', { name: 'Explain match…' }).click()
  const why = page.getByRole('dialog')
  await why.getByLabel('Property').fill('alp_000006')
  await why.getByRole('button', { name: 'Explain', exact: true }).click()
  await why.getByRole('link', { name: 'Open calendar' }).click()
  await ready(page, 'property')

  const grid = page.getByRole('grid')
  const room = await grid.getByRole('gridcell').first().getAttribute('data-room')
  const cell = (at: number) => grid.locator(`[data-room="${room}"]`).nth(at)
  const night = page.getByRole('region', { name: 'Selected nights' })
  await cell(20).click()
  await page.keyboard.press('Shift+ArrowRight')
  await page.keyboard.press('Shift+ArrowRight')
  await expect(night).toHaveAttribute('data-nights', '3')
  const prices = await Promise.all([20, 21, 22].map(async (at) => Number(await cell(at).getAttribute('data-price'))))
  await expect(night).toHaveAttribute('data-sum', String(prices.reduce((sum, price) => sum + price, 0)))
  await page.keyboard.press('Home')
  await expect(cell(0)).toBeFocused()
  await page.keyboard.press('PageUp')
  await expect(grid.locator('[data-date]:focus')).not.toHaveAttribute('data-availability')
  await expect(grid.locator('[data-date]:focus')).toHaveAccessibleName(/no package$/)
  await page.getByRole('button', { name: 'Today' }).click()

  await page.getByRole('button', { name: 'Compare replicas' }).click()
  await expect(page.getByText(/4 of 4 nodes have the same packages/)).toBeVisible()
  await cell(21).click()
  await expect(night.getByRole('button', { name: 'Edit…' })).toHaveAttribute('aria-disabled', 'true')
  await page.getByRole('switch', { name: 'Write mode' }).click()
  await night.getByRole('button', { name: 'Edit…' }).click()
  const edit = page.getByRole('dialog')
  await edit.getByLabel('Rooms left').fill('256')
  await expect(edit.getByLabel('Rooms left')).toHaveAccessibleDescription(/whole number from 0 to 255/)
  await edit.getByLabel('Rooms left').fill('0')
  await edit.getByLabel('Price').fill('4321')
  await expect(edit.locator('[data-changed="true"]')).toHaveCount(1)
  await edit.getByRole('button', { name: 'Write 1 night' }).click()
  await expect(edit.locator('[data-edit-state="done"]')).toContainText(/Acknowledged up to index/)
  expect(await violationsOf(page, 'light')).toEqual([])
  await edit.getByRole('button', { name: 'Close' }).last().click()
  await expect(cell(21)).toHaveAttribute('data-price', '4321')
  await expect(cell(21)).toHaveText(/^4,?321full$/)
  await expect(cell(21)).toHaveAccessibleName(/, none left, 4,321,/)

  await night.getByRole('button', { name: 'Query these nights' }).click()
  await ready(page, 'playground')
  // A night without rooms is in no result.
  await expect(page.locator('[data-result-count]')).toHaveAttribute('data-result-count', '0')
})

test('choices of a field in a dialog are seen whole; Escape closes them first, then the dialog', async ({ page }) => {
  await page.getByRole('button', { name: 'Explain match…' }).click()
  const why = page.getByRole('dialog')
  const property = why.getByLabel('Property')
  await property.fill('alp_')
  const choices = why.getByRole('option')
  await expect(choices.nth(4)).toBeInViewport({ ratio: 1 })

  await page.keyboard.press('Escape')
  await expect(choices).toHaveCount(0)
  await expect(why).toBeVisible()
  await property.press('ArrowDown')
  await property.press('ArrowDown')
  await property.press('Enter')
  await expect(property).not.toHaveValue('alp_')
  await page.keyboard.press('Escape')
  await expect(why).toHaveCount(0)
})

test('a shared link of a read opens the same request with its result, and a saved result does not change', async ({
  page,
  context,
}) => {
  await context.grantPermissions(['clipboard-read', 'clipboard-write'])
  const clipboard = () => page.evaluate(() => navigator.clipboard.readText())
  await page.keyboard.press('Control+Enter')
  const result = page.locator('[data-result-count]')
  const found = (await result.getAttribute('data-result-count')) ?? ''
  // The order and the view are part of the link.
  const totals = () => result.locator('tr[data-total]').evaluateAll((rows) => rows.map((row) => row.dataset['total']))
  await result.getByRole('columnheader', { name: 'Total' }).getByRole('button').click()
  await expect(page).toHaveURL(/sort=total/)
  const sorted = await totals()
  expect(sorted).toEqual(sorted.toSorted((a, b) => Number(b) - Number(a)))
  await page.getByRole('button', { name: 'Share', exact: true }).click()
  await expect.poll(clipboard).toMatch(/\/playground\?q=.*&sort=total%3Adown/)

  await page.goto(await clipboard())
  await ready(page)

  await expect(page.getByRole('form', { name: 'Request' })).toBeVisible()
  await expect(result).toHaveAttribute('data-result-count', found)
  expect(await totals()).toEqual(sorted)
  const first = result.getByRole('row').nth(1)
  const row = [await first.getAttribute('data-property'), await first.getAttribute('data-total')]
  await first.focus()
  await page.keyboard.press('Control+c')
  await expect.poll(clipboard).toMatch(new RegExp(`^${row[0]}\\t.*\\t${row[1]}`))

  await page.getByRole('button', { name: 'Share with result' }).click()
  await expect.poll(clipboard).toContain('/playground/results/')
  await page.goto(await clipboard())
  await ready(page, 'saved-result')
  await expect(result).toHaveAttribute('data-result-count', found)
  expect([await first.getAttribute('data-property'), await first.getAttribute('data-total')]).toEqual(row)
  for (const view of ['Calendar', 'Map', 'Timing']) {
    await page.getByRole('tablist', { name: 'Result as' }).getByRole('tab', { name: view }).click()
    await expect(page.getByRole('tabpanel', { name: view })).toBeVisible()
  }
  expect(await violationsOf(page, 'light')).toEqual([])

  await page.getByRole('button', { name: 'Delete…' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Delete result' }).click()
  await ready(page, 'playground')
  await page.goBack()
  await expect(page.getByText('There is no such saved result.')).toBeVisible()
})

test('the draft of a tab is restored with it, and a link to a request that is too long for an address opens elsewhere', async ({
  page,
  context,
}) => {
  await context.grantPermissions(['clipboard-read', 'clipboard-write'])
  const json = (of = page) => of.getByRole('textbox', { name: 'Request as JSON' })
  const { segment } = (await (await page.request.get('/api/v1/playground')).json()).shard.example.fields
  const amenities = Array.from({ length: 60 }, () => randomBytes(24).toString('hex'))
  const long = JSON.stringify({ command: 'SEARCHPROP', fields: { segment, amenities } })
  const write = async (text: string, of = page) => {
    const kept = of.waitForResponse(
      (answer) => answer.url().includes('/api/v1/unsaved-requests/') && answer.request().method() === 'PUT',
    )
    await json(of).fill(text)
    expect((await kept).status()).toBe(204)
  }
  await page.getByRole('tablist', { name: 'Request as' }).getByRole('tab', { name: 'JSON' }).click()
  await write(long)
  await expect(page).not.toHaveURL(/q=/)
  await page.getByRole('button', { name: 'Share', exact: true }).click()
  await expect.poll(() => page.evaluate(() => navigator.clipboard.readText())).toContain('/playground?q=%7E')
  const link = await page.evaluate(() => navigator.clipboard.readText())
  await write(`${long} and more`)
  // A duplicated tab starts with the same draft and then keeps its own.
  const [copy] = await Promise.all([context.waitForEvent('page'), page.evaluate(() => void open('/playground'))])
  await ready(copy)
  await expect(json(copy)).toHaveValue(`${long} and more`)
  await write('something else', copy)
  await copy.close()

  await page.reload()
  await ready(page)
  await expect(page.getByText(/^Draft restored from/)).toBeVisible()
  await expect(json()).toHaveValue(`${long} and more`)
  await expect(json()).toHaveAccessibleDescription(/Line 1, column/)

  // A link overrides the draft of the tab.
  const q = deflateRawSync(JSON.stringify({ s: '', c: 'GETSEGMENTS', f: {} })).toString('base64url')
  await page.goto(`/playground?q=${q}`)
  await ready(page)
  await expect(page.getByRole('form', { name: 'Request' })).toHaveAttribute('data-command', 'GETSEGMENTS')
  await expect(page.getByText(/^Draft restored from/)).toHaveCount(0)

  const other = await context.newPage()
  await other.goto(link)
  await ready(other)
  await expect(other.getByRole('form', { name: 'Request' })).toHaveAttribute('data-command', 'SEARCHPROP')
  await expect(other.locator('[data-result-count]')).toHaveAttribute('data-result-count', '0')
  await expect(other.getByText(/^Not in use on /)).toBeVisible()
  await other.getByRole('tablist', { name: 'Request as' }).getByRole('tab', { name: 'JSON' }).click()
  await expect(other.getByRole('textbox', { name: 'Request as JSON' })).toHaveValue(new RegExp(amenities[59] ?? ''))
})

test('a hundred runs show the distribution of times, and can be stopped', async ({ page }) => {
  const runs = page.locator('[data-runs]')
  await choose(page, /^Run 10 times/)
  await expect(runs).toHaveAttribute('data-runs', '10')
  await expect(runs).toContainText(/p50 .* p99 /)

  // Only the first 20 runs complete, so that the others are still running when they are stopped, on any machine.
  let requests = 0
  await page.route('**/api/v1/query', async (route) => {
    requests += 1
    if (requests <= 20) await route.continue()
  })
  await choose(page, /^Run 100 times/)
  await expect(runs).toContainText('of 100 runs')
  await expect.poll(() => requests).toBe(21)
  await page.getByRole('button', { name: 'Stop' }).click()
  await expect(page.getByRole('button', { name: 'Stop' })).toHaveCount(0)
  await expect(runs).toContainText('of 100 runs')
  expect(Number(await runs.getAttribute('data-runs'))).toBeLessThanOrEqual(20)
  expect(requests).toBe(21)
})

/** The clipboard after the copy shortcut. */
async function copied(page: Page): Promise<string> {
  const read = () => page.evaluate(() => navigator.clipboard.readText())
  await page.evaluate(() => navigator.clipboard.writeText(''))
  await page.keyboard.press('Control+.')
  await expect.poll(read).not.toBe('')
  return await read()
}

test('run with one key and copied with another: the copied TypeScript and curl run unchanged with the same result', async ({
  page,
  context,
}) => {
  await context.grantPermissions(['clipboard-read', 'clipboard-write'])
  await page.keyboard.press('Control+Enter')
  const found = Number(await page.locator('[data-result-count]').getAttribute('data-result-count'))
  expect(found).toBeGreaterThan(0)
  const { csrf } = await (await page.request.get('/api/v1/me')).json()
  const made = await page.request.post('/api/v1/tokens', {
    data: { name: `copied ${Date.now()}`, role: 'client' },
    headers: { 'x-csrf': csrf },
  })
  const { value: token } = await made.json()
  const folder = mkdtempSync(join(tmpdir(), 'vacancy-copied-'))
  try {
    writeFileSync(join(folder, 'client.tgz'), await (await page.request.get('/api/v1/client.tgz')).body())
    await run('npm', ['init', '-y'], { cwd: folder })
    // From the served file, without a registry.
    await run('npm', ['install', '--offline', '--no-audit', '--no-fund', './client.tgz'], { cwd: folder })
    writeFileSync(join(folder, 'query.mjs'), await copied(page))
    const typescript = await run(process.execPath, ['query.mjs'], { cwd: folder })
    expect(JSON.parse(typescript.stdout).properties).toHaveLength(found)

    await page.getByRole('button', { name: 'Copy as' }).click()
    await page.getByRole('menuitem', { name: 'curl' }).click()
    await expect(page.getByText('Copied as curl').first()).toBeVisible()
    writeFileSync(join(folder, 'query.sh'), await copied(page))
    const env = { PATH: process.env['PATH'] ?? '', VACANCY_TOKEN: token }
    const curl = await run('/bin/sh', ['query.sh'], { cwd: folder, env })
    expect(JSON.parse(curl.stdout).count).toBe(found)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})
