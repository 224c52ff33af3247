/** The job queue in the console: dead jobs are found, read and redriven, on a real queue. */

import type { Page } from '@playwright/test'
import { expect, ready, test } from './console.ts'
import { JOBS_TOPIC, makeJobs } from './jobs.ts'

const topicPath = `/api/v1/queue/topics/${JOBS_TOPIC}`
const countOf = async (page: Page, state: 'dead' | 'ready') =>
  (await (await page.request.get(`${topicPath}/stats`)).json())[state]

test.beforeAll(async ({ browser, stack, admin }) => await makeJobs(browser, stack.url, admin))

test('from home by keyboard: the largest group of dead jobs is read and redriven in six steps', async ({ page }) => {
  await page.goto('/')
  await ready(page, 'overview')
  const [dead, waiting] = [await countOf(page, 'dead'), await countOf(page, 'ready')]

  await test.step('1: to the queue', async () => {
    await page.keyboard.press('g')
    await page.keyboard.press('q')
    await ready(page, 'queue')
  })
  await test.step('2: to the dead jobs of a topic', async () => {
    await page.getByRole('link', { name: new RegExp(`dead jobs of ${JOBS_TOPIC}`) }).press('Enter')
    await ready(page, 'queue-topic')
  })
  const groups = page.getByRole('table', { name: 'Errors' })
  const largest = groups.locator('tr[data-group]').first()
  await expect(largest).toHaveAttribute('data-group', 'timeout after * ms')
  const jobs = Number(await largest.getAttribute('data-count'))
  await test.step('3: to the largest group', async () => {
    await largest.getByRole('link').press('Enter')
    await expect(page.getByRole('table', { name: 'Dead jobs' }).locator('tr[data-job]')).toHaveCount(jobs)
  })
  await test.step('4: to a payload', async () => {
    await page.getByRole('table', { name: 'Dead jobs' }).getByRole('link').first().press('Enter')
    await expect(page.getByRole('tabpanel')).toContainText('"note": "late check-in"')
    await expect(page.getByRole('region', { name: 'Timeline' })).toContainText('timeout after')
  })
  await test.step('5: to the plan', async () => {
    await largest.getByRole('button').press('Enter')
  })
  await test.step('6: and redrive', async () => {
    const dialog = page.getByRole('dialog', { name: `Redrive dead jobs of ${JOBS_TOPIC}` })
    await dialog.getByRole('button', { name: `Redrive ${jobs} jobs to ${JOBS_TOPIC}` }).press('Enter')
    await expect(dialog).toBeHidden()
  })

  const notes = page.getByRole('region', { name: 'Notifications' })
  await expect(notes).toContainText(`${jobs} jobs redriven to ${JOBS_TOPIC}`)
  expect(await countOf(page, 'dead')).toBe(dead - jobs)
  expect(await countOf(page, 'ready')).toBe(waiting + jobs)
  await expect(groups.locator('tr[data-group="timeout after * ms"]')).toHaveCount(0)
})

test('errors with markup are text, and a job can be submitted again with another payload', async ({ page }) => {
  await page.goto(`/queue/topics/${JOBS_TOPIC}?state=dead`)
  await ready(page)
  await page.getByRole('link', { name: '<b>bad</b> payload' }).click()
  await page.getByRole('table', { name: 'Dead jobs' }).getByRole('link').first().click()
  const inspector = page.locator('[data-inspector]')
  const id = (await inspector.getAttribute('data-inspector')) ?? ''

  await inspector.getByRole('button', { name: 'Edit and submit as new' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByRole('textbox', { name: 'Payload' }).fill('{"hotel":"repaired"}')
  await dialog.getByRole('button', { name: `Submit to ${JOBS_TOPIC}` }).click()
  await page.getByRole('link', { name: 'Open job' }).click()

  await ready(page, 'queue-job')
  await expect(page.getByRole('heading', { level: 1 })).toHaveText(`${id}-retry-1`)
  await expect(page.getByRole('tabpanel')).toContainText('"hotel": "repaired"')
  const cells = page.locator('b')
  await expect(cells).toHaveCount(0)
})

test('a topic is created, paused, resumed and deleted, and the audit log has each change', async ({ page }) => {
  const name = `short-lived-${Date.now()}`
  await page.goto('/queue')
  await ready(page)
  await page.getByRole('button', { name: 'New topic' }).first().click()
  await page.getByRole('textbox', { name: /^Name/ }).fill(name)
  await page.getByRole('textbox', { name: /^Name/ }).press('Enter')
  await ready(page, 'queue-topic')
  await expect(page.getByRole('heading', { level: 1 })).toHaveText(name)

  const act = async (item: string, confirm: string) => {
    await page.getByRole('button', { name: 'More', exact: true }).click()
    await page.getByRole('menuitem', { name: item }).click()
    const dialog = page.getByRole('dialog')
    const typed = dialog.getByRole('textbox', { name: /^Type / })
    await expect(dialog.getByRole('button', { name: confirm })).toBeVisible()
    if ((await typed.count()) > 0) {
      await typed.fill(name)
      await dialog.getByRole('textbox', { name: /^Reason/ }).fill('end of the test')
    }
    await dialog.getByRole('button', { name: confirm }).click()
    await expect(dialog).toBeHidden()
  }
  await act('Pause…', `Pause ${name}`)
  await expect(page.locator('main [data-level="warn"]:visible').first()).toHaveText('Paused')
  await act('Resume…', `Resume ${name}`)
  await act('Delete topic…', `Delete ${name}`)

  await ready(page, 'queue')
  const { entries } = await (await page.request.get(`/api/v1/audit?target=${name}`)).json()
  expect(entries.map(({ action }: { action: string }) => action)).toEqual([
    'queue.topic.delete',
    'queue.topic.resume',
    'queue.topic.pause',
    'queue.topic.create',
  ])
})

test('the live tail shows jobs as they come, the palette finds one by its id, and charts open', async ({ page }) => {
  await page.goto(`/queue/topics/${JOBS_TOPIC}?state=tail`)
  await ready(page, 'queue-topic')
  await expect(page.getByText('Nothing has happened since this page was opened.')).toBeVisible()
  const id = `seen-live-${Date.now()}`
  await page.getByRole('button', { name: 'Submit job' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByRole('textbox', { name: /^Job ID/ }).fill(id)
  await dialog.getByRole('button', { name: `Submit to ${JOBS_TOPIC}` }).click()
  await expect(page.getByRole('table', { name: 'Live tail' }).getByRole('link', { name: id })).toBeVisible()

  await page.keyboard.press('Escape')
  await page.keyboard.press('Control+k')
  await page.getByRole('dialog').getByRole('combobox').fill(id)
  await page.getByRole('option', { name: new RegExp(id) }).click()
  await ready(page, 'queue-job')
  await expect(page.getByRole('heading', { level: 1 })).toHaveText(id)

  await page.goto(`/queue/topics/${JOBS_TOPIC}?state=charts`)
  await ready(page, 'queue-topic')
  await expect(page.locator('[data-chart]')).toHaveCount(6)
})
