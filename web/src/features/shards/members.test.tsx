// @vitest-environment happy-dom
import { screen } from '@testing-library/react'
import type { ShardView } from '@vacancy/shared/contract'
import { afterEach, expect, test, vi } from 'vitest'
import { user } from '../../ui/testing/dom.ts'
import { renderPage } from '../queue/testing/page.tsx'
import { nodeOf, shardOf } from './testing/shards.ts'

afterEach(() => vi.unstubAllGlobals())

const MEMBERS = [
  nodeOf({ id: 'n1', role: 'leader' }),
  nodeOf({ id: 'n2' }),
  nodeOf({ id: 'n3' }),
  nodeOf({ id: 'n4', role: 'learner', voter: false }),
]
const LOST = 'Quorum lost (1 of 3 voters answers, 2 needed)'

function show(shard: ShardView): void {
  vi.stubGlobal('fetch', async (input: string) => {
    const isShard = new URL(input, location.href).pathname === '/api/v1/shards/s1'
    return Response.json(isShard ? shard : {}, { status: isShard ? 200 : 404 })
  })
  renderPage('/shards/s1')
}

/** Why each action is disabled, by its label; '' when it is not. */
async function reasons(): Promise<Record<string, string>> {
  await screen.findByRole('button', { name: 'Demote… n3' })
  const actions = screen.getAllByRole('button', { name: /^(Make leader|Demote|Promote|Transfer leadership)…/ })
  return Object.fromEntries(
    actions.map((action) => [
      action.getAttribute('aria-label') ?? action.textContent?.replace(action.dataset['tip'] ?? '', '') ?? '',
      action.getAttribute('aria-disabled') === 'true' ? (action.dataset['tip'] ?? '') : '',
    ]),
  )
}

test('a shard that lost its quorum has no action that needs one, and each shows the reason', async () => {
  // The leader still responds to the control plane, which cannot reach the others.
  show(shardOf({ nodes: MEMBERS, state: 'quorum-lost', level: 'crit', message: LOST, votersUp: 1 }))

  expect(await reasons()).toEqual({
    'Transfer leadership…': LOST,
    'Make leader… n1': 'n1 is already the leader',
    'Demote… n1': LOST,
    'Make leader… n2': LOST,
    'Demote… n2': LOST,
    'Make leader… n3': LOST,
    'Demote… n3': LOST,
    'Promote… n4': LOST,
  })
  await user().click(screen.getByRole('button', { name: 'Demote… n3' }))
  expect(location.search).toBe('')
})

test('with a majority all of them are available', async () => {
  show(shardOf({ nodes: MEMBERS, state: 'degraded-last', votersUp: 2 }))

  expect(Object.entries(await reasons()).filter(([, why]) => why !== '')).toEqual([
    ['Make leader… n1', 'n1 is already the leader'],
  ])
  await user().click(screen.getByRole('button', { name: 'Demote… n3' }))
  expect(location.search).toBe('?plan=demote%3As1%3An3')
})
