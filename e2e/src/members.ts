/** Helpers for the member table and for queries to the nodes. */

import { expect, type Locator, type Page } from '@playwright/test'
import type { Stack, StackNode } from './stack.ts'

export type Info = { leader_id: string; members: { voters: string[]; learners: string[] } }

const AGREED_MS_MAX = 45_000

/** The report of a node; undefined when it does not respond or knows no leader. */
async function reportOf({ api }: StackNode): Promise<Info | undefined> {
  const answer = await fetch(`${api}/cluster/info`, { signal: AbortSignal.timeout(1_000) }).catch(() => undefined)
  if (!answer?.ok) return undefined
  const info = (await answer.json()) as Info
  return info.leader_id === '' ? undefined : info
}

/** The report of the first node that knows the leader. */
export async function infoOf(stack: Stack): Promise<Info> {
  for (const node of stack.nodes) {
    const info = await reportOf(node)
    if (info) return info
  }
  throw new Error('no leader')
}

/**
 * A voter that does not lead, once all nodes name the same leader: right after an election some still name the previous
 * one.
 */
export async function heir(stack: Stack): Promise<string> {
  let voters: string[] = []
  let leaders: (string | undefined)[] = []
  const isAgreed = async () => {
    const reports = await Promise.all(stack.nodes.map(reportOf))
    voters = reports[0]?.members.voters ?? []
    leaders = reports.map((info) => info?.leader_id)
    return leaders[0] !== undefined && leaders.every((leader) => leader === leaders[0])
  }
  await expect.poll(isAgreed, { timeout: AGREED_MS_MAX }).toBe(true)
  const other = voters.find((voter) => voter !== leaders[0])
  if (other === undefined) throw new Error('there is no other voter')
  return other
}

/** A row of the member table. */
export const row = (page: Page, node: string): Locator => page.locator(`tr[data-node="${node}"][data-role]`)
