import { expect, test } from 'vitest'
import { readYamlKeys, readYamlList } from './yaml.ts'

function keysOf(text: string) {
  const faults: string[] = []
  return { keys: readYamlKeys(text, 'a.yml', faults), faults }
}

function listOf(text: string) {
  const faults: string[] = []
  return { entries: readYamlList(text, 'a.yml', 'tokens', faults), faults }
}

test('keys have their value as plain data and their line', () => {
  expect(keysOf('# head\none: 1\n\ntwo:\n  - a\n  - {b: true}\nthree:\n')).toEqual({
    keys: [
      { key: 'one', line: 2, value: 1 },
      { key: 'two', line: 4, value: ['a', { b: true }] },
      { key: 'three', line: 7, value: null },
    ],
    faults: [],
  })
})

test.each(['', '# only a comment\n', 'null', '~', '---\n'])('%j has no keys', (text) => {
  expect(keysOf(text)).toEqual({ keys: [], faults: [] })
})

test.each([
  ['text', ['a.yml:1: must be a mapping of keys to values']],
  ['\n- a', ['a.yml:2: must be a mapping of keys to values']],
  ['0', ['a.yml:1: must be a mapping of keys to values']],
  ['a: 1\n7: 2', ['a.yml:2: a key must be text']],
  ['a: 1\n? [b]\n: 2', ['a.yml:2: a key must be text']],
  ['a: [', [expect.stringMatching(/^a\.yml:1:\d+: /)]],
  ['a: 1\nb: 2\na: 3', [expect.stringMatching(/^a\.yml:3:1: .*unique/)]],
])('%j is refused with its line', (text, faults) => {
  expect(keysOf(text).faults).toEqual(faults)
})

test('a valid key beside an invalid one is read', () => {
  expect(keysOf('7: 1\nb: 2').keys).toEqual([{ key: 'b', line: 2, value: 2 }])
})

test('a file of 4 MiB is read, and one byte more is refused', () => {
  // "é" has two bytes.
  const text = `a: é${'x'.repeat(4 * 1024 * 1024 - 5)}`

  expect(keysOf(text).faults).toEqual([])
  expect(keysOf(`${text}x`)).toEqual({ keys: [], faults: ['a.yml: is larger than 4194304 bytes'] })
})

test('a value may be used 100 times by its aliases, where it stands included', () => {
  const expand = (aliases: number) => keysOf(`base: &b [1]\nmany: [${Array(aliases).fill('*b').join()}]\n`)

  expect(expand(99).faults).toEqual([])
  expect(expand(99).keys[1]?.value).toHaveLength(99)
  expect(expand(100)).toMatchObject({
    keys: [{ key: 'base' }, { key: 'many', value: undefined }],
    faults: [expect.stringMatching(/^a\.yml:2: Excessive alias count/)],
  })
})

test('the entries of a list have their values and their line', () => {
  expect(listOf('tokens:\n  - a: 1\n    b: x\n\n  - {a: 2}\n')).toEqual({
    entries: [
      { line: 2, values: { a: 1, b: 'x' } },
      { line: 5, values: { a: 2 } },
    ],
    faults: [],
  })
  expect(listOf('tokens: []')).toEqual({ entries: [], faults: [] })
})

test.each([
  ['', 0, ['a.yml: tokens: is missing']],
  ['tokens:', 0, ['a.yml: tokens: must be a list']],
  ['tokens: {a: 1}', 0, ['a.yml: tokens: must be a list']],
  ['other: 1', 0, ['a.yml:1: other: the file has one key, tokens', 'a.yml: tokens: is missing']],
  ['tokens: [{a: 1}]\nother: 1', 1, ['a.yml:2: other: the file has one key, tokens']],
  ['tokens:\n  - {a: 1}\n  - text\n  -\n', 1, ['a.yml:3: must be a mapping', 'a.yml:4: must be a mapping']],
  ['tokens: [', 0, [expect.stringMatching(/^a\.yml:1:\d+: /)]],
])('the list %j has %i entries and faults', (text, count, faults) => {
  const read = listOf(text)

  expect(read.faults).toEqual(faults)
  expect(read.entries).toHaveLength(count)
})
