import { expect, test } from 'vitest'
import { count, tableLines } from './table.ts'

test('texts are aligned to the left and numbers to the right, under their headings', () => {
  const rows = [
    ['Graz', 7, 'a'],
    ['Linz an der Donau', 12_345, ''],
  ]

  expect(tableLines({ columns: ['Segment', 'Rooms', 'Note'], rows, counted: '' })).toEqual([
    'Segment            Rooms  Note',
    'Graz                   7  a',
    'Linz an der Donau  12345',
  ])
})

test('a heading can be the widest cell, and the type of each cell decides its side', () => {
  const rows = [
    ['-', 1],
    [10, '-'],
  ]

  expect(tableLines({ columns: ['first', 'second'], rows, counted: '' })).toEqual([
    'first  second',
    '-           1',
    '   10  -',
  ])
})

test('rows beyond the limit are counted', () => {
  const rows = [['a'], ['b'], ['a longer one']]

  expect(tableLines({ columns: ['x'], rows, counted: '' }, 2)).toEqual(['x', 'a', 'b', '… and 1 more'])
  expect(tableLines({ columns: ['x'], rows, counted: '' }, 3)).toEqual(['x', 'a', 'b', 'a longer one'])
})

test('a table without rows or columns has no lines', () => {
  expect(tableLines({ columns: ['x'], rows: [], counted: '' })).toEqual([])
  expect(tableLines({ columns: [], rows: [[]], counted: '' })).toEqual([])
  expect(tableLines({ columns: ['x'], rows: [['a']], counted: '' }, 0)).toEqual([])
})

test('a number has its noun', () => {
  expect([count(0, 'node'), count(1, 'node'), count(2, 'node')]).toEqual(['0 nodes', '1 node', '2 nodes'])
  expect(count(12_345, 'property', 'properties')).toBe('12,345 properties')
})
