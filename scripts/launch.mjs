// Starts everything a clone can do with one command: installs when needed, continues with the pinned Node, builds what
// changed, runs the program and passes signals on. Plain JavaScript without dependencies: runs on Node 20.
import path from 'node:path'
import { ensureBrowser } from './browser.mjs'
import { isBundled } from './bundle.mjs'
import { ensureInstalled } from './install.mjs'
import { findNode, ROOT } from './pinned-node.mjs'
import { preflightFault } from './preflight.mjs'
import { endAll, forward, forwardSignals, run, stopRequested } from './program.mjs'
import { endingWithUs, endWithStarter, watchNpm } from './starter.mjs'
import { planTests, runTests } from './tests.mjs'

const USAGE_EXIT_CODE = 64
/** A longer build is announced. A build without changes stays silent. */
const QUIET_BUILD_MS = 1_000

/** turbo starts processes that do not watch their starter; as a process group they can be ended together. */
const HAS_GROUPS = process.platform !== 'win32'

const END_WITH_STARTER = new URL('./end-with-starter.mjs', import.meta.url).href
const TURBO = ['node_modules/turbo/bin/turbo', 'run', '--ui=stream', '--output-logs=errors-only']
/** Of workspaces that did not change the result is in its cache. */
const TYPECHECK = [...TURBO, 'typecheck', '--continue']
const BIOME = ['node_modules/@biomejs/biome/bin/biome', 'check']

/** Of `npm run console -- NAME`. */
const CONSOLE_PROGRAMS = {
  // The console over a simulated cluster.
  sim: { steps: [['server/src/testing/console-sim.ts']] },
  // A picture of every page.
  screenshots: { steps: [['e2e/src/screenshots.ts']], needsBrowser: true },
  // The pictures of the README and of docs/console.md.
  picture: { steps: [['e2e/src/picture.ts']], needsBrowser: true },
  // Times of the console on a slow machine and network.
  bench: { steps: [['e2e/src/bench.ts']], needsBrowser: true },
  // CPU and memory of the control plane with a thousand simulated nodes.
  cost: { steps: [['server/src/testing/cost.ts']] },
}

/** Of `npm run test:long`: proofs with their flags. */
const LONG_RUNS = [
  ['sim', '--seeds', '2000'],
  ['defects'],
  ['fabric-model', '--seeds', '2000'],
  ['kill', '--rounds', '50'],
  ['chaos', '--minutes', '30'],
  ['fabric-chaos', '--minutes', '15'],
  ['bookers', '--minutes', '10'],
  ['queue-model'],
  ['queue-kill', '--rounds', '50'],
  ['queue-failover', '--rounds', '20'],
  ['queue-losing'],
  ['queue-backlog'],
  ['queue-soak', '--minutes', '20'],
  ['soak'],
]

/**
 * Commands: `steps` run one after another with the pinned Node; additional arguments go to the last one. `dataDir`: where sample
 * data go without `--dir`.
 */
const COMMANDS = {
  start: { build: true, dataDir: './quickstart-shard', steps: [['quickstart/src/shard.ts']] },
  // One standalone node with the sample.
  'start:node': { build: true, dataDir: './quickstart-data', steps: [['quickstart/src/start.ts']] },
  // A shard and nothing else: no control plane, no console.
  'start:shard': { build: true, dataDir: './quickstart-shard', steps: [['quickstart/src/shard.ts', '--no-console']] },
  // Two shards behind bridges, routers and an HTTP proxy, with control plane and console.
  'start:platform': {
    build: true,
    dataDir: './quickstart-platform',
    steps: [['bin/vacancy.mjs', 'quickstart', 'up', '--console']],
  },
  // Quick tests, a dozen with real programs, and one file in the browser. Arguments select files of any kind.
  test: { build: true, planTests: (args) => planTests(false, args) },
  // Every test. `--part 1/4` runs a quarter.
  'test:all': { build: true, planTests: (args) => planTests(true, args) },
  // By the hour: what simulations, faults, kills and load find.
  'test:long': {
    build: true,
    everyStep: true,
    steps: LONG_RUNS.map((args) => ['proofs/cli.ts', ...args]),
  },
  // The console with hot reload over a simulated cluster.
  dev: { build: false, steps: [['server/src/testing/console-sim.ts', '--hot']] },
  check: {
    build: false,
    // Every step runs, so that one run shows all errors.
    everyStep: true,
    steps: [
      TYPECHECK,
      [...BIOME, '--error-on-warnings', '--no-errors-on-unmatched'],
      ['node_modules/knip/bin/knip.js', '--no-progress'],
      ['scripts/check-imports.mjs'],
      ['scripts/check-links.mjs'],
    ],
  },
  // Writes the generated pages.
  docs: { build: false, steps: [['scripts/docs.mjs']] },
  // The archives of a release.
  dist: { build: true, steps: [['scripts/dist.mjs']] },
  bench: { build: true, steps: [['bench/src/cli.ts']] },
  proofs: { build: true, steps: [['proofs/cli.ts']] },
  console: { build: true, programs: CONSOLE_PROGRAMS },
}

const [name, ...rest] = process.argv.slice(2)
endWithStarter()
forwardSignals({ hangUpStops: true })
watchNpm({ onStop: () => stopRequested() || forward('SIGTERM'), onGone: endAll })
process.exitCode = await launch(name, rest)

async function launch(name, rest) {
  const command = Object.hasOwn(COMMANDS, name ?? '') ? COMMANDS[name] : undefined
  if (command === undefined) return refuse(`unknown command "${name ?? ''}"; available: ${nameList(COMMANDS)}`)
  if (command.programs) {
    const [program = '', ...args] = rest
    if (!Object.hasOwn(command.programs, program))
      return refuse(`${name}: unknown name "${program}"; available: ${nameList(command.programs)}`)
    return await launchCommand({ ...command, ...command.programs[program] }, args)
  }
  const plan = command.planTests?.(rest)
  if (plan?.fault) return refuse(plan.fault)
  return await launchCommand(command, rest, plan)
}

function nameList(table) {
  return Object.keys(table).join(', ')
}

function refuse(text) {
  say(text)
  return USAGE_EXIT_CODE
}

async function launchCommand(command, rest, plan) {
  const fault = await preflightFault(ROOT, rest, command.dataDir)
  if (fault !== '') {
    say(`${fault} Nothing was installed or started.`)
    return 1
  }
  const installed = await ensureInstalled(ROOT, say)
  if (installed !== 0) {
    if (!stopRequested()) say('npm ci failed; see its message above. Nothing was started.')
    return installed
  }
  const node = findNode(ROOT)
  if (node.path === undefined) {
    say(node.fix)
    return 1
  }
  const env = environment(node.path)
  if (command.build) {
    const built = await build(node.path, env)
    if (built !== 0) return built
  }
  if (plan) return await runTests(plan, { node: node.path, env, say, runStep, stopRequested })
  const browser = command.needsBrowser ? ensureBrowser(ROOT, node.path, say) : {}
  if (browser.fix) {
    say(browser.fix)
    return 1
  }
  return await runSteps(node.path, command, rest, { ...env, ...(browser.path && { CHROMIUM_PATH: browser.path }) })
}

/** The pinned Node is first on PATH, so that child tools use it too; telemetry of tools is disabled. */
function environment(node) {
  const folders = [path.dirname(node), path.join(ROOT, 'node_modules/.bin'), process.env.PATH ?? '']
  return {
    ...process.env,
    PATH: folders.join(path.delimiter),
    TURBO_TELEMETRY_DISABLED: '1',
    TURBO_NO_UPDATE_NOTIFIER: '1',
    DO_NOT_TRACK: '1',
    NEXT_TELEMETRY_DISABLED: '1',
  }
}

async function build(node, env) {
  const timer = setTimeout(() => say('building …'), QUIET_BUILD_MS)
  const options = { cwd: ROOT, env, stdio: ['ignore', 'pipe', 'pipe'], detached: HAS_GROUPS }
  const { code, output } = await run(node, [...TURBO, 'build'], options)
  clearTimeout(timer)
  if (code !== 0 && !stopRequested()) {
    process.stderr.write(output)
    say('the build failed; see its message above. Nothing was started.')
  }
  // Programs without a current bundle run from their sources: a failure is reported, and no reason to stop.
  if (code === 0 && !isBundled(ROOT)) await runStep(node, ['scripts/bundle.mjs'], { env, stdio: 'inherit' })
  return code
}

async function runSteps(node, command, rest, env) {
  let worst = 0
  for (const [index, step] of command.steps.entries()) {
    const args = index === command.steps.length - 1 ? [...step, ...rest] : step
    const { code } = await runStep(node, args, { env, stdio: 'inherit', detached: step === TYPECHECK && HAS_GROUPS })
    worst ||= code
    if (code !== 0 && !command.everyStep) break
  }
  return worst
}

function runStep(node, args, options) {
  return run(node, ['--import', END_WITH_STARTER, ...args], endingWithUs({ cwd: ROOT, ...options }))
}

function say(text) {
  console.error(`vacancy: ${text}`)
}
