// What `npm test` and `npm run test:all` run, by the names of files: `x.test.ts` needs no program, database, browser or
// real clock, `x.program.test.ts` is one of a dozen with real programs, `x.long.test.ts` is all else.
import { spawnSync } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { ensureBrowser } from './browser.mjs'
import { ROOT } from './pinned-node.mjs'

const VITEST = [
  ...['node_modules/vitest/vitest.mjs', 'run'],
  ...['--reporter=default', '--reporter=./scripts/count-reporter.mjs'],
]
const PLAYWRIGHT = ['node_modules/@playwright/test/cli.js', 'test', '--config']
const IN_BROWSER = /^e2e\b|[.]spec\b/

/** Each test file is a process that would compile vitest again. */
const NODE_COMPILE_CACHE = process.env.NODE_COMPILE_CACHE ?? path.join(ROOT, 'node_modules/.cache/vacancy')
/** Of `npm test`: every run tries the same values. */
const FIXED_SEED = '20261128'

/**
 * @param args of `test`: paths or flags of vitest, or of Playwright when a path is in `e2e`; of `test:all`: `--part K/N`
 * @returns programs to run one after another, or the `fault` of the arguments
 */
export function planTests(isAll, args, root = ROOT) {
  const hasBrowserTests = existsSync(path.join(root, 'e2e/playwright.config.ts'))
  const browser = [...PLAYWRIGHT, 'e2e']
  if (isAll) {
    const [flag, part, ...rest] = args
    const isPart = flag === '--part' && /^[1-9]\d*\/[1-9]\d*$/.test(part ?? '') && rest.length === 0
    if (args.length > 0 && !isPart) return { fault: `test:all: unknown argument ${args.join(' ')}; usage: --part 1/4` }
    const shard = isPart ? [`--shard=${part}`] : []
    const steps = [[...VITEST, ...shard], ...(hasBrowserTests ? [[...browser, ...shard]] : [])]
    return { steps, seed: seedOfCommit() }
  }
  if (args.some((arg) => IN_BROWSER.test(arg))) return { steps: [[...browser, ...args]], seed: FIXED_SEED }
  if (args.length > 0) return { steps: [[...VITEST, ...args]], seed: FIXED_SEED }
  const steps = [
    [...VITEST, '--exclude=**/*.long.test.*'],
    ...(hasBrowserTests ? [[...browser, '--project=everyday']] : []),
  ]
  return { steps, seed: FIXED_SEED, isDaily: true }
}

/**
 * Runs the steps one after another: browsers beside other tests would keep two cores so busy that tests exceed their time.
 * The last line of the output is `N passed, M failed`.
 */
export async function runTests({ steps, seed, isDaily }, { node, env, say, runStep, stopRequested }) {
  const folder = mkdtempSync(path.join(tmpdir(), 'vacancy-test-'))
  try {
    const needsBrowser = steps.some((step) => step[0] === PLAYWRIGHT[0])
    const browser = needsBrowser ? ensureBrowser(ROOT, node, say) : {}
    if (browser.fix) say(browser.fix)
    const given = { ...env, NODE_COMPILE_CACHE, VACANCY_SEED: process.env.VACANCY_SEED ?? seed }
    say(`random tests draw from VACANCY_SEED=${given.VACANCY_SEED}`)
    if (isDaily) Object.assign(given, { VACANCY_TEST_DATABASES: 'embedded', VACANCY_TEST_TRIES: 'few' })
    if (browser.path) given.CHROMIUM_PATH = browser.path
    const runs = []
    for (const [index, step] of steps.entries()) {
      if (browser.fix && step[0] === PLAYWRIGHT[0]) continue
      const file = path.join(folder, `${index}.json`)
      const { code } = await runStep(node, step, { env: { ...given, VACANCY_TEST_COUNTS: file }, stdio: 'inherit' })
      runs.push({ code, counts: readCounts(file) })
      if (stopRequested()) break
    }
    return summarize(runs, browser.fix !== undefined)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function summarize(runs, lacksBrowser) {
  const code = runs.find((each) => each.code !== 0)?.code ?? (lacksBrowser ? 1 : 0)
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
}

/**
 * Derived from the content of the commit: each commit tries different values, reproducibly. With uncommitted changes, or
 * without git, it is different each time.
 */
function seedOfCommit() {
  const git = (...args) => spawnSync('git', args, { cwd: ROOT, encoding: 'utf8' }).stdout?.trim() ?? 'without git'
  const tree = git('status', '--porcelain') === '' ? git('rev-parse', 'HEAD^{tree}') : ''
  return String(/^[0-9a-f]{40}/.test(tree) ? Number.parseInt(tree.slice(0, 6), 16) : randomInt(2 ** 24))
}

function readCounts(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch {
    return { passed: 0, skipped: 0, failures: [] }
  }
}
