/** A node of a real shard whose state diverges: what the console shows, from the first difference to its recovery. */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from '@vacancy/client'
import type { NodeReason, NodeStatus } from '@vacancy/shared/contract'
import { environmentWith, NODE_PLANTS } from '@vacancy/testkit/plant'
import { expect, test as ofStack, ready } from './console.ts'
import { heir, row } from './members.ts'
import { STARTER, type Stack, startStack } from './stack.ts'
import { startWriter } from './writer.ts'

/** States are compared every 5 s. */
const COMPARED_MS = 30_000
const SHOWN_MS = 10_000
const BACK_MS = 90_000

const test = ofStack.extend<object, { stack: Stack; marks: string }>({
  /** From its next start, a node with a file of its name in this folder sells rooms the wrong way. */
  marks: [
    async ({ browserName: _ }, use) => {
      const folder = mkdtempSync(join(tmpdir(), 'vacancy-planted-'))
      await use(folder)
      rmSync(folder, { recursive: true, force: true })
    },
    { scope: 'worker' },
  ],
  stack: [
    async ({ marks }, use) => {
      const stack = await startStack([], environmentWith(NODE_PLANTS.wrongDecrement, marks))
      const writer = await startWriter(stack)
      await use(stack)
      await writer.stop()
      // A failed test may have left it stopped.
      stack.signal(STARTER, 'SIGCONT')
      await stack.stop()
    },
    { scope: 'worker', timeout: 270_000 },
  ],
})

/** Sells a room. A node with the defect adds one instead. */
async function sellRoom(stack: Stack): Promise<void> {
  const [, line = ''] = readFileSync(join(stack.folder, 'csv/packages.csv'), 'utf8').split('\n')
  const [propertyId = '', roomType = '', date = ''] = line.split(',')
  const client = await connect({ nodes: stack.nodes.map(({ tcp }) => tcp) })
  await client.setAvailability({ propertyId, roomType, date, amount: 5 })
  await client.decreaseAvailability({ propertyId, roomType, date, amount: 1 })
  await client.close()
}

async function reasonsOf(stack: Stack, node: string): Promise<string[]> {
  const api = stack.nodes.find(({ id }) => id === node)?.api
  const answer = await fetch(`${api}/ready`)
  const { reasons } = (await answer.json()) as { reasons: NodeReason[] }
  return reasons.map(({ reason }) => reason)
}

type Digest = { readonly index: number; readonly value: string | undefined }

/** The newest digest of each node, with its index. */
function digestsOf(stack: Stack): Promise<Digest[]> {
  return Promise.all(
    stack.nodes.map(async ({ api }) => {
      const { digest } = (await (await fetch(`${api}/status`)).json()) as NodeStatus
      return { index: digest?.checked_index ?? 0, value: digest?.checked_value }
    }),
  )
}

/** Whether all nodes report the same digest at one index after this one. */
function equalAfter(index: number, digests: readonly Digest[]): boolean {
  const [first] = digests
  return (
    first !== undefined &&
    first.index > index &&
    digests.every((each) => each.index === first.index && each.value === first.value)
  )
}

test('a follower whose state differs from the log is shown with the reason, even after it has ended, until it has rejoined', async ({
  page,
  context,
  stack,
  marks,
}) => {
  test.setTimeout(300_000)
  const node = await heir(stack)
  const member = row(page, node)
  const overview = await context.newPage()
  const needs = overview.getByRole('list', { name: 'Needs attention' })
  await page.goto(`/shards/${stack.shard}`)
  await ready(page)
  await overview.goto('/')
  await ready(overview)
  await expect(member).toHaveAttribute('data-state', 'healthy')
  writeFileSync(join(marks, node), '')
  stack.signal(node, 'SIGKILL')
  await member.and(page.locator('[data-state="unreachable"]')).waitFor()
  await expect(member).toHaveAttribute('data-state', 'healthy', { timeout: BACK_MS })
  rmSync(join(marks, node))

  // Ended programs are not restarted meanwhile, so that this state can be checked.
  stack.signal(STARTER, 'SIGSTOP')
  try {
    await sellRoom(stack)
    await expect.poll(() => reasonsOf(stack, node), { timeout: COMPARED_MS }).toContain('digest_mismatch')

    // The node ends 10 s later, and this state with it.
    const reason = /its state differ(s|ed) from the log \(digest_mismatch\)/
    await expect(member).toContainText(reason, { timeout: SHOWN_MS })
    await expect(needs).toContainText(new RegExp(`${stack.shard} / ${node} .*${reason.source}`), { timeout: SHOWN_MS })
    await expect(page.getByRole('main', { name: stack.shard })).toContainText('cannot lose another')

    await expect(member).toHaveAttribute('data-state', 'unreachable')
    await expect(member).toContainText('Stopped: its state differed from the log (digest_mismatch)')
    await expect(needs).toContainText(`${stack.shard} / ${node} stopped: its state differed from the log`)
    const details = await context.newPage()
    await details.goto(`/shards/${stack.shard}/nodes/${node}`)
    await ready(details)
    await expect(details.getByRole('region', { name: 'Why this state' })).toContainText(
      /The state after index \d+ has digest \S+, expected \S+\./,
    )
    await details.close()
  } finally {
    stack.signal(STARTER, 'SIGCONT')
  }
  await expect.poll(() => stack.printed()).toContain(`${node}  ended with exit code 73`)
  await expect(member).toHaveAttribute('data-state', 'healthy', { timeout: BACK_MS })
  await expect(member).toHaveAttribute('data-role', 'follower')
  await expect(needs.filter({ hasText: node })).toHaveCount(0)
  const compared = (await digestsOf(stack)).map(({ index }) => index)
  await expect
    .poll(async () => equalAfter(Math.max(...compared), await digestsOf(stack)), { timeout: COMPARED_MS })
    .toBe(true)
  await expect(member).toHaveAttribute('data-state', 'healthy')
})
