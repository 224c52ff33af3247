import { expect, test } from 'vitest'
import { applyEdit, draw, editsOf } from './mutations.mjs'

const changes = (source) => editsOf('module.ts', source).map(({ before, after }) => `${before} → ${after}`)

test.each([
  ['a boundary', 'const a = b < 2', ['< → <=', '2 → 3', '2 → 1']],
  ['a constant below one', 'f = 0', ['f = 0 → ;', '0 → 1', '0 → (-1)']],
  ['a condition', 'if (a) b = c', ['a → !(a)', 'b = c → ;']],
  ['a logical operator', 'const a = b && c', ['&& → ||']],
  ['a return value', 'function f() { return a }', ['a → undefined']],
  ['the value of an arrow function', 'const f = () => a', ['a → (undefined)']],
  ['false as a return value', 'function f() { return false }', ['false → true']],
  ['false as the value of an arrow function', 'const f = () => false', ['false → true']],
  ['a throw', 'throw error', ['throw error → ;']],
  ['a flag', 'const a = { b: true }', ['true → false']],
  ['a counter', 'for (;;i++) f', ['++ → --', 'f → ;']],
  ['a value with a type', 'const a = (1 as number)!', ['1 → 2', '1 → 0']],
])('edits %s', (_, source, expected) => {
  expect(changes(source)).toEqual(expected)
})

test.each([
  ['types', 'type A = 1 | 2; interface B { c: true }; let a: 3'],
  ['imports', "import a from 'a'"],
  ['text', "const a = 'a' + b + `c`"],
  ['keys', "const a = { 1: 'b' }"],
  ['log messages', "log.info('a', { b: 1 }); node.log.warn(`c`); env?.log.warn(2)"],
  ['assertions', "assert(a < 1, 'b'); unreachable(c); assertProgress(d)"],
  ['directives', "'use client'"],
])('leaves out %s', (_, source) => {
  expect(changes(source)).toEqual([])
})

test('an edit knows its line and column, and changes nothing else', () => {
  const source = 'const a = 1\n  if (a < b) c()\n'
  const edit = editsOf('module.ts', source).find(({ kind }) => kind === 'operator')
  expect(edit).toMatchObject({ line: 2, column: 9, before: '<' })
  expect(applyEdit(source, edit)).toBe('const a = 1\n  if (a <= b) c()\n')
})

test('every edit of a module can be parsed', () => {
  const source = 'export const f = async (a = 0) => ({ b: -0 + a, c: a > 1 ? [1] : await g() })\nif (f) f.x += 1\n'
  const edits = editsOf('module.ts', source)
  for (const edit of edits) expect(() => editsOf('module.ts', applyEdit(source, edit))).not.toThrow()
  expect(edits.length).toBeGreaterThan(10)
})

test('a module that cannot be parsed is an error', () => {
  expect(() => editsOf('module.ts', 'const = 1')).toThrow('module.ts')
})

test('a seed always draws the same edits, each once', () => {
  const items = Array.from({ length: 100 }, (_, index) => index)
  expect(draw(items, 10, 7)).toEqual(draw(items, 10, 7))
  expect(draw(items, 10, 7)).not.toEqual(draw(items, 10, 8))
  expect(new Set(draw(items, 200, 7)).size).toBe(100)
})
