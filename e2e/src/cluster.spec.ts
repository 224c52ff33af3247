/** Shard health and leadership, on real nodes. */

import { AxeBuilder } from '@axe-core/playwright'
import { expect, ready, test } from './console.ts'
import { heir, infoOf, row } from './members.ts'

const PERSISTENT_MS = 45_000
const CHUNK_MS = 700

test.beforeEach(async ({ stack, page }) => {
  await expect.poll(async () => (await infoOf(stack)).leader_id, { timeout: PERSISTENT_MS }).toMatch(/^n\d$/)
  await page.goto('/')
  await ready(page)
})

test('columns and views of the shard table are chosen by keyboard, and stored for the person', async ({
  page,
  browser,
  stack,
  admin,
}) => {
  const heads = (of: typeof page) => of.getByRole('table', { name: 'Shards' }).getByRole('columnheader')
  const press = async (name: string) => {
    await page.getByRole('button', { name, exact: true }).focus()
    await page.keyboard.press('Enter')
  }
  await page.goto('/shards')
  await ready(page)

  await press('Columns')
  const chooser = page.getByRole('dialog', { name: 'Columns' })
  await chooser.getByRole('checkbox', { name: 'Term' }).focus()
  await page.keyboard.press('Space')
  await expect(heads(page).last()).toHaveText('Term')
  await press('Move Term left')
  await expect(heads(page).nth(-2)).toHaveText('Term')
  const width = async () => (await heads(page).nth(-2).boundingBox())?.width ?? 0
  const before = await width()
  await press('Make Term wider')
  await expect.poll(width).toBeGreaterThan(before)
  await page.keyboard.press('Escape')
  await page.keyboard.press('/')
  await page.keyboard.type(`id:${stack.shard}`)
  await expect(page.getByRole('button', { name: `Remove id:${stack.shard}` })).toBeVisible()
  await press('Views')
  await page.getByRole('menuitem', { name: 'Save this view…' }).press('Enter')
  await page.getByRole('dialog').getByLabel('Name').fill('of the test')
  await page.keyboard.press('Enter')
  await expect(page.getByRole('list', { name: 'Saved views' })).toContainText('of the test')

  const elsewhere = await browser.newContext({ baseURL: stack.url, storageState: admin })
  const other = await elsewhere.newPage()
  await other.goto('/shards')
  await ready(other)
  await expect(heads(other).nth(-2)).toHaveText('Term')
  await other.getByRole('button', { name: 'Views' }).click()
  await other.getByRole('menuitem', { name: 'of the test' }).click()
  await expect(other).toHaveURL(/filter=id%3A.*columns=shard/)
  await other.getByRole('button', { name: `Remove id:${stack.shard}` }).click()
  await expect(other.getByRole('combobox', { name: 'Filter shards' })).toHaveValue('')
  await other.getByRole('button', { name: 'Columns' }).click()
  await other.getByRole('button', { name: 'Reset columns' }).click()
  await other.getByRole('button', { name: 'Reset widths' }).click()
  await expect(heads(other).filter({ hasText: 'Term' })).toHaveCount(0)
  await expect(other).not.toHaveURL(/columns=/)
  await elsewhere.close()
})

test('the same with the keyboard alone', async ({ page, stack }) => {
  const target = await heir(stack)

  // The code of the palette loads late; keys pressed meanwhile are not lost.
  await page.route('**/_next/static/**', async (route) => {
    await new Promise((resolve) => setTimeout(resolve, CHUNK_MS))
    await route.continue()
  })
  await page.keyboard.press('Control+k')
  await page.keyboard.type(`transfer ${stack.shard} ${target}`)
  await expect(page.getByRole('option').first()).toContainText(new RegExp(`transfer.*${target}`, 'i'))
  await page.keyboard.press('Enter')
  const dialog = page.getByRole('dialog', { name: `Transfer leadership of quickstart to ${target}` })
  await expect(dialog).toBeVisible()
  await expect(dialog.getByLabel(/^Reason/)).toBeFocused()
  await page.keyboard.type('keyboard alone')
  await page.keyboard.press('Control+Enter')

  await expect(page.getByRole('region', { name: /^Operation / })).toBeFocused()
  await expect(page.locator('[data-op-state="done"]').first()).toBeVisible()
  await expect.poll(async () => (await infoOf(stack)).leader_id).toBe(target)
})

test('a learner is promoted and demoted again, with audit entries of the person', async ({ page, stack }) => {
  await page.goto(`/shards/${stack.shard}`)
  await ready(page)

  await page.getByRole('button', { name: 'Promote… n4' }).click()
  await page
    .getByRole('dialog')
    .getByRole('button', { name: /^Promote n4/ })
    .click()
  await expect.poll(async () => (await infoOf(stack)).members.voters, { timeout: 60_000 }).toContain('n4')
  await expect(row(page, 'n4')).toHaveAttribute('data-role', 'follower')

  await page.getByRole('button', { name: 'Demote… n4' }).click()
  await page
    .getByRole('dialog')
    .getByRole('button', { name: /^Demote n4/ })
    .click()
  await expect.poll(async () => (await infoOf(stack)).members.learners, { timeout: 60_000 }).toContain('n4')
  await expect(row(page, 'n4')).toHaveAttribute('data-role', 'learner')

  await page.goto('/audit')
  await ready(page)
  await expect(page.getByRole('row').filter({ hasText: 'operation.start' }).first()).toContainText(/admin.*n4/)
})

test('a killed node is shown as unreachable, and recovers', async ({ page, stack }) => {
  const target = await heir(stack)
  await page.goto(`/shards/${stack.shard}`)
  await ready(page)

  stack.signal(target, 'SIGKILL')
  // It is restarted after 5 s, so this short state is polled without pauses.
  await page.locator(`tr[data-node="${target}"][data-role][data-state="unreachable"]`).waitFor()
  await expect(row(page, target)).toHaveAttribute('data-state', 'healthy', { timeout: 60_000 })
})

test('with half of the nodes silent every page still shows the known data', async ({ page, stack }) => {
  const { leader_id: leader } = await infoOf(stack)
  const silent = stack.nodes
    .map(({ id }) => id)
    .filter((id) => id !== leader)
    .slice(0, 2)
  for (const node of silent) stack.signal(node, 'SIGSTOP')
  try {
    await page.goto(`/shards/${stack.shard}`)
    for (const node of silent) await expect(row(page, node)).toHaveAttribute('data-state', 'not-answering')
    for (const path of [
      '/',
      '/shards',
      `/shards/${stack.shard}`,
      '/operations',
      '/audit',
      '/playground',
      '/registry/services',
    ]) {
      await page.goto(path)
      await ready(page)
    }
    await page.goto('/')
    await ready(page)
    await expect(page.getByRole('region', { name: 'Attention' })).toContainText(silent[0] as string)
  } finally {
    for (const node of silent) stack.signal(node, 'SIGCONT')
  }
  await page.goto(`/shards/${stack.shard}`)
  for (const node of silent) await expect(row(page, node)).toHaveAttribute('data-state', 'healthy', { timeout: 60_000 })
})

test('two tabs show the same change', async ({ page, context, stack }) => {
  const target = await heir(stack)
  const other = await context.newPage()
  for (const tab of [page, other]) {
    await tab.goto(`/shards/${stack.shard}`)
    await ready(tab)
    await expect(tab.locator('[data-live="live"]')).toBeVisible()
  }

  await page.getByRole('button', { name: `Make leader… ${target}` }).click()
  await page
    .getByRole('dialog')
    .getByRole('button', { name: `Transfer leadership to ${target}` })
    .click()

  await expect(row(other, target)).toHaveAttribute('data-role', 'leader')
})

test('the snapshot matrix of a shard, and whether it would recover, with a voter down', async ({ page, stack }) => {
  const away = await heir(stack)
  await page.goto(`/shards/${stack.shard}/snapshots`)
  await ready(page)
  const nodes = page.getByRole('table', { name: `Nodes and snapshots of ${stack.shard}` })
  await expect(nodes.locator('[data-node]')).toHaveCount(stack.nodes.length)
  await expect(page.locator('[data-verdict]')).toContainText('Would restart from disk: yes. 3 of 3 voters', {
    timeout: PERSISTENT_MS,
  })

  stack.signal(away, 'SIGSTOP')
  try {
    // Its last report is shown as such and does not count.
    await expect(nodes.locator(`[data-node="${away}"]`)).toHaveAttribute('data-report', 'last', {
      timeout: PERSISTENT_MS,
    })
    await expect(page.locator('[data-verdict]')).toContainText('Would restart from disk: yes. 2 of 3 voters')
    await expect(page.locator('[data-matrix]')).toContainText(`${away} (`)
  } finally {
    stack.signal(away, 'SIGCONT')
  }
  await expect(nodes.locator(`[data-node="${away}"]`)).toHaveAttribute('data-report', 'current', {
    timeout: PERSISTENT_MS,
  })
})

test('a codec list change is planned with the keyboard, followed, and discarded, without changes of registry and nodes', async ({
  page,
  stack,
}) => {
  await page.goto('/registry/codecs')
  await ready(page)
  await page.getByRole('button', { name: 'Edit codec list…' }).focus()
  await page.keyboard.press('Enter')
  const list = page.getByRole('form', { name: 'Codec list' })
  const first = await list.getByRole('textbox', { name: 'Position 0' }).inputValue()
  await list.getByRole('button', { name: `Move ${first} down` }).focus()
  await page.keyboard.press('Enter')
  await expect(list.getByRole('textbox', { name: 'Position 1' })).toHaveValue(first)
  // The focus stays with what is moved.
  await expect(list.getByRole('button', { name: `Move ${first} down` })).toBeFocused()
  await list.getByRole('button', { name: 'Add entry' }).focus()
  await page.keyboard.press('Enter')
  await page.keyboard.type(first.toUpperCase())
  await expect(list).toContainText('Names differ by more than letter case')
  await page.keyboard.press('Control+a')
  await page.keyboard.type('sauna')
  await page.keyboard.press('Enter')
  const plan = page.locator('[data-plan]')
  await expect(plan.locator('[data-change="moved"]')).toHaveCount(2)
  await expect(plan.locator('[data-change="added"]')).toContainText('sauna is added')
  await expect(plan.getByRole('list', { name: 'Snapshots that will be invalid' })).toContainText(stack.shard)
  const axe = new AxeBuilder({ page }).setLegacyMode(true).withTags(['wcag2a', 'wcag2aa', 'wcag21aa', 'wcag22aa'])
  expect((await axe.include('[data-plan]').analyze()).violations).toEqual([])
  const file = page.waitForEvent('download')
  await plan.getByRole('link', { name: 'Download codecs.yml' }).click()
  expect((await file).suggestedFilename()).toBe('codecs.yml')

  await plan.getByRole('button', { name: 'Track this plan…' }).click()
  const dialog = page.getByRole('dialog', { name: 'Track a codec list change' })
  const hash = (await plan.getAttribute('data-plan'))?.slice(0, 12) ?? ''
  await dialog.getByRole('textbox', { name: `Type ${hash} to confirm` }).fill(hash)
  await dialog.getByRole('textbox', { name: /^Reason/ }).fill('winter features first')
  await dialog.getByRole('button', { name: 'Track plan' }).click()
  const followed = page.locator('[data-complete="false"]')
  await expect(followed.locator('[data-step="registry"]')).toHaveAttribute('data-step-state', 'open')
  await expect(followed.locator('[data-step="start"]')).toContainText(`0 of ${stack.nodes.length} nodes`)
  await page.reload()
  await ready(page)
  await expect(followed).toContainText('winter features first')

  await followed.getByRole('button', { name: 'Stop tracking' }).click()
  await expect(followed).toHaveCount(0)
  const { codecs } = await (await page.request.get('/api/v1/registry/codecs')).json()
  expect(codecs.rate_features[0]).toBe(first)
})
