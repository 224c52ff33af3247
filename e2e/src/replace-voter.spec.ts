/** A dead voter is replaced by a learner: one plan, two verified steps, and how it goes on when the second is refused. */
import { expect, type Page } from '@playwright/test'
import { ready } from './console.ts'
import { simulated } from './simulation.ts'
import { violationsOf } from './violations.ts'

const END_MS = 60_000

const test = simulated(['--nodes', '8', '--shards', '2', '--zones', '2', '--seed', '7'])

/** The first follower of a shard, as its page shows it. */
async function followerOf(page: Page, shard: string): Promise<string> {
  await page.goto(`/shards/${shard}`)
  await ready(page)
  return (await page.locator('tr[data-role="follower"]').first().getAttribute('data-node')) ?? ''
}

test('a dead voter is replaced from its row, and the shard can lose one again', async ({ page, simulation }) => {
  const dead = await followerOf(page, 's1')
  await simulation.act('stop', { shard: 's1', node: dead })
  await page.getByRole('button', { name: `Replace… ${dead}` }).click({ timeout: END_MS })

  const dialog = page.getByRole('dialog')
  await expect(dialog.locator('[data-outcome]')).toHaveText(
    `n4 votes in place of ${dead}: the shard keeps 3 voters and can lose 1.`,
  )
  await expect(dialog).toContainText('Step 1: n4 becomes a voter. Then 3 of 4 voters answer, 3 needed: none may fail.')
  await expect(dialog).toContainText(
    `Step 2: ${dead} becomes a learner. Then 3 of 3 voters answer, 2 needed: 1 may fail.`,
  )
  expect(await violationsOf(page, 'light')).toEqual([])
  await dialog.getByRole('button', { name: `Replace ${dead} by n4` }).click()

  const operation = page.locator('[data-op-state="done"]').first()
  await expect(operation).toBeVisible({ timeout: END_MS })
  await expect(operation).toContainText(`n4 votes in place of ${dead}`)
  for (const step of ['listed', 'demote-listed'])
    await expect(operation.locator(`[data-step="${step}"]`)).toHaveAttribute('data-step-state', 'done')
})

test('a second step that is refused stops it, and the rest is a plan', async ({ page, simulation }) => {
  const dead = await followerOf(page, 's2')
  await simulation.act('stop', { shard: 's2', node: dead })
  await simulation.act('refuse', { shard: 's2', kind: 'demote', status: 409, text: 'no healthy majority' })
  await page.goto(`/shards/s2?plan=replace-voter:s2:${dead}`)
  const dialog = page.getByRole('dialog')
  await dialog.getByRole('button', { name: `Replace ${dead} by n4` }).click({ timeout: END_MS })

  const operation = page.locator('[data-op-state="stopped"]').first()
  await expect(operation).toContainText(`n4 is a voter now, ${dead} is still a voter`, { timeout: END_MS })
  await simulation.act('normal', { shard: 's2' })
  await operation.getByRole('button', { name: 'Plan the rest…' }).click()
  await expect(page.getByRole('dialog')).toContainText(`Demote ${dead} of s2 to learner`)
})
