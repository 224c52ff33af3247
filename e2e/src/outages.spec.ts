/**
 * Everything of a platform that can fail, in turn: within 10 s the overview names the cause, once; no page says otherwise
 * while it lasts; afterwards nothing is left of it.
 */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type APIRequestContext, expect, type Page } from '@playwright/test'
import { type Kind, planOf } from '@vacancy/quickstart/plan'
import { runVacancy } from '@vacancy/testkit/node'
import { ready, type State, signedIn, telling } from './console.ts'
import { flowOf } from './import-steps.ts'
import { JOBS_TOPIC, makeJobs } from './jobs.ts'
import { type Platform, startPlatform } from './platform.ts'

const NAMED_MS = 10_000
/** A node reads its state again, and pages settle. */
const CLEARED_MS = 90_000
const AGREED_MS = 90_000

/** Two of everything that can be two. */
const SHAPE = { level: 'full', shards: 2, zones: 2, nodesPerShard: 3, ha: true, etcdEndpoints: [] } as const

const test = telling.extend<object, { platform: Platform; admin: State }>({
  platform: [
    async ({ browserName: _ }, use) => {
      const platform = await startPlatform('--level', 'full', '--ha')
      // Its jobs die on purpose.
      await platform.run('kill', 'queue-sample')
      await use(platform)
      await platform.stop()
    },
    { scope: 'worker', timeout: 300_000 },
  ],
  admin: [
    async ({ browser, platform }, use) => {
      const admin = await signedIn(browser, platform.link)
      const { request } = await browser.newContext({ baseURL: platform.url, storageState: admin })
      const { topics } = await (await request.get('/api/v1/queue/stats')).json()
      for (const { topic } of topics) await removeTopic(request, topic)
      await use(admin)
    },
    { scope: 'worker' },
  ],
  baseURL: async ({ platform }, use) => use(platform.url),
  storageState: async ({ admin }, use) => use(admin),
})

async function removeTopic(request: APIRequestContext, topic: string): Promise<void> {
  const { csrf } = await (await request.get('/api/v1/me')).json()
  const removed = await request.delete(`/api/v1/queue/topics/${topic}`, {
    ...{ headers: { 'x-csrf': csrf }, params: { force: '1' } },
  })
  expect(removed.status(), await removed.text()).toBe(200)
}

type Item = { readonly text: string; readonly level: string; readonly shard: string }

/** The open items of the overview, which is the page shown. */
async function itemsOf(page: Page): Promise<Item[]> {
  const all = page.getByRole('button', { name: /^Show all/ })
  if (await all.isVisible()) await all.click()
  const rows = page.getByRole('list', { name: 'Needs attention' }).getByRole('listitem')
  return await rows.evaluateAll((found) =>
    found.map((row) => ({
      text: row.querySelector('a')?.textContent ?? '',
      level: row.getAttribute('data-level') ?? '',
      shard: row.getAttribute('data-shard') ?? '',
    })),
  )
}

async function open(page: Page, path: string, id: string): Promise<void> {
  await page.goto(path)
  await ready(page, id)
}

/** Reads all pages that tell of health. @returns what they say against each other */
async function contradictions(page: Page): Promise<string[]> {
  await open(page, '/', 'overview')
  const items = await itemsOf(page)
  const lead =
    (await page
      .getByText(/shards are healthy|items? needs? attention/)
      .first()
      .textContent()) ?? ''
  const badges = await page
    .getByRole('navigation')
    .first()
    .locator('a[aria-describedby]')
    .evaluateAll((links) =>
      links.map((link) => ({
        page: link.getAttribute('href') ?? '',
        items: Number.parseInt(
          document.getElementById(link.getAttribute('aria-describedby') ?? '')?.textContent ?? '',
          10,
        ),
      })),
    )

  await open(page, '/shards', 'shards')
  const listed = await page.locator('tbody tr[data-key]').evaluateAll((rows) =>
    rows.map((row) => ({
      id: row.getAttribute('data-key') ?? '',
      level: row.querySelector('[data-level]')?.getAttribute('data-level') ?? '',
    })),
  )
  await open(page, '/topology?view=table', 'topology')
  const things = await page.locator('tr[data-thing]').evaluateAll((rows) =>
    rows.map((row) => {
      const [key = '', kind = '', level = ''] = ['thing', 'kind', 'level'].map(
        (name) => row.getAttribute(`data-${name}`) ?? '',
      )
      return { key, kind, level }
    }),
  )
  const noProblem = await page.getByText('none with a problem').count()
  await open(page, '/queue', 'queue')
  const dead = Number(
    (
      await page
        .getByText(/\bdead\b/)
        .first()
        .textContent()
    )?.match(/([\d,]+) dead/)?.[1] ?? 0,
  )
  const found: string[] = []
  if (items.length > 0 === /are healthy/.test(lead)) found.push(`${items.length} items under "${lead}"`)
  if (badges.reduce((sum, each) => sum + each.items, 0) !== items.length)
    found.push(`${items.length} items, but the menu has ${JSON.stringify(badges)}`)
  for (const { id, level } of listed) {
    await open(page, `/shards/${id}`, 'shard')
    const own = await page
      .locator('main h1 ~ [data-level], main h1 ~ * [data-level]')
      .first()
      .getAttribute('data-level', { timeout: 5_000 })
    const drawn = things.find(({ key }) => key === `shard ${id}`)?.level
    if (level !== own) found.push(`${id}: ${level} in the list, ${own} on its page`)
    const isNamed = items.some(({ shard, text }) => shard === id || text.includes(id))
    if (level !== drawn) found.push(`${id}: ${level} in the list, ${drawn} in the topology`)
    if (level !== 'ok' && !isNamed) found.push(`${id}: ${level}, but no item of the overview`)
    if (level === 'ok' && items.some((item) => item.shard === id && item.level === 'crit'))
      found.push(`${id}: ok in the list, critical on the overview`)
  }
  if (noProblem > 0 === things.some(({ level }) => level === 'crit' || level === 'warn'))
    found.push(`the topology names ${noProblem > 0 ? 'no problem' : 'a problem'} above its rows`)
  for (const { key, kind, level } of things) {
    const name = key.split(/[ /]/).at(-1) ?? ''
    const isNamed = items.some(({ text }) => text.includes(name))
    if (kind !== 'shard' && kind !== 'node' && level === 'crit' && !isNamed)
      found.push(`${key}: critical in the topology, but no item of the overview`)
  }
  if (dead > 0 !== items.some(({ text }) => /dead jobs?/.test(text)))
    found.push(`${dead} dead jobs on the queue's page`)
  return found
}

/** @param cause in the one item that is new */
async function happens(page: Page, cause: RegExp, what: () => Promise<unknown>): Promise<void> {
  await open(page, '/', 'overview')
  await what()
  await expect
    .poll(async () => (await itemsOf(page)).filter(({ text }) => cause.test(text)).length, { timeout: NAMED_MS })
    .toBe(1)
}

/** One cause, one item; then all pages agree. */
async function settles(page: Page, texts: readonly RegExp[]): Promise<void> {
  await open(page, '/', 'overview')
  await expect
    .poll(async () => (await itemsOf(page)).map(({ text }) => text), { timeout: CLEARED_MS })
    .toEqual(texts.map((text) => expect.stringMatching(text)))
  await expect.poll(() => contradictions(page), { timeout: AGREED_MS }).toEqual([])
}

/** What the overview says of a process that is gone while another one does its work, by kind. */
const CAUSES: { readonly [kind in Kind]?: (name: string) => RegExp } = {
  registry: () => /^New segments and components are not routed. Known routes stay \(.* down\)$/,
  resolver: () => /^Hosts that move are not found. Known addresses stay \(.* down\)$/,
  node: (name) => new RegExp(`^shard[12] / ${name} is `),
  bridge: (name) => new RegExp(`^Bridge ${name}: `),
  'zone-router': (name) => new RegExp(`^Zone router ${name}: `),
  'edge-router': () => /^Edge router .*: /,
  proxy: () => /^Proxy .*: /,
}

// Each case reads every page, several times.
test.describe.configure({ timeout: 400_000 })

/** One process of each kind, another one each day. */
const { components } = planOf({ ...SHAPE, network: 1, portOffset: 0, isOneAddress: false })
const today = Math.floor(Date.now() / 86_400_000)
const oneOfEach = [...Map.groupBy(components, ({ kind }) => kind).values()].flatMap(
  (all) => all[today % all.length] ?? [],
)
for (const { name, kind } of oneOfEach) {
  test(`${name} is killed`, async ({ page, platform }) => {
    const cause = CAUSES[kind]?.(name) as RegExp
    await happens(page, cause, () => platform.run('kill', name))
    await settles(page, [cause])
    await platform.run('restart', name)
    await settles(page, [])
  })
}

/** Processes that are killed together. */
const TOGETHER: readonly { readonly what: string; readonly names: readonly string[]; readonly cause: RegExp }[] = [
  {
    what: 'both edge routers',
    names: ['router-edge-0', 'router-edge-1'],
    cause: /^All clients: no edge router is left \(.*, .* down\)$/,
  },
  {
    what: 'both bridges of a shard',
    names: ['bridge-0-0', 'bridge-0-1'],
    cause: /^Shard shard1.*: no bridge is left, reads and writes get 503 \(bridge-0-0, bridge-0-1 down\)$/,
  },
  {
    what: 'two of three voters',
    names: ['node-0-0', 'node-0-1'],
    cause: /^shard1 has lost its quorum: 1 of 3 voters answer, 2 needed \(node-0-0, node-0-1 down\)/,
  },
]
for (const { what, names, cause } of TOGETHER) {
  test(`${what} are killed`, async ({ page, platform }) => {
    await happens(page, cause, () => Promise.all(names.map((name) => platform.run('kill', name))))
    await settles(page, [cause])
    await Promise.all(names.map((name) => platform.run('restart', name)))
    await settles(page, [])
  })
}

/** Of the last hour, without snapshots, which nodes save all the time. */
async function eventsOf(request: APIRequestContext): Promise<string[]> {
  const kinds = 'leader,role,state,membership,restart,codecs,operation'
  const params = { from: 'now-1h', to: 'now', kinds, limit: 500 }
  const { events } = await (await request.get('/api/v1/events', { params })).json()
  return events.map(({ at, message }: { at: string; message: string }) => `${at} ${message}`)
}

test('the control plane is killed', async ({ page, platform }) => {
  const lost = page.getByText('Disconnected from the control plane').first()
  await settles(page, [])
  await open(page, '/', 'overview')
  const before = await eventsOf(page.request)
  await platform.run('kill', 'control-plane')
  await expect(lost).toBeVisible({ timeout: NAMED_MS })
  // What was known stays, with its age.
  await expect(page.getByRole('region', { name: 'Cluster', exact: true })).toContainText(/[0-9] healthy/)
  await platform.run('restart', 'control-plane')
  await expect(lost).toBeHidden({ timeout: CLEARED_MS })
  await settles(page, [])
  // Nothing happened to the cluster, so its history has nothing new.
  expect((await eventsOf(page.request)).filter((event) => !before.includes(event))).toEqual([])
})

test('jobs are dead', async ({ page, browser, platform, admin }) => {
  const cause = new RegExp(`^${JOBS_TOPIC} has [0-9]+ dead jobs$`)
  await happens(page, cause, () => makeJobs(browser, platform.url, admin))
  await settles(page, [cause])
  await removeTopic(page.request, JOBS_TOPIC)
  await settles(page, [])
})

test('a certificate ends', async ({ page, platform }) => {
  const cause = /^shard1 \/ node-0-0: a certificate or token ends/
  const reissue = async (...days: string[]) => {
    const certs = join(platform.dir, 'certs')
    const { code, stderr } = await runVacancy([
      ...['certs', 'node', '--ca', certs, '--out', certs, '--node-id', 'node-0-0', '--force'],
      ...days,
    ])
    expect(code, stderr).toBe(0)
  }
  await happens(page, cause, () => reissue('--days', '5'))
  await settles(page, [cause])
  await reissue()
  await settles(page, [])
})

test('an import fails', async ({ page }) => {
  const folder = mkdtempSync(join(tmpdir(), 'vacancy-e2e-csv-'))
  const files = ['properties', 'packages'].map((file) => join(folder, `${file}.csv`))
  const today = new Date().toISOString().slice(0, 10)
  writeFileSync(files[0] as string, 'p1,dolomites,valley,hotel,luxury,4,47.1,11.1,wifi\n')
  writeFileSync(files[1] as string, `other,double,${today},3,120,\n`)
  await happens(page, /^Import nothing of shard1 failed: /, async () => {
    await open(page, '/imports/new', 'import-new')
    await page.getByRole('textbox', { name: /^Name/ }).fill('nothing')
    await page.getByRole('combobox', { name: /^Shard/ }).fill('shard1')
    await page.locator('input[type="file"]').first().setInputFiles(files)
    await page.getByRole('button', { name: 'Upload and build' }).click()
    await expect(flowOf(page, 'nothing')).toHaveAttribute('data-import-state', 'failed')
    await open(page, '/', 'overview')
  })
  await settles(page, [/^Import nothing of shard1 failed: /])
  rmSync(folder, { recursive: true })
})
