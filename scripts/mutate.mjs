// Mutation runs: draws small edits of production code by a seed, applies each to a copy of the tree and runs the tests
// that reach the module. An edit that no test notices survives.
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { parseArgs } from 'node:util'
import { applyEdit, draw, editsOf } from './mutations.mjs'
import { readImporters, relatedTests } from './related-tests.mjs'

const ROOT = path.resolve(import.meta.dirname, '..')
/** Least share of edits that the tests of a workspace notice, in percent. */
const THRESHOLDS = { engine: 80, shared: 70, client: 70, server: 70, web: 60 }
/** The logic of the console: components are tested in a browser. */
const WEB_FOLDERS = 'web/src/{lib,features}/**/*.ts'
/** Texts of the console (`copy.ts`, `plan-copy.ts`) are read in a browser. */
const NOT_MUTATED = /[.](test|bench|fuzz|sim|as|d)[.]ts$|\/testing\/|\/docs[.]ts$|^web\/.*copy[.]ts$/
/** Test files run for an edit: the nearest ones. */
const TESTS_PER_EDIT = 10
/** On top of three times the time that the same tests take without an edit. */
const EDIT_MS = 20_000
/** A test hangs when it takes so much longer than three times the slowest one without an edit. */
const HANG_MS = 10_000
/** On a machine on which the tests are late without the edit, too, they may take so many times longer. */
const LATE_AGAIN = 3
/** Tests up to this time run before the others. */
const QUICK_MS = 2_000
/** Of the others, the nearest run that take no longer than this together: those of whole shards would take minutes. */
const SLOW_MS = 120_000
const BASELINE_MS = 30 * 60_000
/** Of one test without an edit: a busy machine must not make it useless. */
const BASELINE_TEST_MS = 180_000
/** Much of a run is one process that starts and reads modules: two at a time keep two cores busy. */
const JOBS = 2
const USAGE = `npm run mutate -- [options]
  --edits N        edits to try in each workspace; default 100
  --workspace W    one of ${Object.keys(THRESHOLDS).join(', ')}; default all
  --seed N         which edits are drawn; default random
  --jobs N         edits tried at a time, each by one process in a copy of the tree; default ${JOBS}
  --min PERCENT    threshold in place of ${Object.entries(THRESHOLDS)
    .map(([name, least]) => `${name} ${least}`)
    .join(', ')}
  --json FILE      writes a report`

if (process.argv[1] === import.meta.filename) process.exitCode = await main()

async function main() {
  const options = readOptions()
  if (options.help) return console.log(USAGE) ?? 0
  if (options.fault) return console.error(`mutate: ${options.fault}\n${USAGE}`) ?? 64
  console.log(`seed ${options.seed}`)
  const copies = Array.from({ length: options.jobs }, () => copyTree(ROOT))
  process.on('exit', () => {
    for (const copy of copies) rmSync(copy, { recursive: true, force: true })
  })
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(130))
  const reports = []
  for (const workspace of options.workspaces) reports.push(await mutate(copies, workspace, options))
  if (options.json)
    writeFileSync(options.json, `${JSON.stringify({ seed: options.seed, workspaces: reports }, null, 2)}\n`)
  return reports.every(({ passed }) => passed) ? 0 : 1
}

function readOptions() {
  try {
    const types = {
      edits: 'string',
      workspace: 'string',
      seed: 'string',
      jobs: 'string',
      min: 'string',
      json: 'string',
      help: 'boolean',
    }
    const { values } = parseArgs({
      options: Object.fromEntries(Object.entries(types).map(([name, type]) => [name, { type }])),
    })
    const whole = (name, fallback) => {
      const value = Number(values[name] ?? fallback)
      if (!Number.isSafeInteger(value) || value < 0) throw new Error(`--${name} must be a whole number`)
      return value
    }
    const workspaces = values.workspace ? [values.workspace] : Object.keys(THRESHOLDS)
    if (!workspaces.every((name) => Object.hasOwn(THRESHOLDS, name)))
      throw new Error(`unknown workspace ${values.workspace}`)
    const seed = whole('seed', Math.floor(Math.random() * 2 ** 31))
    const jobs = whole('jobs', JOBS)
    if (jobs === 0) throw new Error('--jobs must be at least 1')
    const min = values.min === undefined ? undefined : whole('min')
    return {
      edits: whole('edits', 100),
      seed,
      jobs,
      min,
      workspaces,
      json: values.json && path.resolve(values.json),
      help: values.help,
    }
  } catch (error) {
    return { fault: error.message }
  }
}

/** A copy of the tree as it is on disk, whose packages of ours lead into the copy and all others to the original. */
function copyTree(root) {
  const copy = mkdtempSync(path.join(tmpdir(), 'vacancy-mutate-'))
  const listed = spawnSync('git', ['ls-files', '-z', '-co', '--exclude-standard'], {
    cwd: root,
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
  })
  if (listed.status !== 0) throw new Error(`git ls-files failed: ${listed.stderr}`)
  const files = listed.stdout.split('\0').filter((file) => file && existsSync(path.join(root, file)))
  for (const built of [...files, ...globSync('*/build', { cwd: root })]) {
    cpSync(path.join(root, built), path.join(copy, built), { recursive: true })
  }
  const link = (name) => symlinkSync(path.join(root, 'node_modules', name), path.join(copy, 'node_modules', name))
  mkdirSync(path.join(copy, 'node_modules/@vacancy'), { recursive: true })
  for (const name of readdirSync(path.join(root, 'node_modules')))
    if (name !== '@vacancy' && !name.startsWith('.vite')) link(name)
  for (const name of readdirSync(path.join(root, 'node_modules/@vacancy'))) {
    symlinkSync(`../../${name}`, path.join(copy, 'node_modules/@vacancy', name))
  }
  return copy
}

async function mutate(copies, workspace, { edits: count, seed, min = THRESHOLDS[workspace] }) {
  const [copy] = copies
  const modules = globSync(workspace === 'web' ? WEB_FOLDERS : `${workspace}/src/**/*.ts`, { cwd: copy })
  const sources = new Map(
    modules
      .filter((file) => !NOT_MUTATED.test(file))
      .sort()
      .map((file) => [file, read(copy, file)]),
  )
  const all = [...sources].flatMap(([file, source]) => editsOf(file, source).map((edit) => ({ file, ...edit })))
  const drawn = draw(all, count, seed)
  const { workspaces } = JSON.parse(read(copy, 'package.json'))
  const importers = readImporters(copy, workspaces)
  const tests = new Map(drawn.map(({ file }) => [file, relatedTests(importers, file, TESTS_PER_EDIT)]))
  const times = await baseline(copy, [...new Set([...tests.values()].flat())], copies.length)
  console.log(`${workspace}: ${drawn.length} of ${all.length} edits`)
  const results = []
  const waiting = [...drawn.entries()]
  const tryWaiting = async (copy) => {
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      const [n, edit] = next
      const usable = affordable(
        tests.get(edit.file).filter((test) => times.has(test)),
        times,
      )
      results[n] = await tryEdit(copy, edit, sources.get(edit.file), usable, times)
      console.log(lineOf(results[n]))
    }
  }
  await Promise.all(copies.map(tryWaiting))
  const total = (status) => results.filter((result) => result.status === status).length
  const totals = { caught: total('caught'), timeout: total('timeout'), survived: total('survived') }
  const percent = results.length === 0 ? 100 : (100 * (totals.caught + totals.timeout)) / results.length
  const passed = percent >= min
  const sums = `${totals.caught} caught, ${totals.timeout} timed out, ${totals.survived} survived`
  console.log(
    `${workspace}: ${percent.toFixed(1)} % noticed (${sums}); threshold ${min} %: ${passed ? 'passed' : 'failed'}`,
  )
  return { workspace, possible: all.length, ...totals, percent, min, passed, edits: results }
}

/** Time of each test file and of its slowest test without an edit. Files that fail are left out: they would notice everything. */
async function baseline(copy, files, jobs) {
  const times = new Map()
  if (files.length === 0) return times
  await bundle(copy)
  const { results } = await vitest(copy, files, [`--maxWorkers=${jobs}`], BASELINE_MS, BASELINE_TEST_MS)
  for (const { file, status, startTime, endTime, assertionResults } of results) {
    const slowestMs = Math.max(0, ...assertionResults.map(({ duration }) => duration ?? 0))
    if (status === 'passed') times.set(file, { fileMs: endTime - startTime, slowestMs })
  }
  const failed = files.filter((file) => !times.has(file))
  if (failed.length > 0) console.log(`fail without an edit, not used: ${failed.join(', ')}`)
  if (times.size === 0) throw new Error('every test fails without an edit')
  return times
}

/** Nothing when the run was ended. */
function readReport(copy, report) {
  const { testResults } = existsSync(report) ? JSON.parse(readFileSync(report, 'utf8')) : { testResults: [] }
  const results = testResults.map(({ name, ...more }) => ({ file: path.relative(copy, name), ...more }))
  return { results, failed: results.filter(({ status }) => status === 'failed').map(({ file }) => file) }
}

function isQuick(test, times) {
  return times.get(test).fileMs <= QUICK_MS
}

/** The quick tests, and slow ones in their order as long as there is time for them; at least the shortest of these. */
function affordable(tests, times) {
  const slow = tests.filter((test) => !isQuick(test, times))
  const shortest = slow.toSorted((a, b) => times.get(a).fileMs - times.get(b).fileMs)[0]
  let leftMs = SLOW_MS
  const taken = new Set(shortest && [shortest])
  leftMs -= shortest ? times.get(shortest).fileMs : 0
  for (const test of slow) {
    if (taken.has(test) || times.get(test).fileMs > leftMs) continue
    taken.add(test)
    leftMs -= times.get(test).fileMs
  }
  return tests.filter((test) => isQuick(test, times) || taken.has(test))
}

/** Tries an edit with the quick tests first: most edits need no others. */
async function tryEdit(copy, { start, end, ...edit }, source, tests, times) {
  const quick = tests.filter((test) => isQuick(test, times))
  const slow = tests.filter((test) => !isQuick(test, times))
  const target = path.join(copy, edit.file)
  const edited = applyEdit(source, { start, end, ...edit })
  const started = performance.now()
  let status = 'survived'
  for (const stage of [quick, slow].filter(({ length }) => length > 0)) {
    status = await tryStage(stage, times, async (isEdited, files, limitMs, testMs) => {
      writeFileSync(target, isEdited ? edited : source)
      if (stage === slow) await bundle(copy)
      return await vitest(copy, files, ['--maxWorkers=1', '--bail=1'], limitMs, testMs)
    })
    if (status !== 'survived') break
  }
  writeFileSync(target, source)
  return { ...edit, status, tests, ms: Math.round(performance.now() - started) }
}

/** A busy machine makes tests late, and tests that start processes fail. If the edit is the reason, it happens again. */
async function tryStage(files, times, run) {
  const limitMs = EDIT_MS + 3 * files.reduce((sum, test) => sum + times.get(test).fileMs, 0)
  const testMs = HANG_MS + 3 * Math.max(...files.map((test) => times.get(test).slowestMs))
  const firstMs = performance.now()
  let { code, failed } = await run(true, files, limitMs, testMs)
  // Those that failed are enough to see it again.
  const again = failed.length === 0 ? files : failed
  const isLate = code === undefined || (code > 0 && performance.now() - firstMs >= HANG_MS)
  if (isLate) {
    const factor = (await run(false, again, limitMs, testMs)).code === 0 ? 1 : LATE_AGAIN
    ;({ code } = await run(true, again, factor * limitMs, factor * testMs))
  } else if (code > 0 && !files.every((test) => isQuick(test, times)))
    ({ code } = await run(true, again, limitMs, testMs))
  if (code === 0) return 'survived'
  return code === undefined ? 'timeout' : 'caught'
}

/** Programs that slow tests start would run from their sources, and start more slowly. */
async function bundle(copy) {
  await once(spawn(process.execPath, ['scripts/bundle.mjs'], { cwd: copy, stdio: 'inherit' }), 'exit')
}

/** Runs test files: the exit code, undefined when they did not end within the limit, and which files failed. */
function vitest(copy, files, more, limitMs, testMs) {
  const report = path.join(copy, 'mutation-report.json')
  rmSync(report, { force: true })
  // Those of the other workspaces take a second to start.
  const projects = new Set(files.map((file) => `--project=${file.split('/')[0]}`))
  const options = ['run', ...projects, ...more, `--testTimeout=${testMs}`, '--reporter=json', `--outputFile=${report}`]
  // A group of its own: programs that a test started end with it.
  const child = spawn(process.execPath, ['node_modules/vitest/vitest.mjs', ...options, ...files], {
    cwd: copy,
    stdio: 'ignore',
    detached: true,
    env: { ...process.env, VACANCY_SEED: '1', CI: '1' },
  })
  const end = () => {
    try {
      process.kill(-child.pid, 'SIGKILL')
    } catch (error) {
      if (error.code !== 'ESRCH') throw error
    }
  }
  // Before the copy is removed.
  process.prependListener('exit', end)
  return new Promise((resolve, reject) => {
    let isLate = false
    const timer = setTimeout(() => {
      isLate = true
      end()
    }, limitMs)
    child.on('error', reject)
    child.on('exit', (code) => {
      clearTimeout(timer)
      process.off('exit', end)
      end()
      resolve({ code: isLate ? undefined : code, ...readReport(copy, report) })
    })
  })
}

function lineOf({ status, file, line, column, kind, before, after, tests, ms }) {
  const short = (text) => (text.length > 60 ? `${text.slice(0, 57)}…` : text).replaceAll(/\s+/g, ' ')
  const seconds = `${(ms / 1000).toFixed(1)} s`
  return `${status.padEnd(8)} ${file}:${line}:${column} ${kind}: ${short(before)} → ${short(after)} (${tests.length} test files, ${seconds})`
}

function read(root, file) {
  return readFileSync(path.join(root, file), 'utf8')
}
