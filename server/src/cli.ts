/** Command lines of the control plane: `vacancy control-plane` and `vacancy control-plane link`. */
import { systemClock, VacancyError } from '@vacancy/shared'
import { ProblemError } from '@vacancy/shared/api/route'
import { PERSON_ROLES, type PersonRole } from '@vacancy/shared/contract'
import {
  type Command,
  collectSooner,
  createLogger,
  defineCommand,
  hostNote,
  runCommand,
  runProgram,
  withTraceEndpoint,
} from '@vacancy/shared/node'
import { createAccess } from './access/access.ts'
import { createAccounts, signInLink } from './access/accounts.ts'
import { createAudit } from './access/audit.ts'
import { signInCode } from './access/people.ts'
import { openSettings } from './access/settings.ts'
import type { AccessTables } from './access/tables.ts'
import { type ControlPlane, startControlPlane } from './app.ts'
import { CONTROL_SCHEMA, loadControlConfig } from './config.ts'
import { databaseOf } from './data-folder.ts'
import { openDatabase } from './database/database.ts'

const CONFIG = {
  type: 'text',
  value: 'FILE',
  summary: 'Configuration; else ./control-plane.yml, then /etc/vacancy/control-plane.yml.',
} as const

export const controlPlaneCommand = defineCommand({
  name: 'vacancy control-plane',
  component: 'CONTROL_PLANE',
  logsWarnings: true,
  summary: 'Starts the control plane with its console. `vacancy control-plane link` makes a sign-in link.',
  flags: {
    config: CONFIG,
    'sign-in': {
      type: 'text',
      value: 'NAME',
      summary:
        'Prints a one-time sign-in link for this person at the start; creates an admin with this name if there is none.',
    },
  },
  settings: CONTROL_SCHEMA,
  run: async ({ flags, given, warnings }) => {
    const { values: config } = loadControlConfig({
      file: flags.config,
      given: withTraceEndpoint(given),
      databaseUrl: process.env['DATABASE_URL'],
    })
    const log = createLogger({ level: config.logLevel, format: config.logFormat, component: 'control-plane' })
    for (const warning of warnings) log.warn({}, warning)
    collectSooner('controlPlane')
    let running: ControlPlane | undefined
    await runProgram(
      {
        start: async () => {
          const isProduction = process.env['NODE_ENV'] === 'production'
          running = await startControlPlane({ config, clock: systemClock, log, isProduction })
          print(`serving: ${running.url}`)
          process.stdout.write(hostNote(config))
          if (flags.signIn !== undefined) {
            const code = await running.people.signInCode(flags.signIn, 'admin')
            print(`sign-in: ${signInLink(running.origin, code)}`)
            return
          }
          const code = await running.people.setUpCode()
          if (code !== undefined) print(`set-up: ${signInLink(running.origin, code)}`)
        },
        stop: async () => await running?.stop(),
        reload: () => running?.reload(),
      },
      { log, drainMs: (config.drainSecs + 5) * 1000 + config.queueShutdownGraceMs },
    )
    return undefined
  },
})

const linkCommand = defineCommand({
  name: 'vacancy control-plane link',
  component: 'CONTROL_PLANE',
  summary:
    'Prints a one-time sign-in link for a person who forgot the password, or for a new admin. Runs beside the control plane.',
  flags: {
    config: CONFIG,
    person: { type: 'text', value: 'NAME', required: true, summary: 'Name of the person to sign in.' },
    create: {
      type: 'choice',
      choices: PERSON_ROLES,
      summary: 'Role of the person if the name is new.',
    },
  },
  settings: CONTROL_SCHEMA,
  run: async ({ flags, given }) => {
    const { values: config } = loadControlConfig({
      file: flags.config,
      given,
      databaseUrl: process.env['DATABASE_URL'],
    })
    const database = await openDatabase<AccessTables>(databaseOf(config))
    try {
      const settings = await openSettings(database, config)
      const access = createAccess({ database, clock: systemClock, sessionIdleMs: 0, ssoSessionMs: 0 })
      const audit = createAudit(database, systemClock, () => undefined)
      const accounts = createAccounts({
        database,
        clock: systemClock,
        access,
        audit,
        settings,
        singleSignOn: undefined,
        facts: () => {
          throw new Error('the settings page is not served here')
        },
        onSignIn: () => undefined,
      })
      const code = await signInCode(accounts, flags.person, flags.create as PersonRole | undefined)
      const scheme = config.tlsCert === '' ? 'http' : 'https'
      print(signInLink(settings.baseUrl() || `${scheme}://${config.listenHost}:${config.listenPort}`, code))
    } catch (error) {
      if (error instanceof ProblemError)
        throw new VacancyError('failure', { reason: `${error.message} ${error.hint}`.trim() }, { cause: error })
      throw error
    } finally {
      await database.destroy()
    }
    return undefined
  },
})

/** The tables of all commands, for what is made from them. */
export const commands = async (): Promise<readonly Command[]> => [controlPlaneCommand, linkCommand]

/** Runs one subcommand; sets the exit code. */
export async function main(args: readonly string[]): Promise<void> {
  const [, ...rest] = args
  if (rest[0] === 'link') await runCommand(linkCommand, rest.slice(1))
  else await runCommand(controlPlaneCommand, rest)
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}
