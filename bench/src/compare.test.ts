import { expect, test } from 'vitest'
import { type Figures, rowsOf } from './compare.ts'

const figures: Figures = {
  'searches of 300 hits, p50': 0.1,
  'searches of 300 hits, p99': 1,
  'selective searches, p50': 0.05,
  'selective searches, p99': 0.5,
  'peak of searches of 300 hits': 40_000,
  'peak of selective searches': 80_000,
  'processor time a search of 300 hits': 25,
  'processor time a selective search': 12,
  'peak of writes': 300_000,
  'processor time a write': 3,
  'records imported, one thread': 25,
  'records imported, build-snapshot as a whole': 19,
  'snapshot loaded and log read': 0.3,
  'start to active': 0.8,
  'resident memory after the searches': 150,
}

test('the same figures are worse nowhere, and every one of them has a row', () => {
  const rows = rowsOf({ base: [figures, figures], here: [figures, figures] })

  expect(rows.every(({ verdict }) => verdict === 'met')).toBe(true)
  expect(rows.flatMap(({ measures }) => measures.map(({ name }) => name)).toSorted()).toEqual(
    Object.keys(figures).toSorted(),
  )
})

test('more memory and fewer writes are each found in their own row', () => {
  const worse = { ...figures, 'resident memory after the searches': 165, 'peak of writes': 250_000 }
  const rows = rowsOf({ base: [figures, figures], here: [worse, worse] })

  expect(rows.filter(({ verdict }) => verdict === 'missed').map(({ what }) => what)).toEqual([
    'writes, each on disk when answered',
    'memory',
  ])
})
