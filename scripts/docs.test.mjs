import { expect, test } from 'vitest'
import { documents, stalePages } from './docs.mjs'

test('every generated page has the text of its tables and results: npm run docs', () => {
  expect(stalePages()).toEqual([])
})

test('every reference of an OpenAPI document has its component, and every component is used', () => {
  for (const document of Object.values(documents())) {
    const used = JSON.stringify(document).matchAll(/"#\/components\/schemas\/([\w.-]+)"/g)
    const names = new Set([...used].map(([, name]) => name))
    expect([...names].sort()).toEqual(Object.keys(document.components.schemas).sort())
  }
})
