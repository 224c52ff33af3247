// @vitest-environment happy-dom
import { screen, within } from '@testing-library/react'
import type { Comparison, SnapshotDifferences } from '@vacancy/shared/contract'
import { afterEach, expect, test, vi } from 'vitest'
import { renderPage } from '../queue/testing/page.tsx'

afterEach(() => vi.unstubAllGlobals())

const [A, B] = ['a'.repeat(64), 'b'.repeat(64)]
const DIFFERENCES: SnapshotDifferences = {
  a: A,
  b: B,
  onlyA: { count: 1, first: [{ id: 'hotel_1', segment: 'alpine' }] },
  onlyB: { count: 1_200, first: [{ id: 'hotel_2', segment: 'coast' }] },
  changed: { count: 1, first: [{ id: 'hotel_3', segment: 'coast', what: ['packages'] }] },
}

function comparisonOf(kind: 'snapshot' | 'shard'): Comparison {
  const side = (id: string): Comparison['a'] => ({
    ...{ title: id.slice(0, 8), kind, id, node: null, at: '2026-11-20T18:30:00.000Z' },
    ...{ properties: 10, packages: 90, window: null, codecHash: 'c1', codecs: ['breakfast'] },
  })
  // Equal counts: only the properties tell the difference.
  return { a: side(A), b: side(B), equal: true, codecsEqual: true, window: null, segments: [] }
}

/** @returns the paths that were requested */
function serve(kind: 'snapshot' | 'shard', comparison = comparisonOf(kind)): string[] {
  const paths: string[] = []
  const answers: { readonly [path: string]: unknown } = {
    '/api/v1/snapshots/compare': comparison,
    '/api/v1/snapshots/compare/properties': DIFFERENCES,
    '/api/v1/snapshots': { snapshots: [] },
  }
  vi.stubGlobal('fetch', async (input: string) => {
    const path = new URL(input, location.href).pathname
    paths.push(path)
    return Response.json(answers[path] ?? {}, { status: path in answers ? 200 : 404 })
  })
  renderPage(`/snapshots/compare?a=${A}&b=${B}`)
  return paths
}

test('a comparison of two snapshots lists the properties that differ, and counts all of them', async () => {
  serve('snapshot')

  const table = await screen.findByRole('table', { name: 'Properties that differ' })
  const rows = within(table).getAllByRole('row').slice(1)
  expect(rows.map(({ textContent }) => textContent)).toEqual([
    'hotel_1alpineonly in A',
    'hotel_2coastonly in B',
    'hotel_3coastpackages',
  ])
  expect(screen.getByText(/^1 only in A, 1,200 only in B, 1 changed\. The first 1 of each kind/)).toBeTruthy()
})

test('the map of a difference has a scale with its zero and its unit', async () => {
  const segment = { name: 'alpine', in: 'both' as const, properties: { a: 10, b: 10 }, packages: { a: 900, b: 233 } }
  const window = { from: '2026-11-20', to: '2026-11-21' }
  serve('snapshot', { ...comparisonOf('snapshot'), equal: false, window, segments: [{ ...segment, days: [-667, 0] }] })

  const map = await screen.findByRole('figure', { name: /^Packages: B minus A/ })
  expect(map.querySelector('[data-scale]')?.textContent).toBe('−6670+667 packages')
})

test('a comparison with a shard shows that it has no properties', async () => {
  const paths = serve('shard')

  expect(await screen.findByText(/^Properties are compared between two stored snapshots/)).toBeTruthy()
  expect(paths).not.toContain('/api/v1/snapshots/compare/properties')
})
