#!/usr/bin/env node
// The command `vacancy`: finds the workspace that knows a subcommand and hands it the arguments.
import { readFileSync } from 'node:fs'
import nodeModule from 'node:module'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { setFlagsFromString } from 'node:v8'
import { findNode, isNewEnough, ROOT } from '../scripts/pinned-node.mjs'
import { forward, forwardSignals, run } from '../scripts/program.mjs'
import { endAtOnce, endingWithUs, endWithStarter, watchNpm } from '../scripts/starter.mjs'

const USAGE_EXIT_CODE = 64

/** Subcommand → the door of the workspace that has it, and what it does. */
const COMMANDS = {
  run: ['@vacancy/engine/cli', 'starts a standalone node'],
  'build-snapshot': ['@vacancy/engine/cli', 'makes a snapshot from properties.csv and packages.csv'],
  'run-clustered': ['@vacancy/engine/cli', 'starts a member of a shard of several nodes'],
  inspect: ['@vacancy/engine/cli', 'says what lies in a data directory or a snapshot file and what of it is damaged'],
  backup: ['@vacancy/engine/cli', 'makes one snapshot file of a running node or shard'],
  export: ['@vacancy/engine/cli', 'makes one snapshot file of a stopped node: its data directory'],
  quarantine: ['@vacancy/engine/cli', 'lists, restores or removes data that was set aside'],
  registry: ['@vacancy/fabric/cli', 'starts the registry: who is there, which shard has what, the codec list'],
  resolver: ['@vacancy/fabric/cli', 'starts a resolver for development: id to host'],
  'control-plane': ['@vacancy/server/cli', 'starts the control plane with its console, or makes a sign-in link'],
  cluster: ['@vacancy/engine/cli', 'shows what a shard of several nodes does, and changes its members and leader'],
  certs: ['@vacancy/engine/cli', 'makes the authority of a cluster and the certificates of its nodes'],
  query: ['@vacancy/quickstart/cli', 'asks a running node and prints the answer as a table'],
}

/** Programs that run for months. */
const LONG_LIVED = new Set(['run', 'run-clustered', 'registry', 'control-plane'])
/**
 * glibc keeps what was freed for later, by default tens of megabytes a thread: what a start needs for loading would
 * stay with the node for good. Blocks from this size on are given back when they are freed. Read by the C library when
 * a process starts, so the process starts once more, in place, with the same id.
 */
const MALLOC = { MALLOC_MMAP_THRESHOLD_: '65536', MALLOC_TRIM_THRESHOLD_: '65536' }

process.exitCode = await main(process.argv.slice(2))

async function main([name, ...rest]) {
  if (name === undefined || name === '--help' || name === '-h') {
    console.log(help())
    return name === undefined ? USAGE_EXIT_CODE : 0
  }
  if (name === '--version') {
    console.log(JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8')).version)
    return 0
  }
  if (!Object.hasOwn(COMMANDS, name)) {
    console.error(`vacancy: unknown subcommand "${name}"; available: ${Object.keys(COMMANDS).join(', ')}`)
    return USAGE_EXIT_CODE
  }
  if (!isNewEnough(process.version)) return await againOnPinnedNode([name, ...rest])
  if (LONG_LIVED.has(name)) giveMemoryBack()
  // Not before: what starts once more, in place, is still to be given to.
  endWithStarter()
  watchNpm({ onStop: () => process.kill(process.pid, 'SIGTERM'), onGone: endAtOnce })
  if (name === 'control-plane') collectSooner()
  await buildWhatIsMissing()
  keepCompiled()
  const [door] = COMMANDS[name]
  const program = await import(door)
  await program.main([name, ...rest])
  return process.exitCode
}

/**
 * Keeps what Node made of our TypeScript: later starts are quicker, and no thread carries the type stripper along
 * (20 MB each). Where the folder cannot be written everything works as without.
 */
function keepCompiled() {
  const folder = path.join(ROOT, 'node_modules/.cache/vacancy')
  process.env.NODE_COMPILE_CACHE ??= folder
  nodeModule.enableCompileCache?.(process.env.NODE_COMPILE_CACHE)
}

/** Starts this process again with `MALLOC`, unless whoever started it has set these; without glibc it does nothing. */
function giveMemoryBack() {
  const isSet = Object.keys(MALLOC).some((name) => process.env[name] !== undefined)
  if (process.platform !== 'linux' || isSet) return
  process.execve?.(process.execPath, [process.execPath, ...process.execArgv, ...process.argv.slice(1)], {
    ...process.env,
    ...MALLOC,
  })
}

/**
 * The old generation may grow by this much of what lives before it is collected; V8 itself lets it double. Over 1,000
 * nodes and 20 browsers it takes a tenth of a core more and 170 MiB less (`npm run bench:control-plane`).
 */
function collectSooner() {
  setFlagsFromString('--heap-growing-percent=30')
}

/** Started with an old Node, as by a path from a shell: the same command once more, with ours, which ends with this. */
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

/** The node runs without its kernels, several times slower: not something to happen unseen. */
async function buildWhatIsMissing() {
  // Loaded here: this file starts on Node 20, that one needs ours.
  const { buildKernels, kernelsAreCurrent } = await import('../scripts/build-kernels.mjs')
  if (kernelsAreCurrent()) return
  try {
    await buildKernels()
  } catch (error) {
    console.error(`vacancy: goes on without compiled kernels, slower: ${error.message}`)
  }
}

function help() {
  const rows = Object.entries(COMMANDS).map(([name, [, summary]]) => `  ${name.padEnd(16)} ${summary}`)
  return ['usage: vacancy <subcommand> [flags]', '', ...rows, '', 'Each has --help.'].join('\n')
}
