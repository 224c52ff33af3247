/** Leadership under load on a newly formed shard, where healthy followers used to be shown as different. */

import { expect, ready, test } from './console.ts'
import { heir, infoOf, row } from './members.ts'
import { startWriter } from './writer.ts'

const WRITES = 350

declare global {
  interface Window {
    reportDifference(html: string): void
  }
}

test('under 350 writes a second leadership is transferred in three clicks, and no follower is shown as different', async ({
  page,
  stack,
}) => {
  const writer = await startWriter(stack, WRITES)
  const differing: string[] = []
  await page.exposeFunction('reportDifference', (html: string) => void differing.push(html))
  await page.addInitScript(() => {
    const look = () => {
      for (const shown of document.querySelectorAll('[data-state="different-data"]')) {
        window.reportDifference(shown.outerHTML.slice(0, 300))
      }
    }
    new MutationObserver(look).observe(document, { subtree: true, childList: true, attributeFilter: ['data-state'] })
  })
  const grows = async (by: number) => {
    const from = writer.written()
    await expect.poll(() => writer.written() - from, { timeout: 60_000 }).toBeGreaterThan(by)
  }
  await page.goto('/')
  await ready(page)
  await grows(WRITES)
  const target = await heir(stack)

  await page.locator(`[data-shard="quickstart"][data-node="${target}"]`).first().click()
  await ready(page)
  await page.getByRole('button', { name: `Make leader… ${target}` }).click()
  const dialog = page.getByRole('dialog', { name: `Transfer leadership of quickstart to ${target}` })
  await expect(dialog.locator('[data-check="same-data"]')).toHaveAttribute('data-level', 'ok')
  await dialog.getByRole('button', { name: `Transfer leadership to ${target}` }).click()

  await expect(page.locator('[data-op-state="done"]').first()).toBeVisible()
  await expect(row(page, target)).toHaveAttribute('data-role', 'leader')
  await expect.poll(async () => (await infoOf(stack)).leader_id).toBe(target)
  // Includes comparisons of states after the transfer.
  await grows(10 * WRITES)
  expect(differing).toEqual([])
  await writer.stop()
})
