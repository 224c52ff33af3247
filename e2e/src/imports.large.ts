/**
 * `npm run console -- large`: an upload of six million packages, from choosing the files to searches on all nodes, proven by
 * counters. Prints how long each part took.
 */

import { execFile } from 'node:child_process'
import { createReadStream, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import type { Page } from '@playwright/test'
import { expect, ready, test } from './console.ts'
import { pricesAt } from './prices.ts'
import type { Stack, StackNode } from './stack.ts'

const run = promisify(execFile)
const PACKAGES = 6_000_000
const BENCH = join(import.meta.dirname, '../../bench/src/cli.ts')
const DAY_MS = 86_400_000
const MINUTE = 60_000
/** Rows that are queried on each node, spread over the file. */
const ROWS_QUERIED = 1_000

type Sample = { readonly packages: number; readonly properties: number; readonly packagesBytes: number }
type Counts = { readonly properties: number; readonly packages: number }

let folder: string

test.beforeAll(async () => {
  test.setTimeout(10 * MINUTE)
  folder = mkdtempSync(join(tmpdir(), 'vacancy-e2e-large-'))
  // From tomorrow, since midnight may pass during the test.
  const from = new Date(Date.now() + DAY_MS).toISOString().slice(0, 10)
  const args = ['sample', '--packages', String(PACKAGES), '--shape', 'region', '--from', from, '--out', folder]
  await run(process.execPath, [BENCH, ...args])
})
test.afterAll(() => rmSync(folder, { recursive: true, force: true }))

test('six million packages are uploaded, built, installed and searched on all nodes', async ({ page, stack }) => {
  test.setTimeout(30 * MINUTE)
  const sample = JSON.parse(readFileSync(join(folder, 'sample.json'), 'utf8')) as Sample
  const rows = await someRows()
  console.log(`${sample.packages} packages, ${sample.properties} properties, ${sample.packagesBytes} bytes of packages`)
  const parts = stopwatch()

  await page.goto('/imports/new')
  await ready(page)
  await page.getByRole('textbox', { name: /^Name/ }).fill('six-million')
  const files = ['packages.csv', 'properties.csv'].map((name) => join(folder, name))
  await page.locator('input[type="file"]').first().setInputFiles(files)
  const send = page.getByRole('button', { name: 'Upload and build' })
  await expect(page.locator('[data-check="sample"]')).toBeVisible({ timeout: MINUTE })
  await expect(send).toBeEnabled({ timeout: MINUTE })
  parts.end('sample checked in the browser')

  await send.click()
  const flow = page.getByRole('region', { name: 'Import six-million' })
  await expect(flow).toBeVisible({ timeout: MINUTE })
  await expect(flow).not.toHaveAttribute('data-import-state', 'uploading', { timeout: 10 * MINUTE })
  parts.end('uploaded')

  await expect(flow).toHaveAttribute('data-import-state', 'built', { timeout: 10 * MINUTE })
  parts.end('built and read back')
  await expect(page.locator('[data-agree="true"]')).toBeVisible()
  const { imports } = await (await page.request.get('/api/v1/imports')).json()
  const { counters } = imports.find(({ name }: { name: string }) => name === 'six-million')
  expect(counters.readBack).toMatchObject({ packages: sample.packages, properties: sample.properties })

  await page
    .getByRole('button', { name: /^Install on quickstart…/ })
    .first()
    .click()
  const act = page.getByRole('dialog').getByRole('button', { name: /^Install/ })
  await expect(act).toBeEnabled({ timeout: MINUTE })
  await act.click()
  await expect.poll(() => installState(page), { timeout: 10 * MINUTE, intervals: [500] }).toBe('done')
  parts.end('installed, reported by a majority')

  for (const node of stack.nodes) {
    await expect
      .poll(() => countsOf(node), { timeout: 5 * MINUTE, intervals: [500] })
      .toEqual({ properties: sample.properties, packages: sample.packages })
  }
  parts.end('held by all four nodes')
  for (const node of stack.nodes) {
    expect(await pricesAt(node, rows)).toEqual(rows.map((row) => Number(row.split(',')[4])))
  }
  await expectEqualReplicas(page, stack, rows[0] as string)
  parts.end('searched on all four nodes')
})

function stopwatch() {
  const begunMs = performance.now()
  let lastMs = begunMs
  const seconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`
  return {
    end(what: string) {
      const nowMs = performance.now()
      console.log(`${what}: ${seconds(nowMs - lastMs)}, ${seconds(nowMs - begunMs)} since the beginning`)
      lastMs = nowMs
    },
  }
}

/** Evenly spaced lines of packages.csv. */
async function someRows(): Promise<string[]> {
  const step = Math.floor(PACKAGES / ROWS_QUERIED)
  const rows: string[] = []
  let at = 0
  for await (const row of createInterface({ input: createReadStream(join(folder, 'packages.csv')) })) {
    if (at++ % step === 1) rows.push(row)
  }
  return rows
}

async function installState(page: Page): Promise<string | undefined> {
  const { operations } = await (await page.request.get('/api/v1/operations?limit=10')).json()
  return operations.find(({ kind }: { kind: string }) => kind === 'install')?.state
}

async function countsOf({ api }: StackNode): Promise<Counts | undefined> {
  const answer = await fetch(`${api}/status`, { signal: AbortSignal.timeout(10_000) }).catch(() => undefined)
  if (!answer?.ok) return undefined
  const { properties, packages } = (await answer.json()) as Counts
  return { properties, packages }
}

/** A search that finds the property of a row, run on every node by the control plane. */
async function expectEqualReplicas(page: Page, { nodes }: Stack, row: string): Promise<void> {
  const [propertyId = '', roomType = '', date = ''] = row.split(',')
  const [line] = readFileSync(join(folder, 'properties.csv'), 'utf8')
    .split('\n')
    .filter((each) => each.startsWith(`${propertyId},`))
  const segment = line?.split(',')[1] ?? ''
  const { csrf } = await (await page.request.get('/api/v1/me')).json()
  const answer = await page.request.post('/api/v1/query/replicas', {
    data: { command: 'SEARCHAVAIL', fields: { segment, roomType, dates: [date], availability: 0 } },
    headers: { 'x-csrf': csrf },
  })
  expect(await answer.json()).toMatchObject({ equal: true, answered: nodes.length, queried: nodes.length })
}
