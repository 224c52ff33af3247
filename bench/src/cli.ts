/** The measurements of `npm run bench -- NAME`. */
import { runCommands } from '@vacancy/shared/node'
import { compareCommand } from './compare.ts'
import { decodeCommand } from './decode.ts'
import { fabricCommand } from './fabric/fabric.ts'
import { failoverCommand } from './failover.ts'
import { idleCommand } from './idle.ts'
import { listsCommand } from './lists.ts'
import { queueCommand } from './queue/queue.ts'
import { reportCommand } from './report.ts'
import { sampleCommand } from './sample.ts'
import { staysCommand } from './stays/stays.ts'
import { whyNotCommand } from './why-not/why-not.ts'
import { writesCommand } from './writes.ts'

// An exit, not a death: programs that were started are ended on the way out.
process.once('SIGINT', () => process.exit(130))
process.once('SIGTERM', () => process.exit(143))

/** Flags alone are those of the report: `npm run bench -- --quick`. */
const given = process.argv.slice(2)
const named =
  given[0] === undefined || (given[0].startsWith('-') && given[0] !== '--help') ? ['report', ...given] : given

await runCommands(
  [
    reportCommand,
    sampleCommand,
    failoverCommand,
    compareCommand,
    decodeCommand,
    idleCommand,
    whyNotCommand,
    queueCommand,
    fabricCommand,
    staysCommand,
    writesCommand,
    listsCommand,
  ],
  named,
)
