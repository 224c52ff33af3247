import { writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { lastJson, runProgram, startProgram, stopProgram } from './programs.ts'

let dir = ''
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'vacancy-programs-'))
})
afterAll(() => rm(dir, { recursive: true }))

function program(text: string): string {
  const path = join(dir, `${text.length}.mjs`)
  writeFileSync(path, text)
  return path
}

test('a program that ends well answers with what it printed', async () => {
  const printed = await runProgram([program('console.log("progress"); console.log(JSON.stringify({ records: 7 }))')])

  expect(lastJson(printed)).toEqual({ records: 7 })
})

test('a failed program is reported with its error line', async () => {
  await expect(runProgram([program('throw new TypeError("no such folder")')])).rejects.toThrow(
    /ended with exit code 1: TypeError: no such folder/,
  )
})

test('a program that ignores the stop signal is killed', async () => {
  const running = startProgram([
    program('process.on("SIGTERM", () => {}); console.log("ready"); setInterval(() => {}, 9)'),
  ])

  await running.printed(/ready/)

  expect(await stopProgram(running, { withinMs: 50 })).toBeNull()
})

test('output that is not JSON is quoted', () => {
  expect(() => lastJson('one\ntwo')).toThrow('expected a line of JSON, got two')
})
