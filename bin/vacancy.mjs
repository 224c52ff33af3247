#!/usr/bin/env node
// The command `vacancy`: finds the workspace of a subcommand and passes it the arguments.
import { readFileSync } from 'node:fs'
import nodeModule from 'node:module'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { bundledProgram } from '../scripts/bundle.mjs'
import { COMMANDS, describeCommands } from '../scripts/commands.mjs'
import { findNode, isNewEnough, ROOT } from '../scripts/pinned-node.mjs'
import { forward, forwardSignals, run } from '../scripts/program.mjs'
import { endAtOnce, endingWithUs, endWithStarter, watchNpm } from '../scripts/starter.mjs'

const USAGE_EXIT_CODE = 64

/** Long-running programs, and the one that starts them, which pass on their environment. */
const LONG_LIVED = new Set([
  'run',
  'run-clustered',
  'registry',
  'bridge',
  'router',
  'proxy',
  'control-plane',
  'queue',
  'quickstart',
])
/**
 * glibc keeps freed memory, by default tens of megabytes per thread, so memory used for loading would stay allocated.
 * Blocks from this size are returned to the system when freed: twice what a socket is read with, since each read would
 * map and unmap memory otherwise. The C library reads this at process start, so the process executes itself again, in
 * place, with the same id.
 */
const MALLOC = { MALLOC_MMAP_THRESHOLD_: '131072', MALLOC_TRIM_THRESHOLD_: '65536' }

process.exitCode = await main(process.argv.slice(2))

async function main([name, ...rest]) {
  if (name === undefined || name === '--help' || name === '-h') {
    console.log(help())
    return name === undefined ? USAGE_EXIT_CODE : 0
  }
  if (name !== '--version' && !Object.hasOwn(COMMANDS, name)) {
    console.error(`vacancy: unknown subcommand "${name}"; available: ${Object.keys(COMMANDS).join(', ')}`)
    return USAGE_EXIT_CODE
  }
  if (!isNewEnough(process.version)) return await againOnPinnedNode([name, ...rest])
  if (name === '--version') {
    console.log(await version())
    return 0
  }
  if (LONG_LIVED.has(name)) giveMemoryBack()
  // Only now, since a process that executes itself again must keep its input.
  endWithStarter()
  watchNpm({ onStop: () => process.kill(process.pid, 'SIGTERM'), onGone: endAtOnce })
  await buildWhatIsMissing()
  keepCompiled()
  const load = async (door) => {
    const bundled = process.env.VACANCY_FROM_SOURCE === '1' ? undefined : bundledProgram(ROOT, door)
    return await import(bundled ?? door)
  }
  const program = await load(COMMANDS[name][0])
  await program.main([name, ...rest], () => describeCommands(load))
  return process.exitCode
}

/** A release names its commit, a clone asks git. */
async function version() {
  const { version, commit } = JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8'))
  const of = commit ?? (await import('../shared/src/node/commit.ts')).commitOf(ROOT)
  return `${version} (commit ${of}, Node ${process.version})`
}

/**
 * Caches compiled TypeScript: later starts are faster, and threads do not load the type stripper (20 MB each). Without
 * a writable folder everything works uncached.
 */
function keepCompiled() {
  const folder = path.join(ROOT, 'node_modules/.cache/vacancy')
  process.env.NODE_COMPILE_CACHE ??= folder
  nodeModule.enableCompileCache?.(process.env.NODE_COMPILE_CACHE)
}

/** Executes this process again with `MALLOC`, unless these variables are already set. Without glibc it does nothing. */
function giveMemoryBack() {
  const isSet = Object.keys(MALLOC).some((name) => process.env[name] !== undefined)
  if (process.platform !== 'linux' || isSet) return
  process.execve?.(process.execPath, [process.execPath, ...process.execArgv, ...process.argv.slice(1)], {
    ...process.env,
    ...MALLOC,
  })
}

/** Started with an old Node, for example from a shell: runs the same command with the pinned one, which ends with this process. */
async function againOnPinnedNode(args) {
  const node = findNode()
  if (node.path === undefined) {
    console.error(`vacancy: ${node.fix}`)
    return 1
  }
  endWithStarter()
  forwardSignals()
  watchNpm({ onStop: () => forward('SIGTERM'), onGone: endAtOnce })
  const options = endingWithUs({ stdio: 'inherit', env: { ...MALLOC, ...process.env } })
  const { code } = await run(node.path, [fileURLToPath(import.meta.url), ...args], options)
  return code
}

/** Builds missing kernels. A failure is reported; programs that need them do not start. */
async function buildWhatIsMissing() {
  // Loaded here, because this file runs on Node 20 and that one needs the pinned Node.
  const { buildKernels, kernelsAreCurrent } = await import('../scripts/build-kernels.mjs')
  if (kernelsAreCurrent()) return
  try {
    await buildKernels()
  } catch (error) {
    console.error(`vacancy: kernels cannot be built: ${error.message}`)
  }
}

function help() {
  const rows = Object.entries(COMMANDS).map(([name, [, summary]]) => `  ${name.padEnd(16)} ${summary}`)
  return ['usage: vacancy <subcommand> [flags]', '', ...rows, '', 'Each has --help.'].join('\n')
}
