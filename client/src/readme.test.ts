import { readFileSync } from 'node:fs'
import { ERRORS, WIRE_CODES } from '@vacancy/shared'
import { COMMAND_LIST } from '@vacancy/shared/wire'
import { expect, test } from 'vitest'
import { checkOptions } from './options.ts'

const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8')
const errors = readme.slice(readme.indexOf('## Errors'))
const options = readme.slice(readme.indexOf('## Options'), readme.indexOf('## Errors'))

test('the README names every command but the handshake', () => {
  for (const { name } of COMMAND_LIST.filter(({ name }) => name !== 'LOGIN')) expect(readme).toContain(name)
})

test('the README names every error code, and only existing codes', () => {
  const named = [...errors.matchAll(/`(\d{3}|[A-Z]+_?[A-Z]+|[a-z]+_[a-z]+|cancelled|backpressure)`/g)].map(
    ([, code]) => code,
  )

  expect(named).toEqual(expect.arrayContaining([...WIRE_CODES]))
  for (const code of named) expect([...WIRE_CODES, ...Object.keys(ERRORS)]).toContain(code)
})

test('the README names every option, with its default', () => {
  const { isRouter: _, isShard: __, ...settings } = checkOptions({})

  for (const [name, value] of Object.entries(settings)) {
    expect(options).toContain(`\`${name}\``)
    if (typeof value === 'number') expect(options).toContain(String(value))
  }
  expect(options).toContain('`envelope`')
})
