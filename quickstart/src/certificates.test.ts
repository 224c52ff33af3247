import { X509Certificate } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseTokens } from '@vacancy/shared/node'
import { afterAll, expect, test } from 'vitest'
import { makeCertificates, makeTokens } from './certificates.ts'
import { createProcessGroup } from './launch.ts'
import { filesOf } from './platform/files.ts'

const folder = mkdtempSync(join(tmpdir(), 'vacancy-certificates-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const layout = filesOf(folder)
const DAY_MS = 86_400_000

test('certificates are created once per node, and renewed before they expire', async () => {
  const make = (nodes: string[], days = 0) =>
    makeCertificates(createProcessGroup(), layout, nodes, Date.now() + days * DAY_MS)
  const read = (name: string) => new X509Certificate(readFileSync(join(layout.certs, name)))

  expect(await make(['n1'])).toBe(1)
  expect(await make(['n1', 'n2'])).toBe(1)
  expect(await make(['n1', 'n2'])).toBe(0)
  expect(await make(['n1', 'n2'], 350)).toBe(2)
  expect(read('n2.pem').checkIssued(read('ca.pem'))).toBe(true)
})

test('the auth file has the tokens as hashes, and is not overwritten', () => {
  makeTokens(layout)
  const text = readFileSync(layout.auth, 'utf8')
  const token = readFileSync(layout.tokenOf('admin'), 'utf8').trim()
  makeTokens(layout)

  expect(parseTokens(text, layout.auth).map(({ role }) => role)).toEqual(['admin', 'client'])
  expect(text).not.toContain(token)
  expect(readFileSync(layout.tokenOf('admin'), 'utf8').trim()).toBe(token)
  // It belongs to the user.
  writeFileSync(layout.auth, 'tokens: []\n')
  makeTokens(layout)
  expect(readFileSync(layout.auth, 'utf8')).toBe('tokens: []\n')
})
