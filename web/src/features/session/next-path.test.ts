import { expect, test } from 'vitest'
import { nextPath } from './next-path.ts'

const ORIGIN = 'https://console.example'

test.each([
  [null, '/'],
  ['', '/'],
  ['/shards/s3?plan=transfer:s3:n3', '/shards/s3?plan=transfer:s3:n3'],
  ['/shards#x', '/shards#x'],
  ['//evil.example/x', '/'],
  ['/\\evil.example', '/'],
  ['/\t/evil.example', '/'],
  ['https://evil.example', '/'],
  ['javascript:alert(1)', '/'],
  ['/sign-in?next=/sign-in', '/'],
])('%j leads to %s', (next, path) => expect(nextPath(next, ORIGIN)).toBe(path))
