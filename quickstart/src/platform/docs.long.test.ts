/** A whole platform as docs/quickstart.md describes it: every command of the page runs, and every stated answer is given. */

import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isRunning, parseCommand } from '@vacancy/shared/node'
import { afterAll, expect, test } from 'vitest'
import { COMMANDS } from './commands.ts'
import { quickstartTest, UP } from './testing/command.ts'

const { dir, portOffset, up, run, status, remove } = await quickstartTest()
afterAll(remove)

/** Fresh clone to the first query through the proxy, on two cores. */
const START_SECONDS_MAX = 90
const RESIDENT_MIB_MAX = 2_500
const MS_MAX = 300_000

const page = readFileSync(fileURLToPath(new URL('../../../docs/quickstart.md', import.meta.url)), 'utf8')
/** The commands of a section. */
const linesOf = (heading: string): string[] => {
  const [, section = ''] = page.split(`\n## ${heading}\n`)
  const [, block = ''] = /^```sh\n(.*?)^```/ms.exec(section.split('\n## ')[0] ?? '') ?? []
  return block.trim().split('\n')
}
const wordsOf = (line: string) => line.replace(/^npx vacancy quickstart /, '').split(' ')

/** Runs a line of the page in the folder of the test. */
async function typed(line: string): Promise<{ code: number | null; output: string }> {
  const [, file, port, path] = /^curl -s -d @quickstart-platform\/(\S+) http:\/\/localhost:(\d+)(\S+)$/.exec(line) ?? []
  if (file === undefined) return await run(...wordsOf(line))
  const url = `http://localhost:${Number(port) + portOffset}${path}`
  const response = await fetch(url, { method: 'POST', body: readFileSync(join(dir, file), 'utf8') })
  return { code: response.ok ? 0 : 1, output: await response.text() }
}

test(
  'a full platform starts in time, answers as stated, and every command of the page works',
  async () => {
    const platform = up()
    const [, seconds] = await platform.printed(UP)
    const components = await status()
    const mebibytes = components.reduce((sum, each) => sum + (each.residentBytes ?? 0), 0) / 1024 ** 2
    console.log(`up after ${seconds} s, ${Math.round(mebibytes)} MiB resident`)

    expect(Number(seconds)).toBeLessThan(START_SECONDS_MAX)
    expect(mebibytes).toBeLessThan(RESIDENT_MIB_MAX)
    for (const line of [...linesOf('Ask'), ...linesOf('Break something')]) {
      expect(await typed(line), line).toMatchObject({ code: 0 })
    }
    expect(await platform.ended).toBe(0)
    for (const { pid } of components) expect(isRunning(Number(pid))).toBe(false)
    expect(existsSync(dir)).toBe(false)
  },
  MS_MAX,
)

test('the flags of the page are those of the commands', () => {
  for (const line of [...linesOf('Start'), ...linesOf('Choose what runs')]) {
    const [word, ...args] = wordsOf(line)
    const command = COMMANDS.find(({ name }) => name.endsWith(` ${word}`))
    if (command === undefined) throw new Error(`${line}: no such command`)

    expect(() => parseCommand(command, args, {}), line).not.toThrow()
  }
})

test('compose writes its file and starts nothing', async () => {
  const { code, output } = await run('compose', '--level', 'cluster', '--nodes-per-shard', '1')

  expect({ code, output }).toEqual({
    code: 0,
    output: `${dir}/compose.yml is written: docker compose -f ${dir}/compose.yml up\n`,
  })
  expect(readFileSync(join(dir, 'compose.yml'), 'utf8')).toContain('"--node-id","node-1-0"')
  expect((await run('status')).output).toContain('nothing runs in')
  expect((await run('down')).code).toBe(0)
})
