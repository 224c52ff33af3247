import fc from 'fast-check'
import { expect, test } from 'vitest'
import { law } from '../testing/law.ts'
import { COMMAND_LIST, COMMANDS, findCommand, isCommandName } from './commands.ts'

const encoder = new TextEncoder()

function find(text: string): number {
  const bytes = encoder.encode(`<${text}>`)
  return findCommand(bytes, 1, bytes.length - 2)
}

test('LOGIN is the first command, and the writes are known', () => {
  const named = (access: string) => COMMAND_LIST.filter((spec) => spec.access === access).map(({ name }) => name)

  expect(COMMAND_LIST.map(({ code }) => code)).toEqual(COMMAND_LIST.map((_, i) => i))
  expect(COMMANDS.LOGIN.code).toBe(0)
  expect(named('session')).toEqual(['LOGIN'])
  expect(named('write').sort()).toEqual([
    'BOOKSTAY',
    'CONFIRMSTAY',
    'DECROOMAVL',
    'DELPROP',
    'DELPROPDAY',
    'DELPROPROOM',
    'DELROOMDAY',
    'DELSEGMENT',
    'HOLDSTAY',
    'INCROOMAVL',
    'RELEASESTAY',
    'SETPROP',
    'SETROOMAVL',
    'SETROOMPKG',
  ])
})

test.each(COMMAND_LIST)('$name has its fields in ascending id order, each with the type of its width', ({ fields }) => {
  const ids = fields.map(({ id }) => id)
  const types = { text: 1, list: 1, u8: 2, u32: 3, u64: 3, f64: 3, lines: 10, names: 10, u8s: 10, u64s: 10 }

  expect(ids).toEqual([...new Set(ids)].sort((a, b) => a - b))
  for (const field of fields) {
    expect(field.type).toBe(types[field.width])
    expect(field.extension).toBe(field.id >= 0x8000)
    if (field.extension) expect(field.required).toBe(false)
    expect(field.summary).toMatch(/\.$/)
  }
})

test('the bounds of a number are those that its text names, and equal in all commands', () => {
  const numbers = COMMAND_LIST.flatMap(({ fields }) => fields).filter(({ width }) => /^[uf]\d/.test(width))
  const bounds = new Map<string, Set<string>>()
  for (const { name, min, max, summary } of numbers) {
    const shown = /(-?\d+) to (-?\d+)/.exec(summary)
    if (shown && (min !== undefined || max !== undefined)) {
      expect({ name, min: min ?? 0, max }).toEqual({ name, min: Number(shown[1]), max: Number(shown[2]) })
    }
    // An amount has the bounds of its command, a limit those of its reply.
    if (name !== 'amount' && name !== 'limit') bounds.set(name, (bounds.get(name) ?? new Set()).add(`${min} to ${max}`))
  }

  expect([...(bounds.get('longitude') ?? [])]).toEqual(['-180 to 180'])
  expect([...(bounds.get('latitude') ?? [])]).toEqual(['-90 to 90'])
  expect([...(bounds.get('stars') ?? [])]).toEqual(['1 to 5'])
  expect([...(bounds.get('minStars') ?? [])]).toEqual(['1 to 5'])
})

const isSearch = (name: string) => name.startsWith('SEARCH') || name === 'PRICECAL'
const isOfStays = (name: string) => isSearch(name) && name !== 'SEARCHPROP'

// docs/design/protocol.md#extension-fields.
test.each([
  [0x8001, isOfStays],
  [0x8002, isSearch],
  [0x8003, isSearch],
  [0x8005, (name: string) => name.startsWith('SEARCH')],
  [0x8008, isOfStays],
  [0x800c, isOfStays],
  [0x800d, (name: string) => name.startsWith('SEARCH')],
  [0x8018, isSearch],
  [0x8010, (_: string, access: string) => access === 'write'],
  [0x8011, (_: string, access: string) => access === 'write'],
  [0x8020, (_: string, access: string) => access === 'read'],
  [0x8021, (_: string, access: string) => access === 'read'],
  [0x8022, (_: string, access: string) => access === 'read'],
  [0x8023, (_: string, access: string) => access === 'write'],
  [0x8031, (name: string, access: string) => name.endsWith('STAY') && access === 'write'],
  [0x803f, (_: string, access: string) => access !== 'session'],
])('extension field %i belongs to the commands of the contract', (id, belongs) => {
  for (const { name, access, fields } of COMMAND_LIST) {
    expect(fields.some((field) => field.id === id)).toBe(belongs(name, access))
  }
})

test('every command is found by the bytes of its name, and no other text is', () => {
  for (const { name, code } of COMMAND_LIST) {
    expect(find(name)).toBe(code)
    expect(find(name.toLowerCase())).toBe(-1)
    expect(find(name.slice(0, -1))).toBe(-1)
    expect(find(`${name}X`)).toBe(-1)
    for (let i = 0; i < name.length; i++) expect(find(`${name.slice(0, i)}_${name.slice(i + 1)}`)).toBe(-1)
  }
  law([fc.uint8Array({ minLength: 1, maxLength: 255 })], (bytes) => {
    const name = String.fromCharCode(...bytes)

    expect(findCommand(bytes, 0, bytes.length)).toBe(isCommandName(name) ? COMMANDS[name].code : -1)
  })
})

test('names of Object members are not commands', () => {
  expect(isCommandName('toString')).toBe(false)
  expect(isCommandName('SETPROP')).toBe(true)
})
