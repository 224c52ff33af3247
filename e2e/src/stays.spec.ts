/** Stays: in the calendar, in the list of a night, found by id, released by a person with an audit entry. */

import { connect, type VacancyClient } from '@vacancy/client'
import { dayOf, formatDay } from '@vacancy/shared'
import { expect, ready, test } from './console.ts'
import { violationsOf } from './violations.ts'

const PROPERTY = 'alp_000007'
/** No other test changes packages of these nights. */
const FIRST = dayOf(Date.now()) + 9
const [ARRIVAL, SECOND] = [formatDay(FIRST), formatDay(FIRST + 1)]
const HELD = '5f0c2c1e-6a2b-4d53-8f6e-2b3a9d1c7e44'
const DEADLINE_MS = 20_000

let client: VacancyClient
let room = ''

test.beforeAll(async ({ stack }) => {
  client = await connect({ nodes: stack.nodes.map(({ tcp }) => tcp), deadlineMs: DEADLINE_MS })
  const types = await client.listRoomTypes({ propertyId: PROPERTY })
  room = types[0] ?? ''
  for (const date of [ARRIVAL, SECOND]) {
    await client.setPackage({ propertyId: PROPERTY, roomType: room, date, availability: 5, finalPrice: 120 })
  }
  const line = { propertyId: PROPERTY, roomType: room, arrival: ARRIVAL, nights: 2 }
  await client.holdStay({ stayId: HELD, seconds: 3_600, source: 'ota-17', lines: [{ ...line, rooms: 2 }] })
  await client.bookStay({ stayId: 'order-48121', source: 'website', lines: [{ ...line, nights: 1, rooms: 1 }] })
})
test.afterAll(async () => await client.close())

test('a hold is in the corner of its nights, in their list, and released by keyboard', async ({ page, stack }) => {
  await page.goto(`/shards/${stack.shard}/segments/dolomites/properties/${PROPERTY}`)
  await ready(page, 'property')
  const cell = (date: string) => page.locator(`[role="gridcell"][data-date="${date}"][data-room="${room}"]`)
  await expect(cell(ARRIVAL)).toHaveAccessibleName(/2 on hold, 1 booked/)
  await expect(cell(ARRIVAL).locator('[data-mark="held"]')).toHaveText('2')
  await expect(cell(SECOND)).toHaveAttribute('data-booked', '0')

  await cell(SECOND).click()
  const night = page.getByRole('region', { name: 'Selected nights' })
  const stays = night.getByRole('table', { name: 'Stays of this night' })
  await expect(stays.getByRole('row')).toHaveCount(2)
  await page.keyboard.press('ArrowLeft')
  await page.keyboard.press('Enter')
  await expect(stays.getByRole('row')).toHaveCount(3)
  const row = stays.getByRole('row', { name: new RegExp(HELD) })
  await expect(row).toContainText('ota-17')
  await expect(row).toContainText(/in 59 min/)
  expect(await violationsOf(page, 'light')).toEqual([])

  await row.getByRole('link', { name: HELD }).press('Enter')
  await ready(page, 'shard-stays')
  const record = page.locator(`[data-stay="${HELD}"][data-state="held"]`)
  await expect(record).toContainText('480')
  await expect(record).toContainText('ota-17')
  await page.getByRole('button', { name: 'Release…' }).press('Enter')
  const dialog = page.getByRole('dialog', { name: `Release stay ${HELD} of ${stack.shard}` })
  await expect(dialog).toContainText(`2 rooms, ${PROPERTY}, ${room}`)
  expect(await violationsOf(page, 'light')).toEqual([])
  await page.keyboard.press('Control+Enter')
  await expect(dialog).toBeHidden()
  await expect(page.locator(`[data-stay="${HELD}"][data-state="released"]`)).toBeVisible()
  await expect(page.getByRole('button', { name: 'Release…' })).toHaveAttribute('aria-disabled', 'true')
  expect((await client.stay(HELD)).state).toBe('released')

  await page.goto('/audit')
  await ready(page)
  await expect(page.getByText(`${stack.shard}: ${HELD}`).first()).toBeVisible()
})

test('the history of a night names who took its last room, and is in the address', async ({ page, stack }) => {
  const date = formatDay(FIRST + 3)
  const night = { propertyId: PROPERTY, roomType: room, date }
  await client.setPackage({ ...night, availability: 2, finalPrice: 140 })
  const line = { propertyId: PROPERTY, roomType: room, arrival: date, nights: 1, rooms: 1 }
  await client.bookStay({ stayId: 'order-1', source: 'website', lines: [line] })
  await client.bookStay({ stayId: 'order-2', source: 'ota-17', lines: [line] })
  // Both rooms are booked.
  await expect(client.decreaseAvailability({ ...night, amount: 1 })).rejects.toThrow()
  await page.goto(`/shards/${stack.shard}/segments/dolomites/properties/${PROPERTY}?room=${room}&night=${date}`)
  await ready(page, 'property')
  await page.getByRole('button', { name: 'History' }).press('Enter')
  await expect(page).toHaveURL(/history=open/)

  const changes = page.getByRole('table', { name: 'Changes, newest first' })
  await expect(changes.getByRole('row', { name: /Rooms taken, refused/ })).toContainText('−1')
  const last = changes.getByRole('row', { name: /order-2/ })
  await expect(last).toContainText('1 → 0')
  await expect(last).toContainText('ota-17')
  await expect(changes.getByRole('row', { name: /order-1/ })).toContainText('2 → 1')
  await expect(page.getByText('This node keeps the log from index')).toBeVisible()
  expect(await violationsOf(page, 'light')).toEqual([])

  await page.reload()
  await last.getByRole('link', { name: 'order-2' }).press('Enter')
  await ready(page, 'shard-stays')
  await expect(page.locator('[data-stay="order-2"][data-state="booked"]')).toContainText('ota-17')
})

test('a stay is found by its id from the palette, and a missing one is explained', async ({ page, stack }) => {
  await page.goto('/')
  await ready(page)
  await page.keyboard.press('Control+k')
  await page.keyboard.type('find stay order-48121')
  await expect(page.getByRole('option').first()).toContainText('order-48121')
  await page.keyboard.press('Enter')
  await ready(page, 'shard-stays')
  await expect(page.locator('[data-stay="order-48121"][data-state="booked"]')).toContainText('website')
  await expect(page.getByRole('button', { name: 'Confirm…' })).toHaveAccessibleDescription('It is booked already')

  await page.getByRole('searchbox', { name: 'Stay id' }).fill('order-0')
  await page.getByRole('button', { name: 'Find stay' }).click()
  await expect(page.getByText(`${stack.shard} has no stay order-0.`)).toBeVisible()
  await page.getByLabel('Property id').fill(PROPERTY)
  await page.getByRole('button', { name: 'List stays' }).click()
  await expect(page.getByRole('table', { name: 'Stays' }).getByRole('row')).not.toHaveCount(0)
  await page.getByRole('table', { name: 'Stays' }).getByRole('link', { name: 'order-48121' }).click()
  await expect(page).toHaveURL(/property=.*stay=order-48121/)
})

test('in a view of the past nothing can be released', async ({ page, stack }) => {
  const at = new Date(Date.now() - 2_000).toISOString()
  await page.goto(`/shards/${stack.shard}/stays?stay=order-48121&at=${at}`)
  await expect(page.getByRole('button', { name: 'Release…' })).toHaveAttribute('aria-disabled', 'true')
})
