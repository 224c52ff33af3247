import { expect, test } from 'vitest'
import { hostNote } from './host-note.ts'

test('a program on all addresses without further names says at its start which requests it refuses, and where to add names', () => {
  for (const listenHost of ['0.0.0.0', '::'])
    expect(hostNote({ listenHost, allowedHosts: [] })).toContain('see allowed_hosts')
  expect(hostNote({ listenHost: '0.0.0.0', allowedHosts: ['console.internal'] })).toBe('')
  expect(hostNote({ listenHost: '127.0.0.1', allowedHosts: [] })).toBe('')
})
