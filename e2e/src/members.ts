/** What tests look at in the table of members and ask of the nodes themselves. */

import { expect, type Locator, type Page } from '@playwright/test'
import type { Stack, StackNode } from './stack.ts'

export type Info = { leader_id: string; members: { voters: string[]; learners: string[] } }

const AGREED_MS_MAX = 45_000

/** What a node says; undefined when it does not answer, or does not know who leads. */
async function toldBy({ api }: StackNode): Promise<Info | undefined> {
  const answer = await fetch(`${api}/cluster/info`, { signal: AbortSignal.timeout(1_000) }).catch(() => undefined)
  if (!answer?.ok) return undefined
  const info = (await answer.json()) as Info
  return info.leader_id === '' ? undefined : info
}

/** As a node tells it; of one that is sure who leads. */
export async function infoOf(stack: Stack): Promise<Info> {
  for (const node of stack.nodes) {
    const info = await toldBy(node)
    if (info) return info
  }
  throw new Error('nobody leads')
}

/** A voter that does not lead, once all nodes name the same leader: right after an election some name the one before. */
export async function heir(stack: Stack): Promise<string> {
  let voters: string[] = []
  let leaders: (string | undefined)[] = []
  const isAgreed = async () => {
    const told = await Promise.all(stack.nodes.map(toldBy))
    voters = told[0]?.members.voters ?? []
    leaders = told.map((info) => info?.leader_id)
    return leaders[0] !== undefined && leaders.every((leader) => leader === leaders[0])
  }
  await expect.poll(isAgreed, { timeout: AGREED_MS_MAX }).toBe(true)
  const other = voters.find((voter) => voter !== leaders[0])
  if (other === undefined) throw new Error('there is no other voter')
  return other
}

/** Of the table of members. */
export const row = (page: Page, node: string): Locator => page.locator(`tr[data-node="${node}"][data-role]`)
