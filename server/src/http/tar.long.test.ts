import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { tarBytes, tarOf } from './tar.ts'

test('tar of the system unpacks the archive byte for byte', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'vacancy-tar-'))
  const [small, even, large] = [Buffer.from('one\n'), Buffer.alloc(1_024, 'e'), Buffer.alloc(3 << 20, 'large ')]
  const entries = [
    { name: 'small.txt', bytes: small.length, content: small },
    { name: 'even', bytes: even.length, content: even },
    { name: 'empty', bytes: 0, content: Buffer.alloc(0) },
    { name: `${'a'.repeat(64)}.snapshot`, bytes: large.length, content: () => Readable.from([large]) },
  ]

  const archive = await buffer(tarOf(entries, 1_700_000_000))
  writeFileSync(join(folder, 'a.tar'), archive)
  execFileSync('tar', ['-xf', 'a.tar'], { cwd: folder })

  expect(archive.length).toBe(tarBytes(entries))
  for (const { name, bytes } of entries) expect(readFileSync(join(folder, name)).length).toBe(bytes)
  expect(readFileSync(join(folder, `${'a'.repeat(64)}.snapshot`)).equals(large)).toBe(true)
  rmSync(folder, { recursive: true })
})

test('a size beyond 8 GiB is readable', async () => {
  const bytes = 9 * 2 ** 30 + 7
  const header: Buffer[] = []
  for await (const piece of tarOf([{ name: 'x', bytes, content: () => Readable.from([]) }], 0)) {
    header.push(piece as Buffer)
    break
  }

  // The archive ends after the header; tar prints the entry before it complains.
  const { stdout } = spawnSync('tar', ['-tvf', '-'], { input: header[0] as Buffer })

  expect(stdout.toString()).toContain(String(bytes))
})
