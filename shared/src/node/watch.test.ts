import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { watchFiles } from './watch.ts'

const WAIT = { timeout: 30_000, interval: 2 }
const ignore = () => {}
const NO_LOG = { log: { debug: ignore, info: ignore, warn: ignore, error: ignore }, message: '' }

let folder: string
let file: string
let other: string
const cleanUp: (() => void)[] = []

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'vacancy-watch-'))
  file = path.join(folder, 'file')
  other = path.join(folder, 'other')
})

afterEach(() => {
  for (const step of cleanUp.splice(0)) step()
  rmSync(folder, { recursive: true, force: true })
})

/** Watches files; the result has the number of calls, and waits for the next one. */
function watch(...files: readonly string[]) {
  const watched = { calls: 0, next: async () => {}, stop: () => {} }
  watched.stop = watchFiles(files, () => watched.calls++, NO_LOG, 1)
  watched.next = async () => {
    const { calls } = watched
    await vi.waitUntil(() => watched.calls > calls, WAIT)
  }
  cleanUp.push(watched.stop)
  return watched
}

/** Writes beside the file and moves it there, as an orchestrator or an editor does. */
function replace(target: string, text: string): void {
  writeFileSync(`${target}.new`, text)
  renameSync(`${target}.new`, target)
}

test.each<[string, (target: string) => void]>([
  ['has other text of another length', (target) => writeFileSync(target, 'another')],
  ['is replaced by one with the same text', (target) => replace(target, 'old')],
  ['has another time', (target) => utimesSync(target, 1, 1)],
  ['disappears', (target) => rmSync(target)],
])('a file that %s has changed', async (_, change) => {
  writeFileSync(file, 'old')
  writeFileSync(other, 'old')
  const watched = watch(other, file)

  const called = watched.next()
  change(file)
  await called

  expect(watched.calls).toBe(1)
})

test('a link that leads to another file has changed, although both files have the same text', async () => {
  // As an orchestrator mounts secrets: file → data/file, data → one of the versions.
  for (const version of ['v1', 'v2']) {
    mkdirSync(path.join(folder, version))
    writeFileSync(path.join(folder, version, 'token'), 'same')
  }
  symlinkSync('v1', path.join(folder, 'data'))
  symlinkSync('data/token', file)
  const watched = watch(file)

  const called = watched.next()
  symlinkSync('v2', path.join(folder, 'data.new'))
  renameSync(path.join(folder, 'data.new'), path.join(folder, 'data'))
  await called

  expect(watched.calls).toBe(1)
})
