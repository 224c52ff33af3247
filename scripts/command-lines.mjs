// The commands of `vacancy` by their tables, and whether a command line in a file of deploy is one that the product has.
import { loadEngineConfig, memoryBytes } from '../engine/src/config.ts'
import { parseCommand } from '../shared/src/node/cli.ts'
import { faultOf, valueOfText } from '../shared/src/node/config.ts'
import { describeCommands } from './commands.mjs'

/** After its drain time a program closes what is open. */
const CLOSE_MS = 10_000
const MOST_CONNECTIONS = ['tcp-max-connections', 'max-connections', 'max-active-conns', 'queue-max-connections']

const { commands } = await describeCommands((door) => import(door))

/** @param name as `vacancy queue serve` */
export const commandNamed = (name) => commands.find((each) => each.name === name)

/** All flags of a command by their names: its own, and keys of its configuration. */
export function rowsOf({ flags, settings = {} }) {
  const keys = Object.entries(settings).map(([key, row]) => [key.replaceAll('_', '-'), row])
  return { ...flags, ...Object.fromEntries(keys) }
}

/** The command of `vacancy ARGS`. */
export function commandOf(args) {
  const command = commands.find(({ name }) => `vacancy ${args.join(' ')} `.startsWith(`${name} `))
  if (command === undefined) throw new Error(`no command: vacancy ${args.join(' ')}`)
  return command
}

/**
 * Parses `vacancy ARGS` by the table of its command.
 *
 * @returns what the program would warn of, operands, and values of its configuration that it would refuse
 * @throws VacancyError usage_error for an unknown flag, or one that is missing or has a wrong value
 */
export function parseLine(args, env = {}) {
  const command = commandOf(args)
  const { warnings, operands, given } = parseCommand(command, args.slice(command.name.split(' ').length - 1), env)
  const faults = [...given].flatMap(([key, { text }]) => {
    const row = command.settings[key]
    const fault = faultOf(row, valueOfText(row, text))
    return fault ? [`${key}: ${text} ${fault}`] : []
  })
  return { warnings, operands, faults }
}

/** Values in force of the flags and keys of `vacancy ARGS`, by the names of flags. */
export function valuesOf(args, env = {}) {
  const command = commandOf(args)
  const { view, given } = parseCommand(command, args.slice(command.name.split(' ').length - 1), env)
  const rows = Object.entries(rowsOf(command)).map(([name, row]) => {
    const text = given.get(name.replaceAll('-', '_'))?.text
    return [name, view[name]?.value ?? text ?? row.default]
  })
  return Object.fromEntries(rows)
}

/** How long a program may take to stop. */
export function stopMsOf(command) {
  const rows = rowsOf(command)
  const graceMs = (rows['shutdown-grace-ms'] ?? rows['queue-shutdown-grace-ms'])?.default ?? 0
  return (rows['drain-secs']?.default ?? 0) * 1_000 + graceMs + CLOSE_MS
}

/** Most connections of the clients of a program. */
export function connectionsOf(command) {
  return Math.max(...MOST_CONNECTIONS.map((name) => rowsOf(command)[name]?.default ?? 0))
}

/** Whether a limit of memory leaves the data of a node as much as none. */
export function leavesMemory(bytes) {
  const { values } = loadEngineConfig({ file: undefined, given: new Map() })
  return memoryBytes(values, bytes) === memoryBytes(values, Number.POSITIVE_INFINITY)
}
