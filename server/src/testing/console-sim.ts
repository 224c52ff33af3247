/**
 * `npm run dev` and `npm run console -- sim`: the control plane with its console in front of a simulated cluster. `POST
 * /sim/{verb}` injects faults; `--help` lists the flags.
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { SCENARIOS, startSimulated } from './simulated.ts'

const PROGRAM = fileURLToPath(new URL('../../../bin/vacancy.mjs', import.meta.url))
const HELP = `npm run console -- sim [--nodes 40] [--shards 12] [--zones 3] [--seed 7] [--scenario ${SCENARIOS.join('|')}] [--spread] [--fabric] [--hot] [-- FLAGS OF vacancy control-plane]
`

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    nodes: { type: 'string', default: '40' },
    shards: { type: 'string', default: '12' },
    zones: { type: 'string', default: '3' },
    seed: { type: 'string', default: '7' },
    scenario: { type: 'string', multiple: true, default: [] },
    // Pages are compiled when they are requested, and again when their source changes.
    /** Routers, bridges and a proxy in front. */
    fabric: { type: 'boolean', default: false },
    /** Each shard has nodes in several zones. */
    spread: { type: 'boolean', default: false },
    hot: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})

if (values.help) {
  process.stdout.write(HELP)
} else {
  await run()
}

async function run(): Promise<void> {
  const { scenario: scenarios } = values
  const sim = await startSimulated({
    nodes: whole('nodes', 1, 5_000),
    shards: whole('shards', 1, 2_000),
    zones: whole('zones', 1, 100),
    seed: whole('seed', 0, 2 ** 32 - 1),
    fabric: values.fabric,
    spread: values.spread,
  })
  for (const scenario of scenarios) await sim.scenario(scenario)
  process.stdout.write(
    `simulated: ${sim.registryUrl} (registry and resolver; POST /sim/{verb} with {"shard":"s1","node":"n1"})\n`,
  )
  const folder = mkdtempSync(join(tmpdir(), 'vacancy-console-sim-'))
  const token = join(folder, 'admin.token')
  writeFileSync(token, 'of-the-simulation\n')
  const child = spawn(
    process.execPath,
    [
      ...[PROGRAM, 'control-plane', '--registry', sim.registryUrl, '--resolver', sim.registryUrl, '--data-dir', folder],
      ...['--node-admin-token', `file:${token}`],
      ...[...(sim.fabric?.unregistered ?? []).flatMap((url) => ['--fabric', url]), ...positionals],
    ],
    { stdio: 'inherit', env: { ...process.env, ...(values.hot ? { VACANCY_CONSOLE: 'development' } : {}) } },
  )
  const end = () => child.kill('SIGTERM')
  process.on('SIGINT', end)
  process.on('SIGTERM', end)
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', resolve)
  })
  await sim.close()
  rmSync(folder, { recursive: true, force: true })
  process.exitCode = code ?? 1
}

function whole(name: 'nodes' | 'shards' | 'zones' | 'seed', min: number, max: number): number {
  const value = Number(values[name])
  if (Number.isInteger(value) && value >= min && value <= max) return value
  process.stderr.write(`--${name} must be ${min} to ${max}\n${HELP}`)
  process.exit(64)
}
