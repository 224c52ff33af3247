import { spawnSync } from 'node:child_process'
import path from 'node:path'
import { expect, test } from 'vitest'
import { ROOT } from './pinned-node.mjs'

function vacancy(...args) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [path.join(ROOT, 'bin/vacancy.mjs'), ...args], {
    encoding: 'utf8',
  })
  return { status, stdout, stderr }
}

test('help lists every subcommand', () => {
  const { status, stdout } = vacancy('--help')

  expect(status).toBe(0)
  for (const name of ['run', 'build-snapshot', 'inspect', 'export', 'query']) expect(stdout).toContain(`\n  ${name} `)
})

test('an unknown subcommand ends with exit code 64 and one line that lists the known ones', () => {
  const { status, stderr } = vacancy('rnu')

  expect(status).toBe(64)
  expect(stderr).toMatch(/^vacancy: unknown subcommand "rnu"; available: run, .*\n$/)
})

test('--version names the version of the repository, its commit and Node', () => {
  const { stdout } = vacancy('--version')

  expect(stdout).toMatch(/^\d+\.\d+\.\d+ \(commit ([0-9a-f]{12}( with changes)?|unknown), Node v\d+\.\d+\.\d+\)\n$/)
  expect(stdout).toContain(process.version)
})
