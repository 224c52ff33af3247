import { join } from 'node:path'
import { editedSource, NODE_PLANTS } from '@vacancy/testkit/plant'
import { expect, test } from 'vitest'
import { DEFECTS } from './list.ts'

const ROOT = join(import.meta.dirname, '../..')

test('every planted defect edits the present sources, and has a name of its own', () => {
  const all = [...DEFECTS, ...Object.values(NODE_PLANTS)]
  expect(new Set(all.map(({ name }) => name)).size).toBe(all.length)
  for (const planted of all) {
    for (const { file } of planted.edits)
      expect(() => editedSource(planted, join(ROOT, file)), planted.name).not.toThrow()
  }
})
