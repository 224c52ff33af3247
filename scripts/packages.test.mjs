import { expect, test } from 'vitest'
import { billOf, directOf, packagesOf } from './packages.mjs'

const LOCK = {
  server: { dependencies: { '@vacancy/shared': '1.0.0', web: '2.0.0' }, devDependencies: { tests: '1.0.0' } },
  shared: { dependencies: { '@scope/given': '1.0.0' } },
  'node_modules/@vacancy/shared': { resolved: 'shared', link: true },
  'node_modules/@scope/given': { version: '1.0.0', license: 'MIT', integrity: 'sha512-AAEC' },
  'node_modules/web': {
    version: '2.0.0',
    license: '(MIT OR Apache-2.0)',
    dependencies: { '@scope/given': '3.0.0' },
    optionalDependencies: { binary: '1.0.0' },
  },
  'node_modules/web/node_modules/@scope/given': { version: '3.0.0', dependencies: { web: '2.0.0' } },
  'node_modules/tests': { version: '1.0.0' },
  'node_modules/binary': { version: '1.0.0' },
}
const RELEASE = { version: '0.9.0', license: 'Apache-2.0', time: 1_700_000_000 }
const found = packagesOf(LOCK, ['server'])
const direct = directOf(LOCK, ['server', 'shared'])

test('a release has what its workspaces need, from where Node finds it, and nothing of development', () => {
  expect([...found.keys()].sort()).toEqual([
    'node_modules/@scope/given',
    'node_modules/web',
    'node_modules/web/node_modules/@scope/given',
  ])
})

test('a lockfile without a package that is needed is an error', () => {
  const { 'node_modules/web/node_modules/@scope/given': _, 'node_modules/@scope/given': __, ...less } = LOCK

  expect(() => packagesOf(less, ['server'])).toThrow('package-lock.json has no @scope/given of shared')
})

test('the bill names each package with licence, digest and what it needs', () => {
  const { components, dependencies, metadata, serialNumber } = billOf(RELEASE, found, direct)

  expect(metadata.timestamp).toBe('2023-11-14T22:13:20.000Z')
  expect(components.map(({ purl }) => purl)).toEqual([
    'pkg:npm/%40scope/given@1.0.0',
    'pkg:npm/%40scope/given@3.0.0',
    'pkg:npm/web@2.0.0',
  ])
  expect(components[0]).toMatchObject({
    licenses: [{ license: { id: 'MIT' } }],
    hashes: [{ alg: 'SHA-512', content: '000102' }],
  })
  expect(components[2].licenses).toEqual([{ expression: '(MIT OR Apache-2.0)' }])
  expect(dependencies).toContainEqual({ ref: 'pkg:npm/web@2.0.0', dependsOn: ['pkg:npm/%40scope/given@3.0.0'] })
  expect(dependencies).toContainEqual({
    ref: 'pkg:npm/vacancy@0.9.0',
    dependsOn: ['pkg:npm/%40scope/given@1.0.0', 'pkg:npm/web@2.0.0'],
  })
  expect(serialNumber).toMatch(/^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/)
})

test('equal packages make an equal bill, in any order', () => {
  const reversed = new Map([...found].reverse())

  expect(billOf(RELEASE, reversed, direct)).toEqual(billOf(RELEASE, found, direct))
})
