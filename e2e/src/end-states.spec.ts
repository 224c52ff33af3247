/** Every end state of operations in the console, with a simulated cluster. */

import { expect, type Page } from '@playwright/test'
import { ready } from './console.ts'
import { simulated } from './simulation.ts'
import { violationsOf } from './violations.ts'

/** An operation becomes unconfirmed 30 s after its request. */
const END_MS = 90_000

const test = simulated(['--nodes', '36', '--shards', '12', '--zones', '2', '--seed', '7'])

/** The first follower of a shard, as its page shows it. */
async function followerOf(page: Page, shard: string): Promise<string> {
  await page.goto(`/shards/${shard}`)
  await ready(page)
  return (await page.locator('tr[data-role="follower"]').first().getAttribute('data-node')) ?? ''
}

/** Opens the shard and starts a transfer to its first follower. */
async function transfer(page: Page, shard: string): Promise<string> {
  const target = await followerOf(page, shard)
  await page.goto(`/shards/${shard}?plan=transfer:${shard}:${target}`)
  const dialog = page.getByRole('dialog')
  await dialog.getByRole('button', { name: `Transfer leadership to ${target}` }).click()
  // The dialog closes once the operation has started.
  await expect(dialog).toHaveCount(0)
  return target
}

const ended = (page: Page, end: string) => page.locator(`[data-op-state="${end}"]`).first()

test('done', async ({ page }) => {
  await transfer(page, 's1')
  await expect(ended(page, 'done')).toBeVisible({ timeout: END_MS })
})

test('elsewhere', async ({ page, simulation }) => {
  await page.goto('/shards/s2')
  await ready(page)
  const other = (await page.locator('tr[data-role="follower"]').last().getAttribute('data-node')) ?? ''
  await simulation.act('elsewhere', { shard: 's2', node: other })
  const target = await transfer(page, 's2')
  await expect(ended(page, 'elsewhere')).toContainText(`Leadership went to ${other}, not ${target}`, {
    timeout: END_MS,
  })
})

test('refused', async ({ page, simulation }) => {
  await simulation.act('refuse', { shard: 's3', status: 409, text: 'a <b>change</b> is running' })
  await transfer(page, 's3')
  await expect(ended(page, 'refused')).toContainText('answered 409: a <b>change</b> is running', { timeout: END_MS })
})

test('no change and unconfirmed: after 30 s the old leader still leads, or no node responds', async ({
  page,
  simulation,
}) => {
  await simulation.act('never', { shard: 's4' })
  await simulation.act('hang', { shard: 's5' })
  const other = await page.context().newPage()
  const silence = async () => {
    for (const node of ['n1', 'n2', 'n3']) await simulation.act('silent', { shard: 's5', node })
  }
  await Promise.all([transfer(page, 's4'), transfer(other, 's5').then(silence)])

  await expect(ended(page, 'no-change')).toBeVisible({ timeout: END_MS })
  await expect(ended(other, 'unconfirmed')).toBeVisible({ timeout: END_MS })
})

test('an operation that waits for a follower to catch up can be cancelled, and sends no request to the nodes', async ({
  page,
  simulation,
}) => {
  const target = await followerOf(page, 's9')
  await simulation.act('lag', { shard: 's9', node: target, entries: 60_000 })
  await page.goto(`/shards/s9?plan=transfer:s9:${target}`)
  const dialog = page.getByRole('dialog')
  await dialog.getByRole('button', { name: 'Wait, then transfer', exact: true }).click()
  await dialog.getByRole('button', { name: `Wait, then transfer to ${target}` }).click()
  await expect(page.locator('[data-op-state="armed"]').first()).toBeVisible()

  await page.getByRole('link', { name: 'Operations', exact: true }).first().click()
  await page
    .getByRole('link', { name: `Transfer leadership of s9 to ${target}` })
    .first()
    .click()
  await ready(page, 'operation')
  await page.getByRole('button', { name: 'Cancel operation' }).click()

  await expect(ended(page, 'cancelled')).toContainText('Cancelled by admin')
  await simulation.act('lag', { shard: 's9', node: target, entries: 0 })
  await expect(page.locator('[data-step="requested"]')).toHaveCount(0)
})

test('a waiting operation continues without an open page, and starts once the follower has caught up', async ({
  page,
  simulation,
}) => {
  const target = await followerOf(page, 's10')
  await simulation.act('lag', { shard: 's10', node: target, entries: 60_000 })
  // It would start immediately if the control plane had not observed the lag yet.
  await expect(page.locator(`tr[data-node="${target}"]`)).toContainText(/behind/i)
  await page.goto(`/shards/s10?plan=transfer:s10:${target}:wait`)
  await page
    .getByRole('dialog')
    .getByRole('button', { name: `Wait, then transfer to ${target}` })
    .click()
  await expect(page.locator('[data-op-state="armed"]').first()).toBeVisible()
  await page.goto('about:blank')

  await simulation.act('lag', { shard: 's10', node: target, entries: 0 })
  await page.goto('/shards/s10')

  await expect(page.locator(`tr[data-node="${target}"][data-role="leader"]`)).toBeVisible({ timeout: END_MS })
  await page.goto('/operations')
  await expect(page.getByRole('row').filter({ hasText: `Transfer leadership of s10 to ${target}` })).toContainText(
    /done/i,
  )
})

test('in production a warning requires a reason, and the last spare voter the name of the shard', async ({
  page,
  simulation,
}) => {
  await setEnvironment(page, 'Production')
  try {
    const target = await followerOf(page, 's11')
    await simulation.act('cores', { shard: 's11', node: target, cores: 2 })
    await page.goto(`/shards/s11?plan=transfer:s11:${target}`)
    const dialog = page.getByRole('dialog')
    const move = dialog.getByRole('button', { name: `Transfer leadership to ${target}` })
    await expect(dialog.locator('[data-check="machine"][data-level="warn"]')).toBeVisible()
    await expect(move).toBeDisabled()
    await dialog.getByLabel(/^Reason/).fill('shorter')
    await expect(move).toBeDisabled()
    await dialog.getByLabel(/^Reason/).fill('new memory')
    await move.click()
    await expect(ended(page, 'done')).toContainText('new memory')

    const voter = await followerOf(page, 's12')
    await page.goto(`/shards/s12?plan=demote:s12:${voter}`)
    const demote = dialog.getByRole('button', { name: `Demote ${voter}` })
    await dialog.getByLabel(/^Reason/).fill('it is taken away')
    await expect(demote).toBeDisabled()
    await dialog.getByLabel('Type s12 to confirm').fill('s11')
    await expect(demote).toBeDisabled()
    await dialog.getByLabel('Type s12 to confirm').fill('s12')
    await demote.click()
    await expect(ended(page, 'done')).toBeVisible({ timeout: END_MS })

    await page.goto('/audit')
    await ready(page)
    await expect(page.getByRole('row').filter({ hasText: 'it is taken away' }).first()).toContainText(/s12/)
  } finally {
    await setEnvironment(page, 'Development')
  }
})

async function setEnvironment(page: Page, kind: 'Production' | 'Development'): Promise<void> {
  await page.goto('/settings/environment')
  await ready(page)
  const form = page.getByRole('form', { name: 'Environment' })
  await form.getByLabel('Label').fill(kind.toUpperCase())
  await form.getByRole('radio', { name: new RegExp(`^${kind}`) }).check()
  await form.getByRole('button', { name: 'Save environment' }).click()
  await expect(page.getByText('Environment saved').first()).toBeVisible()
}

test('a plan is refused with a new one when the leader has changed', async ({ page, simulation }) => {
  const target = await followerOf(page, 's6')
  await page.goto(`/shards/s6?plan=transfer:s6:${target}`)
  const act = page.getByRole('dialog').getByRole('button', { name: `Transfer leadership to ${target}` })
  await expect(act).toBeVisible()

  await simulation.act('lead', { shard: 's6', node: target })

  await expect(act).toBeDisabled()
  await expect(page.getByRole('dialog').locator('[data-check][data-level="block"]').first()).toBeVisible()
})

test('the overview shows problems and silent nodes; a snoozed item stays snoozed until it is restored', async ({
  page,
  simulation,
}) => {
  await simulation.act('garbage', { shard: 's7', node: 'n2' })
  await simulation.act('lag', { shard: 's8', node: 'n2', entries: 60_000 })
  await page.goto('/shards/s7')
  await ready(page)
  await expect(page.locator('tr[data-node="n2"][data-role]')).toHaveAttribute('data-state', 'unknown', {
    timeout: 30_000,
  })
  await page.goto('/')
  await ready(page)

  const attention = page.getByRole('region', { name: 'Attention' })
  await expect(attention).toContainText(/s8 \/ \S+ is far behind/, { timeout: 30_000 })

  const line = (list: string) =>
    page.getByRole('list', { name: list }).getByRole('listitem').filter({ hasText: 's8 /' })
  await line('Needs attention').getByRole('button', { name: 'Snooze' }).click()
  await page.getByRole('menuitem', { name: 'For 1 hour' }).click()
  await expect(line('Needs attention')).toHaveCount(0)
  await page.reload()
  await ready(page)
  await page.getByText(/^\d+ snoozed$/).click()
  await line('Snoozed').getByRole('button', { name: 'Unsnooze' }).click()
  await expect(line('Needs attention')).toBeVisible()
})

test('a follower with a different state is shown within seconds, is not a valid target, and is healthy once it agrees again', async ({
  page,
  simulation,
}) => {
  const node = await followerOf(page, 's6')
  const member = page.locator(`tr[data-node="${node}"][data-role]`)
  await expect(member).toHaveAttribute('data-state', 'healthy')

  await simulation.act('diverge', { shard: 's6', node })

  await expect(member).toHaveAttribute('data-state', 'different-data')
  await expect(member).toContainText(/Different data: its state differs from n\d at index [\d,]+/)
  await page.goto(`/shards/s6?plan=transfer:s6:${node}`)
  const check = page.getByRole('dialog').locator('[data-check="same-data"]')
  await expect(check).toHaveAttribute('data-level', 'block')
  await page.goto('/shards/s6')
  await simulation.act('agree', { shard: 's6', node })
  await expect(member).toHaveAttribute('data-state', 'healthy', { timeout: END_MS })
})

test('a change of leader is named on charts that zoom together, and the state before it is shown in the past', async ({
  page,
  simulation,
}) => {
  // A typed moment has whole seconds.
  const isRecorded = async () => {
    const at = new Date(Date.now() - 1_000).toISOString()
    return (await page.request.get(`/api/v1/past/summary?at=${at}`)).ok()
  }
  await expect.poll(isRecorded).toBe(true)
  const target = await followerOf(page, 's12')
  const before = (await page.locator('tr[data-role="leader"]').getAttribute('data-node')) ?? ''
  const then = new Date().toISOString()
  await simulation.act('lead', { shard: 's12', node: target })
  const leader = (node: string) => page.locator(`tr[data-node="${node}"][data-role="leader"]`)
  await expect(leader(target)).toBeVisible()

  await test.step('dragging zooms all charts, Backspace zooms out, a click pins a time', async () => {
    await page.goto('/shards/s12/metrics?from=now-5m')
    await expect(page.getByRole('button', { name: 'Leader changes 1' })).toBeVisible()
    const figures = page.locator('figure[data-chart]')
    const from = await figures.first().getAttribute('data-from')
    const plot = page.locator('figure[data-chart="Writes"] .u-over')
    const box = await plot.boundingBox()
    if (!box) throw new Error('the chart has no place')
    await page.mouse.move(box.x + box.width * 0.5, box.y + 30)
    await page.mouse.down()
    // To the end, which has the newest values.
    await page.mouse.move(box.x + box.width - 1, box.y + 30, { steps: 4 })
    await page.mouse.up()
    await expect(page).toHaveURL(/from=20\d\d-.*&to=20\d\d-/)
    await expect(figures.first()).not.toHaveAttribute('data-from', from ?? '')
    const zoomed = (await figures.first().getAttribute('data-from')) ?? ''
    await expect(figures.nth(5)).toHaveAttribute('data-from', zoomed)
    await plot.click({ position: { x: 40, y: 40 } })
    await expect(page).toHaveURL(/&pin=20\d\d-/)
    await page.keyboard.press('Backspace')
    await expect(page).toHaveURL(/from=now-5m/)
    await page.getByLabel('Type a time range').fill('now-3h')
    await page.getByLabel('Type a time range').press('Enter')
    await expect(page).toHaveURL(/from=now-3h/)
    expect(await violationsOf(page, 'light')).toEqual([])
  })

  await test.step('the past has the leader of then and no actions; a key steps to the change', async () => {
    await page.goto(`/shards/s12?at=${then}`)
    await expect(leader(before)).toBeVisible()
    await expect(page.getByRole('button', { name: 'Transfer leadership…' })).toHaveAttribute('aria-disabled', 'true')
    await expect(page.locator('[data-live="past"]')).toBeVisible()
    // Drawn once the keys of the bar work.
    await expect(page.getByRole('slider', { name: 'Time' })).toBeVisible()
    // On a busy machine the old leader may be recorded as a follower first, which is a step of its own.
    await expect(async () => {
      await page.keyboard.press('ArrowRight')
      await expect(leader(target)).toBeVisible({ timeout: 5_000 })
    }).toPass()
    expect(await violationsOf(page, 'light')).toEqual([])
    await page.emulateMedia({ colorScheme: 'dark' })
    expect(await violationsOf(page, 'dark')).toEqual([])
  })

  await test.step('what changed between two moments', async () => {
    await page.getByRole('button', { name: 'What changed…' }).click()
    const dialog = page.getByRole('dialog', { name: 'What changed' })
    await dialog.getByLabel('From (UTC)').fill(then.slice(0, 19).replace('T', ' '))
    await dialog.getByLabel('To (UTC)').fill('now')
    await dialog.getByRole('button', { name: 'Compare' }).click()
    await expect(dialog.locator('[data-change="leader"]')).toContainText(
      `leadership of s12 moved ${before} → ${target}`,
    )
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: 'Back to now' }).click()
    await expect(page).toHaveURL(/\/shards\/s12$/)
    await expect(page.locator('[data-past]')).toHaveCount(0)
  })
})
