import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { beforeEach, expect, test } from 'vitest'
import { completionOf } from '../cli/src/completion.ts'
import { flagRows } from '../shared/src/node/cli.ts'
import { COMMANDS, describeCommands } from './commands.mjs'
import { ROOT } from './pinned-node.mjs'

const described = await describeCommands((door) => import(door))
const has = (program) => spawnSync(program, ['--version']).error === undefined

let folder
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'vacancy-completion-'))

  writeFileSync(path.join(folder, 'some.yml'), '')
  return () => rmSync(folder, { recursive: true, force: true })
})

/** What bash offers for each line of words, the last of which is being typed. */
function bash(...lines) {
  const asked = lines.map(
    (words) => `COMP_WORDS=(${words.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${words.length - 1}
COMPREPLY=(); _vacancy; printf '%s ' "\${COMPREPLY[@]}"; echo`,
  )
  const { stdout, stderr } = spawnSync('bash', ['--norc'], {
    input: `${completionOf('bash', described)}\n${asked.join('\n')}\n`,
    encoding: 'utf8',
    cwd: folder,
    maxBuffer: 16 << 20,
  })
  expect(stderr).toBe('')
  return stdout
    .split('\n')
    .slice(0, -1)
    .map((line) => line.trim().split(' ').filter(Boolean).sort())
}

test('bash completes subcommands, at each level', () => {
  expect(
    bash(['vacancy', ''], ['vacancy', 'qui'], ['vacancy', 'quickstart', 'sta'], ['vacancy', 'nonsense', '']),
  ).toEqual([Object.keys(COMMANDS).sort(), ['quickstart'], ['status'], Object.keys(COMMANDS).sort()])
})

test('bash completes every flag of every command', () => {
  const lines = described.commands.map(({ name }) => [...name.split(' '), '--'])
  const flags = described.commands.map((command) =>
    flagRows(command)
      .map(({ flag }) => `--${flag}`)
      .sort(),
  )

  expect(bash(...lines)).toEqual(flags)
})

test('bash completes values: words, files, folders, and none where any text may be', () => {
  expect(
    bash(
      ['vacancy', 'run', '--log-level', ''],
      ['vacancy', 'run', '--log-level', '=', 'de'],
      ['vacancy', 'run', '--config', 'so'],
      ['vacancy', 'run', '--data-dir', 'so'],
      ['vacancy', 'run', '--shard-id', ''],
      ['vacancy', 'run', '--log-level', 'debug', '--log-f'],
      ['vacancy', 'completion', ''],
      ['vacancy', 'quarantine', 're'],
    ),
  ).toEqual([
    ['debug', 'error', 'fatal', 'info', 'silent', 'trace', 'warn'],
    ['debug'],
    ['some.yml'],
    [],
    [],
    ['--log-format'],
    ['bash', 'fish', 'zsh'],
    ['remove', 'restore'],
  ])
})

test.each(['bash', 'zsh', 'fish'])('%s has a completion with every flag, without a fault of syntax', (shell) => {
  const script = completionOf(shell, described)
  for (const command of described.commands) for (const { flag } of flagRows(command)) expect(script).toContain(flag)
  if (!has(shell)) return
  const file = path.join(folder, 'script')
  writeFileSync(file, script)
  const { status, stderr } = spawnSync(shell, ['-n', file], { encoding: 'utf8' })

  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
})

test('the program prints it, and names the shells that it knows', () => {
  const run = (...args) =>
    spawnSync(process.execPath, [path.join(ROOT, 'bin/vacancy.mjs'), ...args], { encoding: 'utf8' })

  expect(run('completion', 'bash').stdout).toBe(completionOf('bash', described))
  expect(run('completion', 'ksh')).toMatchObject({
    status: 64,
    stderr: 'vacancy completion: "ksh" is not one of bash, zsh, fish\n',
  })
})
