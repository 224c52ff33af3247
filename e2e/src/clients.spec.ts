/** What clients see: the line at the top of the overview, each way in behind it, and its items among those that need attention. */
import { expect } from '@playwright/test'
import { ready } from './console.ts'
import { simulated } from './simulation.ts'
import { violationsOf } from './violations.ts'

/** A failure is repeated before it counts, and each way is probed every 5 s. */
const MEASURED_MS = 30_000

const test = simulated(['--nodes', '6', '--shards', '2', '--zones', '2', '--seed', '7'])

test('the overview begins with what clients see, and names a node that answers over HTTP but to no client', async ({
  page,
  simulation,
}) => {
  await simulation.act('lead', { shard: 's1', node: 'n1' })
  await page.goto('/')
  await ready(page, 'overview')
  const clients = page.getByRole('region', { name: 'Clients' })
  await expect(clients.locator('[data-level="ok"]')).toHaveText('Answered', { timeout: MEASURED_MS })
  await expect(clients).toContainText('2 of 2 shards answered')
  await expect(clients).toContainText(/Search p50 [0-9.]+ m?s, p99 [0-9.]+ m?s/)
  await expect(clients).toContainText(/Hold p50 [0-9.]+ m?s, p99 [0-9.]+ m?s/)

  await clients.getByRole('button', { name: 'Show each way in' }).click()
  const ways = clients.getByRole('table', { name: 'Ways in' })
  await expect(ways.locator('tr[data-state="answers"]')).toHaveCount(6)
  await expect(ways).toContainText('writes go to the leader')
  expect(await violationsOf(page, 'light')).toEqual([])

  await simulation.act('deaf', { shard: 's1', node: 'n2' })
  await expect(clients.locator('[data-level="warn"]').first()).toHaveText('1 shard answered in part', {
    timeout: MEASURED_MS,
  })
  // Failing ones are first.
  await expect(ways.locator('tbody tr').first()).toHaveAttribute('data-way', 'n2')
  const attention = page.getByRole('list', { name: 'Needs attention' })
  await expect(attention).toContainText('Clients of s1 get no answer through n2')

  await simulation.act('heal', { shard: 's1', node: 'n2' })
  await expect(clients.locator('[data-level="ok"]').first()).toHaveText('Answered', { timeout: MEASURED_MS })
})

test('a shard without a quorum is one item, which says what clients miss', async ({ page, simulation }) => {
  await page.goto('/')
  await ready(page, 'overview')
  for (const node of ['n1', 'n2']) await simulation.act('stop', { shard: 's2', node })
  const attention = page.getByRole('list', { name: 'Needs attention' })
  await expect(attention).toContainText(/s2 has lost its quorum: .*; clients (cannot book|get no answer)/, {
    timeout: MEASURED_MS,
  })
  await expect(attention.getByText(/^Clients of s2/)).toHaveCount(0)
})
