import { COMMANDS } from '@vacancy/shared/wire'
import { expect, test } from 'vitest'
import { commandGroups, type QueryCommand, widgetOf } from './catalogue.ts'
import { commandTitles } from './copy.ts'

const choices = commandGroups().flatMap(({ commands }) => commands)

test('every command but the login is offered once, with its title', () => {
  expect(choices.map(({ name }) => name).sort()).toEqual(
    Object.keys(COMMANDS)
      .filter((name) => name !== 'LOGIN')
      .sort(),
  )
  for (const { name, title } of choices) expect(title).toBe(commandTitles[name])
})

test('commands that change data are marked, and reads are not', () => {
  const isMarked = (command: QueryCommand) => choices.find(({ name }) => name === command)?.isWrite

  expect(['SETPROP', 'DECROOMAVL', 'DELPROP'].map((name) => isMarked(name as QueryCommand))).toEqual([true, true, true])
  expect(['SEARCHPROP', 'PROPEXIST', 'GETCODECS'].map((name) => isMarked(name as QueryCommand))).toEqual([
    false,
    false,
    false,
  ])
})

test('searches come first, and all that deletes comes last', () => {
  const groups = commandGroups()

  expect(groups.at(0)?.commands.map(({ name }) => name)).toEqual(['SEARCHPROP', 'SEARCHAVAIL'])
  const names = choices.map(({ name }) => name)
  const deletes = names.filter((name) => name.startsWith('DEL'))
  expect(deletes.length).toBeGreaterThan(0)
  expect(names.slice(-deletes.length)).toEqual(deletes)
})

test('numbers are bounded by the table, else by their width', () => {
  const spec = { required: false, type: 3 } as const
  const widget = (fields: object) => widgetOf({ ...spec, name: 'x', ...fields } as never)

  expect(widget({ width: 'u8' })).toEqual({ as: 'number', min: 0, max: 255, step: 1 })
  expect(widget({ width: 'u32', min: 1, max: 9 })).toEqual({ as: 'number', min: 1, max: 9, step: 1 })
  expect(widget({ width: 'f64' })).toEqual({ as: 'number', min: -Number.MAX_VALUE, max: Number.MAX_VALUE, step: 'any' })
  expect(widget({ width: 'text' })).toEqual({ as: 'text' })
  expect(widget({ width: 'list' })).toEqual({ as: 'list' })
})
