// The commands of `vacancy` by their tables, and whether a command line in a file of deploy is one that the product has.
import { parseCommand } from '../shared/src/node/cli.ts'
import { faultOf, valueOfText } from '../shared/src/node/config.ts'
import { describeCommands } from './commands.mjs'

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
