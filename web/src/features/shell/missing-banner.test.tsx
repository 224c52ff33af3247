// @vitest-environment happy-dom
import { render, screen } from '@testing-library/react'
import type { AttentionItem, MissingSource } from '@vacancy/shared/contract'
import { expect, test } from 'vitest'
import '../../ui/testing/dom.ts'
import MissingBanner from './missing-banner.tsx'

const silent = (...sources: string[]) =>
  sources.map((source) => ({ source, code: 'refused', message: 'connection refused' })) as unknown as MissingSource[]
const item = (node: string | null, message: string) =>
  ({ level: 'crit', shard: 's1', node, message, href: '/shards/s1', action: 'Open s1' }) as AttentionItem

test.each([
  [item('n2', 's1 / n2 is unreachable: connection refused'), silent('s1/n2')],
  [item(null, 's1 has lost its quorum: 1 of 3 voters answer (n2, n3 down)'), silent('s1/n2', 's1/n3')],
])('silent nodes that the worst problem names are not named again: $message', (worst, missing) => {
  render(<MissingBanner missing={missing} nodes={9} worst={worst} />)

  expect(screen.getByText(worst.message)).toBeTruthy()
  expect(screen.getByText('Values of nodes that do not respond are missing below.')).toBeTruthy()
  expect(screen.queryByText(/did not respond/)).toBeNull()
})

test.each([
  ['of another shard', silent('s1/n2', 's2/n1')],
  ['of the same shard', silent('s1/n2', 's1/n20')],
  ['that is no node', silent('s1/n2', 'registry http://127.0.0.1:7000')],
])('a source %s is named beside the worst problem', (_, missing) => {
  render(<MissingBanner missing={missing} nodes={9} worst={item('n2', 's1 / n2 is unreachable')} />)

  expect(screen.getByText(new RegExp(`${missing[1]?.source} \\(connection refused\\)`))).toBeTruthy()
})
