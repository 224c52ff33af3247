/** What tests look at in the table of members and ask of the nodes themselves. */

import type { Locator, Page } from '@playwright/test'
import type { Stack } from './stack.ts'

export type Info = { leader_id: string; members: { voters: string[]; learners: string[] } }

/** As a node tells it; of one that is sure who leads. */
export async function infoOf(stack: Stack): Promise<Info> {
  for (const { api } of stack.nodes) {
    const answer = await fetch(`${api}/cluster/info`, { signal: AbortSignal.timeout(1_000) }).catch(() => undefined)
    if (answer?.ok) {
      const info = (await answer.json()) as Info
      if (info.leader_id !== '') return info
    }
  }
  throw new Error('nobody leads')
}

/** A voter that does not lead. */
export async function heir(stack: Stack): Promise<string> {
  const { leader_id: leader, members } = await infoOf(stack)
  const other = members.voters.find((voter) => voter !== leader)
  if (other === undefined) throw new Error('there is no other voter')
  return other
}

/** Of the table of members. */
export const row = (page: Page, node: string): Locator => page.locator(`tr[data-node="${node}"][data-role]`)
