import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { ENGINE_SCHEMA } from '../engine/src/config.ts'
import { flagRows, variableOf } from '../shared/src/node/cli.ts'
import { commandOf, connectionsOf, leavesMemory, parseLine, stopMsOf } from './command-lines.mjs'
import { COMMANDS } from './commands.mjs'
import { ROOT } from './pinned-node.mjs'
import { PROGRAM } from './units.mjs'

const FOLDER = path.join(ROOT, 'deploy/systemd')
/** Of a required flag whose value the environment file has. */
const REQUIRED = { integer: '1', text: 'x', list: 'x', choice: '' }

/** Key → its values, of all sections. */
function parseUnit(file) {
  const unit = {}
  const comments = []
  for (const line of readFileSync(path.join(FOLDER, file), 'utf8').split('\n')) {
    const [, key, value] = /^([A-Za-z]+)=(.*)$/.exec(line) ?? []
    if (key !== undefined) unit[key] = [...(unit[key] ?? []), value]
    else if (line.startsWith('#')) comments.push(line)
    else expect(line).toMatch(/^(\[(Unit|Service|Install)\])?$/)
  }
  const [program, ...args] = unit.ExecStart[0].replaceAll('%S', '/var/lib').replaceAll('%i', 'edge').split(' ')
  return { file, unit, comments: comments.join('\n'), program, args, command: commandOf(args) }
}

const units = globSync('*.service', { cwd: FOLDER }).sort().map(parseUnit)
const numberOf = (unit, key) => Number(unit[key][0])

test('each long-running program has a unit', () => {
  const started = new Set(units.map(({ command }) => command.name.split(' ')[1]))
  const programs = Object.entries(COMMANDS).filter(
    ([name, [, does]]) => does.startsWith('starts ') && name !== 'quickstart',
  )

  expect([...started].sort()).toEqual(programs.map(([name]) => name).sort())
})

test.each(units)(
  '$file starts a program with flags and variables that it has',
  ({ comments, program, args, command, unit }) => {
    expect(program).toBe(PROGRAM)
    const required = Object.entries(command.flags).filter(
      ([name, flag]) => flag.required && !args.includes(`--${name}`),
    )
    const env = Object.fromEntries(
      required.map(([name, { type }]) => [variableOf(command.component, name), REQUIRED[type]]),
    )

    expect(parseLine(args, env)).toEqual({ warnings: [], operands: [], faults: [] })
    const known = flagRows(command).map(({ flag }) => variableOf(command.component, flag))
    const named = `${comments}\n${(unit.Environment ?? []).join('\n')}`.match(/VACANCY_[A-Z_]+/g)
    expect(named.filter((name) => !known.includes(name))).toEqual([])
  },
)

test.each(units)('$file names the ports that its program listens on', ({ comments, command }) => {
  const [, text = ''] = /^# Listens on (.*), unless/m.exec(comments) ?? []
  const tables = Object.entries({ ...command.flags, ...command.settings })
  for (const [, port, key] of text.matchAll(/(\d+) \(([\w-]+)\)/g)) {
    expect(tables.find(([name]) => name === key)?.[1]).toMatchObject({ default: Number(port) })
  }
  expect(text).toMatch(/\d+ \(/)
})

test.each(units)('$file does not restart after the exit codes that need an operator', ({ command, unit }) => {
  const rows = readFileSync(path.join(ROOT, 'docs/reasons.md'), 'utf8').matchAll(
    /^\| (\d+) \|.* \| (yes|no|a member) \|$/gm,
  )
  const needed = [...rows].filter(([, code, restart]) => code !== '0' && restart !== 'yes')
  const isMember = command.name === 'vacancy run-clustered'
  const codes = needed.filter(([, , restart]) => restart === 'no' || !isMember).map(([, code]) => code)

  expect(unit.RestartPreventExitStatus).toEqual([codes.join(' ')])
  expect(unit.Restart).toEqual(['on-failure'])
})

test.each(units)('$file kills a program only after the time that it has to stop', ({ command, unit }) => {
  expect(unit.KillSignal).toEqual(['SIGTERM'])
  expect(numberOf(unit, 'TimeoutStopSec') * 1_000).toBeGreaterThan(stopMsOf(command))
})

test.each(units)('$file has descriptors for all connections of the configuration', ({ command, unit }) => {
  expect(numberOf(unit, 'LimitNOFILE')).toBeGreaterThan(connectionsOf(command) + 1_000)
})

test('the memory of a node leaves its data as much as without a limit', () => {
  for (const { unit } of units.filter(({ command }) => command.settings === ENGINE_SCHEMA)) {
    expect(leavesMemory(Number(/^(\d+)G$/.exec(unit.MemoryMax[0])?.[1]) * 1024 ** 3)).toBe(true)
  }
})

test.each(units)('$file is hardened', ({ unit, args }) => {
  expect(unit).toMatchObject({
    NoNewPrivileges: ['yes'],
    ProtectSystem: ['strict'],
    PrivateTmp: ['yes'],
    CapabilityBoundingSet: [''],
    RestrictAddressFamilies: ['AF_INET AF_INET6 AF_UNIX AF_NETLINK'],
    User: ['vacancy'],
  })
  // Whatever it writes to is its state.
  const state = `/var/lib/${unit.StateDirectory[0].replaceAll('%i', 'edge')}`
  for (const arg of args.filter((each) => each.startsWith('/var/'))) expect(arg).toMatch(new RegExp(`^${state}(/|$)`))
})
