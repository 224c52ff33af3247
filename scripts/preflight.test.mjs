import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { faultOf, preflightFault } from './preflight.mjs'

const GOOD = {
  root: '/home/me/vacancy',
  dir: '/home/me/vacancy/data',
  rootFault: '',
  dirFault: '',
  needsPackages: true,
  needsData: true,
  freeBytes: () => ({ disk: 1, free: 3e9 }),
  hasLoopback: true,
}

test.each([
  ['a good machine', {}, ''],
  ['"#" in the path of the clone', { root: '/home/me/C#/vacancy' }, 'Move the clone to a path without them.'],
  ['a clone that is read-only', { rootFault: '/x is mounted read-only.' }, 'clone it where you may write'],
  ['data where nobody may write', { dirFault: '/y is a file, not a folder.' }, 'Choose another folder with --dir.'],
  [
    'one disk without room for both',
    { freeBytes: () => ({ disk: 1, free: 1.5e9 }) },
    '1.5 GB are free, and 1.2 GB for packages and build and 0.8 GB for sample data are needed. Free some space',
  ],
  ['two disks with room for each', { freeBytes: (at) => ({ disk: at, free: 1.3e9 }) }, ''],
  [
    'no room, and nothing to install or make',
    { needsPackages: false, needsData: false, freeBytes: () => ({ disk: 1, free: 0 }) },
    '',
  ],
  ['no IPv4 loopback', { hasLoopback: false }, 'ip link set lo up'],
])('before anything is installed: %s', (_, facts, text) => {
  const fault = faultOf({ ...GOOD, ...facts })
  expect(fault.split('\n')).toHaveLength(1)
  if (text === '') expect(fault).toBe('')
  else expect(fault).toContain(text)
})

let folder
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'vacancy-preflight-'))
  writeFileSync(path.join(folder, 'package-lock.json'), '{"packages":{}}')
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

test.each([[['--dir', 'file']], [['--dir=file/below']]])(
  'a file in the place of the folder of data is named: %s',
  async (args) => {
    writeFileSync(path.join(folder, 'file'), '')
    expect(await preflightFault(folder, args, './data')).toContain(
      `${path.join(folder, 'file')} is a file, not a folder.`,
    )
  },
)
