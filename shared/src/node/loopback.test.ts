import { expect, test } from 'vitest'
import { listenHost } from './loopback.ts'

const OPEN = { isOpen: true, allowsAnonymous: false, name: '--listen-host', ways: '--auth-file' }
const REFUSED = /^--listen-host \S+: everyone who reaches it could change data; give --auth-file, or --allow-anonymous/

test.each([
  [undefined, '127.0.0.1'],
  ['', '127.0.0.1'],
  ['127.0.4.1', '127.0.4.1'],
  ['::1', '::1'],
  ['localhost', 'localhost'],
  ['0.0.0.0', REFUSED],
  ['::', REFUSED],
  ['10.0.0.7', REFUSED],
  ['edge.example', REFUSED],
])('without tokens a program that may listen on %s listens on %s', (given, wanted) => {
  if (typeof wanted === 'string') expect(listenHost(given, OPEN)).toBe(wanted)
  else expect(() => listenHost(given, OPEN)).toThrow(wanted)

  const anywhere = given === undefined || given === '' ? '0.0.0.0' : given
  expect(listenHost(given, { ...OPEN, isOpen: false })).toBe(anywhere)
  expect(listenHost(given, { ...OPEN, allowsAnonymous: true })).toBe(anywhere)
})
