/** `npm run proofs -- NAME [flags]`: what runs by the hour (docs/design/testing.md). */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { EXIT, suggestion } from '@vacancy/shared'
import { type Command, runCommand } from '@vacancy/shared/node'
import { environmentWith } from '@vacancy/testkit/plant'

type Proof = {
  readonly summary: string
  readonly load: () => Promise<Command>
  /** Ends with a report when it is interrupted. */
  readonly stopsItself?: true
}

/** Each is loaded when it runs. */
const PROOFS: { readonly [name: string]: Proof } = {
  sim: {
    summary: 'simulated clusters by the thousand, of bare cores and of whole nodes',
    load: async () => (await import('./sim/sim.ts')).simCommand,
  },
  chaos: {
    summary: 'a shard of real processes under faults, with histories that are judged',
    load: async () => (await import('./chaos/chaos.ts')).chaosCommand,
    stopsItself: true,
  },
  kill: {
    summary: 'a node killed again and again while clients write',
    load: async () => (await import('./chaos/kill.ts')).killCommand,
  },
  'fabric-model': {
    summary: 'routers and bridges over simulated connections and time',
    load: async () => (await import('./fabric-model/main.ts')).fabricModelCommand,
  },
  'fabric-chaos': {
    summary: 'a platform of real processes under faults',
    load: async () => (await import('./platform-chaos/chaos.ts')).fabricChaosCommand,
  },
  bookers: {
    summary: 'stays on a shard whose leader is killed again and again',
    load: async () => (await import('./bookers/bookers.ts')).bookersCommand,
  },
  soak: {
    summary: 'a mixed load on a node for a while, which memory, event loops and errors must bear',
    load: async () => (await import('./soak/soak.ts')).soakCommand,
  },
  defects: {
    summary: 'each planted defect in turn, and what must find it',
    load: async () => (await import('./defects/find.ts')).defectsCommand,
  },
  'queue-model': {
    summary: 'the engine of the job queue beside an exact model',
    load: async () => (await import('./queue/model-run.ts')).queueModelCommand,
  },
  'queue-kill': {
    summary: 'a job queue killed again and again under producers and consumers',
    load: async () => (await import('./queue/kill.ts')).queueKillCommand,
  },
  'queue-failover': {
    summary: 'two job queues on one PostgreSQL, of which the owner is killed, frozen or cut off',
    load: async () => (await import('./queue/failover.ts')).queueFailoverCommand,
  },
  'queue-losing': {
    summary: 'the job queue over a journal that fails',
    load: async () => (await import('./queue/losing.ts')).queueLosingCommand,
  },
  'queue-backlog': {
    summary: 'many waiting jobs and one slow consumer',
    load: async () => (await import('./queue/backlog.ts')).queueBacklogCommand,
  },
  'queue-soak': {
    summary: 'the job queue at half its top rate for a while, with failures and reconnects',
    load: async () => (await import('./soak/queue-soak.ts')).queueSoakCommand,
  },
}

const HELP = `usage: npm run proofs -- NAME [flags]

${Object.entries(PROOFS)
  .map(([name, { summary }]) => `  ${name.padEnd(16)}${summary}`)
  .join('\n')}

NAME --help lists the flags. --defect DEFECT plants a defect in NAME; \`defects --list\` has their names.
`

async function main(given: readonly string[]): Promise<number | undefined> {
  const at = given.indexOf('--defect')
  if (at !== -1) return await runPlanted(given[at + 1] ?? '', given.toSpliced(at, 2))
  const [name = '--help', ...args] = given
  if (name === '--help') {
    process.stdout.write(HELP)
    return EXIT.ok
  }
  const proof = Object.hasOwn(PROOFS, name) ? PROOFS[name] : undefined
  if (proof === undefined) {
    process.stderr.write(`proofs: unknown name ${name}${suggestion(name, Object.keys(PROOFS))}\n`)
    return EXIT.usage
  }
  if (!proof.stopsItself) {
    // An exit, not a death: programs that were started are ended on the way out.
    process.once('SIGINT', () => process.exit(130))
    process.once('SIGTERM', () => process.exit(143))
  }
  await runCommand(await proof.load(), args)
  return undefined
}

/** In a process of its own, so that no module is loaded before it is planted. */
async function runPlanted(name: string, args: readonly string[]): Promise<number> {
  const { DEFECTS } = await import('./defects/list.ts')
  const defect = DEFECTS.find((each) => each.name === name)
  if (defect === undefined) {
    process.stderr.write(`proofs: unknown defect ${name}; see: defects --list\n`)
    return EXIT.usage
  }
  const env = { ...process.env, ...environmentWith(defect) }
  const child = spawn(process.execPath, [import.meta.filename, ...args], { env, stdio: 'inherit' })
  // Both get the signals of a terminal: the report of the child is waited for.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => child.kill(signal))
  const [code] = await once(child, 'close')
  return code ?? EXIT.failure
}

// Pending calls of clients must not keep a stopped run alive.
process.exit((await main(process.argv.slice(2))) ?? process.exitCode)
