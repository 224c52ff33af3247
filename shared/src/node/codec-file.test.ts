import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { loadCodecFile, parseCodecFile } from './codec-file.ts'

let folder: string

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'vacancy-codecs-'))
})

afterEach(() => rmSync(folder, { recursive: true, force: true }))

test('the rate features of a file are a codec list, and its other keys are ignored', () => {
  const file = path.join(folder, 'codecs.yml')
  writeFileSync(file, 'version: 3\nrate_features:\n  - wifi\n  - breakfast\n')

  expect(loadCodecFile(file, 'codecs-file').names).toEqual(['wifi', 'breakfast'])
})

test('a file that is missing is named with its flag, and one that cannot be read with the reason', () => {
  const missing = path.join(folder, 'none.yml')
  mkdirSync(path.join(folder, 'folder'))

  expect(() => loadCodecFile(missing, 'codecs-file')).toThrow(
    expect.objectContaining({
      code: 'invalid_config',
      message: `${missing}: does not exist. Name the codec file with --codecs-file`,
    }),
  )
  expect(() => loadCodecFile(path.join(folder, 'folder'), 'codecs-file')).toThrow(/folder: cannot be read: EISDIR/)
})

test.each([
  ['a: [', 'invalid_config', /^c\.yml:1:\d+: /],
  ['text', 'invalid_config', /^c\.yml:1: must be a mapping of keys to values$/],
  ['other: 1', 'invalid_config', /^c\.yml: rate_features: is missing; it lists 1 to 24 rate features$/],
  ['\nrate_features: wifi', 'invalid_config', /^c\.yml:2: rate_features: must be a list of rate features$/],
  ['rate_features: []', 'invalid_codecs', /must have 1 to 24 entries, has 0/],
  ['rate_features: [wifi, 7]', 'invalid_codecs', /entry 2 must be text, is 7/],
])('%j is refused', (source, code, message) => {
  expect(() => parseCodecFile(source, 'c.yml')).toThrow(
    expect.objectContaining({ code, message: expect.stringMatching(message) }),
  )
})
