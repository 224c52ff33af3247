/** The door of the bench workspace. */
import { runCommands } from '@vacancy/shared/node'
import { reportCommand } from './report.ts'
import { sampleCommand } from './sample.ts'
import { soakCommand } from './soak.ts'

await runCommands([reportCommand, sampleCommand, soakCommand], process.argv.slice(2))
