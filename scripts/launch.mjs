// Starts everything a clone can do with one command: installs when needed, continues with the pinned Node, builds what
// changed, runs the program and passes signals on. Plain JavaScript without dependencies: runs on Node 20.
import { spawnSync } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { ensureBrowser } from './browser.mjs'
import { isBundled } from './bundle.mjs'
import { ensureInstalled } from './install.mjs'
import { findNode, ROOT } from './pinned-node.mjs'
import { endAll, forward, forwardSignals, run, stopRequested } from './program.mjs'
import { endingWithUs, endWithStarter, watchNpm } from './starter.mjs'

const USAGE_EXIT_CODE = 64
/** A longer build is announced. A build without changes stays silent. */
const QUIET_BUILD_MS = 1_000

/** turbo starts processes that do not watch their starter; as a process group they can be ended together. */
const HAS_GROUPS = process.platform !== 'win32'

const END_WITH_STARTER = new URL('./end-with-starter.mjs', import.meta.url).href
const VITEST = [
  'node_modules/vitest/vitest.mjs',
  'run',
  '--reporter=default',
  '--reporter=./scripts/count-reporter.mjs',
]
/** Tests of programs, of pages, and of long random histories. */
const NO_UNIT_TESTS = [
  ...['**/*.shard.test.ts', '**/src/node/**', '**/src/{shard,package}.test.ts', '**/*.test.tsx'],
  ...[
    '**/queue/{producer,consumer,consumer-reconnect}.test.ts',
    '**/imports/check-worker.test.ts',
    '**/contract/fabric.test.ts',
  ],
  ...['**/bootstrap/{formation,discovery}.test.ts', '**/raft/log.test.ts', '**/search/slices.test.ts'],
  '**/store/{charge,cow,digest-level,gaps,growing,property-index,row-order,row-order-commands}.test.ts',
  '**/store/{sessions,sessions-model,stays,stays-readers,store,structure,window}.test.ts',
]
const UNIT_TESTS = [
  ...['shared/src', 'client/src', 'web/src/features', 'web/src/lib'],
  ...['raft', 'store', 'search', 'bootstrap'].map((folder) => `engine/src/${folder}/`),
  ...NO_UNIT_TESTS.flatMap((pattern) => ['--exclude', pattern]),
]
const TURBO = ['node_modules/turbo/bin/turbo', 'run', '--ui=stream', '--output-logs=errors-only']
/** Of workspaces that did not change the result is in its cache. */
const TYPECHECK = [...TURBO, 'typecheck', '--continue']
const PLAYWRIGHT = ['node_modules/@playwright/test/cli.js', 'test', '--config', 'e2e']
/** Of `bin/vacancy.mjs`. Each test file is a process that would compile vitest again. */
const NODE_COMPILE_CACHE = process.env.NODE_COMPILE_CACHE ?? path.join(ROOT, 'node_modules/.cache/vacancy')
const LARGE = [...PLAYWRIGHT.slice(0, -1), 'e2e/large.config.ts']

/** Commands: `steps` run one after another with the pinned Node; additional arguments go to the last one. */
const COMMANDS = {
  start: { build: true, steps: [['quickstart/src/shard.ts']] },
  // One standalone node with the sample.
  'start:node': { build: true, steps: [['quickstart/src/start.ts']] },
  // A shard and nothing else: no control plane, no console.
  'start:shard': { build: true, steps: [['quickstart/src/shard.ts', '--no-console']] },
  // Two shards behind bridges, routers and an HTTP proxy, with control plane and console.
  'start:platform': { build: true, steps: [['bin/vacancy.mjs', 'quickstart', 'up', '--console']] },
  // All tests. Arguments select vitest files.
  test: { build: true, steps: [VITEST], countsTests: true, thenBrowser: true },
  // Tests without browser, database and processes, in about a minute.
  'test:unit': { build: true, steps: [[...VITEST, ...UNIT_TESTS]], countsTests: true },
  e2e: { build: true, steps: [], countsTests: true, thenBrowser: true },
  // Six million packages through the browser: takes minutes and gigabytes, so it runs only on request.
  'e2e:large': { build: true, steps: [LARGE], countsTests: true, needsBrowser: true },
  // The console with hot reload over a simulated cluster.
  dev: { build: false, steps: [['server/src/testing/console-sim.ts', '--hot']] },
  'console:sim': { build: true, steps: [['server/src/testing/console-sim.ts']] },
  // The picture of the README.
  picture: { build: true, steps: [['e2e/src/picture.ts']], needsBrowser: true },
  screenshots: { build: true, steps: [['e2e/src/screenshots.ts']], needsBrowser: true },
  // CPU and memory of the control plane with a thousand simulated nodes.
  'bench:control-plane': { build: true, steps: [['server/src/testing/cost.ts']] },
  'bench:console': { build: true, steps: [['e2e/src/bench.ts']], needsBrowser: true },
  // Branch coverage of the most critical folders by their own tests.
  coverage: {
    build: true,
    steps: [
      [
        ...VITEST.slice(0, 2),
        ...['--project', 'engine', 'engine/src/raft', 'engine/src/wal', '--coverage'],
        ...[
          '--coverage.include=src/raft/**',
          '--coverage.include=src/wal/**',
          '--coverage.exclude=src/wal/wal.bench.ts',
        ],
      ],
    ],
  },
  check: {
    build: false,
    // Every step runs, so that one run shows all errors.
    everyStep: true,
    steps: [
      TYPECHECK,
      ['node_modules/@biomejs/biome/bin/biome', 'check', '--error-on-warnings', '--no-errors-on-unmatched'],
      ['node_modules/knip/bin/knip.js', '--no-progress'],
      ['scripts/check-imports.mjs'],
      ['scripts/check-links.mjs'],
    ],
  },
  bench: { build: true, steps: [['bench/src/cli.ts', 'report']] },
  // The same queries on Vacancy, SQLite, PostgreSQL and Redis.
  'bench:why-not': { build: true, steps: [['bench/src/cli.ts', 'why-not']] },
  'bench:queue': { build: true, steps: [['bench/src/cli.ts', 'queue']] },
  'bench:fabric': { build: true, steps: [['bench/src/cli.ts', 'fabric']] },
  'bench:stays': { build: true, steps: [['bench/src/cli.ts', 'stays']] },
  'bench:starts': { build: true, steps: [['bench/src/cli.ts', 'starts']] },
  failover: { build: true, steps: [['bench/src/cli.ts', 'failover']] },
  replicated: { build: true, steps: [['bench/src/cli.ts', 'replicated']] },
  compare: { build: true, steps: [['bench/src/cli.ts', 'compare']] },
  sample: { build: true, steps: [['bench/src/cli.ts', 'sample']] },
  kill: { build: true, steps: [['proofs/cli.ts', 'kill']] },
  'kill:queue': { build: false, steps: [['queue/src/testing/kill.ts']] },
  'failover:queue': { build: false, steps: [['queue/src/testing/failover.ts']] },
  // The queue on a disk that loses what was not synced.
  'losing:queue': { build: false, steps: [['queue/src/testing/losing.ts']] },
  // Many waiting jobs and one slow consumer.
  'backlog:queue': { build: false, steps: [['queue/src/testing/backlog.ts']] },
  'soak:queue': { build: true, steps: [['proofs/cli.ts', 'queue-soak']] },
  sim: { build: true, steps: [['proofs/cli.ts', 'sim']] },
  // A shard of real processes under faults.
  chaos: { build: true, steps: [['proofs/cli.ts', 'chaos']] },
  // Routers and bridges over simulated connections.
  'fabric:model': { build: false, steps: [['proofs/cli.ts', 'fabric-model']] },
  // A platform of real processes under faults.
  'chaos:fabric': { build: true, steps: [['proofs/cli.ts', 'fabric-chaos']] },
  // Stays on a shard whose leader is killed again and again.
  bookers: { build: true, steps: [['proofs/cli.ts', 'bookers']] },
  soak: { build: true, steps: [['proofs/cli.ts', 'soak']] },
}

const [name, ...rest] = process.argv.slice(2)
endWithStarter()
forwardSignals({ hangUpStops: true })
watchNpm({ onStop: () => stopRequested() || forward('SIGTERM'), onGone: endAll })
process.exitCode = await launch(name, rest)

async function launch(name, rest) {
  const command = Object.hasOwn(COMMANDS, name ?? '') ? COMMANDS[name] : undefined
  if (command === undefined) {
    say(`unknown command "${name ?? ''}"; available: ${Object.keys(COMMANDS).join(', ')}`)
    return USAGE_EXIT_CODE
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
  if (command.countsTests) return await runTests(node.path, withBrowser(command, rest), rest, env)
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

/** Adds the browser tests to a command, if there are any. */
function withBrowser(command, rest) {
  const runsBrowser = command.thenBrowser && existsSync(path.join(ROOT, 'e2e/playwright.config.ts'))
  if (!runsBrowser || (command.steps.length > 0 && rest.length > 0)) return command
  return { ...command, steps: [...command.steps, PLAYWRIGHT], needsBrowser: true }
}

/**
 * Runs the tests of all steps, one step after the other: browsers beside them would keep two cores so busy that tests exceed
 * their time. The last line of the output is `N passed, M failed`.
 */
async function runTests(node, command, rest, env) {
  const folder = mkdtempSync(path.join(tmpdir(), 'vacancy-test-'))
  try {
    const browser = command.needsBrowser ? ensureBrowser(ROOT, node, say) : {}
    if (browser.fix) say(browser.fix)
    const seed = process.env.VACANCY_SEED ?? String(seedOfTests())
    say(`random tests draw from VACANCY_SEED=${seed}`)
    const steps = browser.fix ? command.steps.filter((step) => step !== PLAYWRIGHT) : command.steps
    const runs = []
    for (const [index, step] of steps.entries()) {
      const file = path.join(folder, `${index}.json`)
      const given = { ...env, NODE_COMPILE_CACHE, VACANCY_TEST_COUNTS: file, VACANCY_SEED: seed }
      if (browser.path) given.CHROMIUM_PATH = browser.path
      const { code } = await runStep(node, [...step, ...rest], { env: given, stdio: 'inherit' })
      runs.push({ code, counts: readCounts(file) })
      if (stopRequested()) break
    }
    const code = runs.find((each) => each.code !== 0)?.code ?? (browser.fix ? 1 : 0)
    const failures = runs.flatMap(({ counts }) => counts.failures)
    for (const failure of failures) console.log(`failed: ${failure}`)
    const sum = (count) => runs.reduce((total, { counts }) => total + counts[count], 0)
    const [passed, skipped] = [sum('passed'), sum('skipped')]
    // A run that crashed has failed, whatever it had counted.
    const failed = code !== 0 ? Math.max(1, failures.length) : failures.length
    if (skipped > 0) console.log(`${skipped} skipped`)
    if (passed + failed === 0) console.log('No test ran.')
    console.log(`${passed} passed, ${failed} failed`)
    return code === 0 && (failed > 0 || passed === 0) ? 1 : code
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/**
 * The seed is derived from the content of the commit: each commit tries different values, reproducibly. With
 * uncommitted changes, or without git, it is different each time.
 */
function seedOfTests() {
  const git = (...args) => spawnSync('git', args, { cwd: ROOT, encoding: 'utf8' }).stdout?.trim() ?? 'without git'
  const tree = git('status', '--porcelain') === '' ? git('rev-parse', 'HEAD^{tree}') : ''
  return /^[0-9a-f]{40}/.test(tree) ? Number.parseInt(tree.slice(0, 6), 16) : randomInt(2 ** 24)
}

function readCounts(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch {
    return { passed: 0, skipped: 0, failures: [] }
  }
}

function say(text) {
  console.error(`vacancy: ${text}`)
}
