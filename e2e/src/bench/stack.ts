/** Large results of a real shard. */

import { deflateRawSync } from 'node:zlib'
import type { Browser } from '@playwright/test'
import type { State } from '../console.ts'
import type { Stack } from '../stack.ts'
import { clickPainted, type Figure, figure, median, RUNS, SETTLE_MS, slowPage, windowOf } from './measure.ts'

const DAY_MS = 86_400_000
/** As many properties in one segment as a table can show, on nodes that return all of them at once. */
const ROWS = 10_000
export const LARGE = {
  args: ['--packages', '1600000', '--days', '16'],
  env: { VACANCY_RUN_CLUSTERED_QUERY_LIMIT: String(ROWS) },
}
const CALENDAR = { properties: 200, nights: 14 }

type Example = { readonly fields: { segment: string; roomType: string; dates: readonly string[] } }

/** A link to the playground that runs its request. */
function linkOf(command: string, fields: object): string {
  const q = deflateRawSync(JSON.stringify({ s: '', c: command, f: fields })).toString('base64url')
  return `/playground?q=${q}&run=1`
}

/** Large results of a real shard: a calendar, and a table of ten thousand rows. */
export async function measureResults(browser: Browser, stack: Stack, storageState: State): Promise<Figure[]> {
  const context = await windowOf(browser, stack.url, storageState)
  const start = await (await context.request.get('/api/v1/playground')).json()
  const { segment, roomType, dates } = (start.shard.example as Example).fields
  const first = Date.parse(dates[0] ?? '')
  const nights = Array.from({ length: CALENDAR.nights }, (_, n) =>
    new Date(first + n * DAY_MS).toISOString().slice(0, 10),
  )
  const page = await slowPage(context)
  const shown = (count: number) => page.locator(`[data-result-count="${count}"][data-result-state="done"]`).waitFor()
  const tab = (name: string) => page.getByRole('tablist', { name: 'Result as' }).getByRole('tab', { name })

  await page.goto(
    linkOf('SEARCHAVAIL', { segment, roomType, dates: nights, availability: 0, limit: CALENDAR.properties }),
  )
  await shown(CALENDAR.properties)
  const calendars: number[] = []
  for (let run = 0; run <= RUNS; run++) {
    await tab('Table').click()
    await page.waitForTimeout(SETTLE_MS)
    const drawn = page.evaluate<number>(`drawnAfterClick('[role="gridcell"]', ${CALENDAR.nights})`)
    await tab('Calendar').click()
    calendars.push(await drawn)
  }

  await page.goto(linkOf('SEARCHPROP', { segment, limit: ROWS }))
  await shown(ROWS)
  await page.waitForTimeout(SETTLE_MS)
  const rows = await page.locator('table[aria-label="Results"] tbody tr').count()
  const sorts: number[] = []
  for (let run = 0; run <= RUNS; run++) {
    sorts.push(await clickPainted(page, page.getByRole('columnheader').first().getByRole('button')))
    await page.waitForTimeout(300)
  }
  const longest = await page.evaluate<number>(SCROLL)
  await context.close()
  return [
    figure(
      `a calendar of ${CALENDAR.properties} × ${CALENDAR.nights}, from the click to the screen`,
      150,
      'ms',
      median(calendars.slice(1)),
    ),
    figure('10,000 rows: rows in the document', 80, '', rows),
    figure('10,000 rows: sorted by a click', 100, 'ms', median(sorts.slice(1))),
    figure('10,000 rows: longest task while they are scrolled through', 50, 'ms', longest),
  ]
}

/** Scrolls through rows of the results, three with each frame. @returns the longest task; 0 for none above 50 ms */
const SCROLL = `new Promise((resolve) => {
  let longest = 0
  new PerformanceObserver((list) => { for (const { duration } of list.getEntries()) longest = Math.max(longest, duration) }).observe({ type: 'longtask' })
  const scroller = document.querySelector('table[aria-label="Results"]').parentElement
  let top = 0
  const step = () => {
    scroller.scrollTop = top += 100
    if (top < 20_000) requestAnimationFrame(step)
    else setTimeout(() => resolve(longest), 200)
  }
  requestAnimationFrame(step)
})`
