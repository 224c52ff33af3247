import type { ClusterInfo } from '@vacancy/shared/contract'
import { expect, test } from 'vitest'
import type { NodeObservation } from '../cluster/observation.ts'
import { HASH, NOW, observedNode, shardOf, statusOf } from '../testing/observed-nodes.ts'
import { matrixOf, restorableOf } from './matrix.ts'

const viewOf = (nodes: readonly NodeObservation[]) => shardOf(nodes).view
const digest = (letter: string) => letter.repeat(64)

/** A node with this newest snapshot; null: it has none, undefined: it reported none. */
function holding(
  id: string,
  snapshot: string | null | undefined,
  change: Partial<NodeObservation> = {},
): NodeObservation {
  const own = snapshot && {
    ...{ id: snapshot, created_at: '2026-11-22T11:00:00.000Z', shard_id: 's1', last_index: 40, last_term: 4 },
    ...{ properties: 1, packages: 2, segments: 1, window: null, codec_hash: HASH, bytes: 300, duration_ms: 1 },
    origin: 'periodic' as const,
  }
  const status = { value: statusOf({ snapshot: own || null, wal: own ? { bytes: 1, files: 1 } : null }), at: NOW }
  return observedNode({ id }, { status: snapshot === undefined ? undefined : status, ...change })
}
const away = {
  answeredAt: NOW - 60_000,
  missed: 9,
  error: { code: 'refused', message: 'refused', since: NOW - 60_000 },
}

test.each([
  ['all hold the same', [digest('a'), digest('a'), digest('a')], 'yes', 'Yes: 3 of 3 voters', '3 of 3 hold aaaaaaaa…'],
  ['each has its own', [digest('a'), digest('b'), digest('c')], 'yes', 'Yes: 3 of 3 voters', '1 of 3 hold'],
  ['two have nothing', [digest('a'), null, null], 'no', 'No: 1 of 3 voters', '1 of 3 hold aaaaaaaa…'],
  ['two did not report', [digest('a'), undefined, undefined], 'unknown', 'Not known: n2, n3 did not report', '1 of 1'],
] as const)('after a full stop, when %s', (_, held, verdict, message, same) => {
  const shard = viewOf(held.map((snapshot, at) => holding(`n${at + 1}`, snapshot)))

  const found = restorableOf(shard, undefined)

  expect(found.verdict).toBe(verdict)
  expect(found.message).toContain(message)
  expect(found.message).toContain('2 needed')
  if (same !== '1 of 1') expect(found.same).toContain(same)
})

test('a voter that does not respond is listed, and never counted as holding nothing', () => {
  const shard = viewOf([holding('n1', digest('a')), holding('n2', null), holding('n3', digest('a'), away)])

  const found = restorableOf(shard, undefined)

  expect([found.verdict, found.message]).toEqual([
    'unknown',
    expect.stringMatching(/^Not known: n3 did not respond; 1 of 3/),
  ])
})

test('a forming shard needs the same snapshot on a majority of its initial voters', () => {
  const founders = (...held: string[]): NonNullable<ClusterInfo['bootstrap']> => ({
    ...{ waits_for: 'snapshot', why: '', needed: 2 },
    voters: held.map((snapshot, at) => ({
      ...{ id: `n${at + 1}`, index: 1, detail: '' },
      ...(snapshot === '?' ? { state: 'silent' as const, snapshot: '' } : { state: 'seeded' as const, snapshot }),
    })),
  })
  const shard = viewOf([holding('n1', undefined), holding('n2', undefined), holding('n3', undefined)])
  const verdict = (...held: string[]) => restorableOf(shard, founders(...held))

  expect(verdict(digest('a'), digest('a'), digest('b')).message).toBe(
    'Yes: 2 of 3 initial voters hold aaaaaaaa…, 2 needed',
  )
  expect(verdict(digest('a'), digest('b'), digest('c')).message).toBe(
    'No: 1 of 3 initial voters hold aaaaaaaa…, 2 needed',
  )
  expect(verdict(digest('a'), '?', digest('b')).message).toMatch(/^Not known: n2 did not respond; 1 of 3/)
  expect(verdict('', '', '').verdict).toBe('no')
  expect(verdict('?', '?', '').verdict).toBe('unknown')
})

test('the matrix marks the snapshot of the majority, and the last report of a node that does not respond', () => {
  const nodes = [holding('n1', digest('a')), holding('n2', digest('a')), holding('n3', digest('b'), away)]
  const built = {
    id: digest('c'),
    name: 'hotels',
    stored: true,
    codecsCurrent: true,
    createdAt: '2026-11-20T00:00:00.000Z',
  }

  const matrix = matrixOf(viewOf(nodes), [built], undefined)

  expect(matrix.snapshots.map(({ id, voters, majority }) => [id[0], voters, majority])).toEqual([
    ['c', 0, false],
    ['a', 2, true],
    ['b', 1, false],
  ])
  expect(matrix.nodes.map(({ node, report, holds }) => [node, report, holds?.[0]])).toEqual([
    ['n1', 'current', 'a'],
    ['n2', 'current', 'a'],
    ['n3', 'last', 'b'],
  ])
})
