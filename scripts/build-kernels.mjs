// Compiles the engine's kernels: engine/src/<folder>/kernel.as.ts → engine/build/<folder>-kernel.wasm. Kernels with
// unchanged inputs are not built again; a stamp next to the outputs stores a hash of the inputs.
import { createHash } from 'node:crypto'
import { globSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'

const ENGINE = path.resolve(import.meta.dirname, '../engine')

/**
 * The kernels work on the store's shared memory at given addresses: the memory is imported, with any size up to 4 GiB,
 * and they own none of it. So there is no runtime, no static data, and no assertion text.
 */
const FLAGS = [
  '-O3',
  '--noAssert',
  ['--runtime', 'stub'],
  '--importMemory',
  '--noExportMemory',
  '--sharedMemory',
  ['--initialMemory', '1'],
  ['--maximumMemory', '65536'],
  ['--enable', 'simd'],
  ['--enable', 'threads'],
].flat()

const STAMP_FILE = 'kernels.json'
const SECTION_DATA = 11

/** The kernels of an engine folder: name, source, output. */
export function findKernels(engine = ENGINE) {
  return globSync('src/*/kernel.as.ts', { cwd: engine })
    .sort()
    .map((source) => ({ source, output: `${path.basename(path.dirname(source))}-kernel.wasm` }))
}

/** True when every kernel is built from the current sources. Reads a few small files and starts nothing. */
export function kernelsAreCurrent(engine = ENGINE) {
  const stamp = readStamp(engine)
  return findKernels(engine).every((kernel) => isCurrent(engine, kernel, stamp))
}

/** Builds outdated kernels and returns their names; throws with the compiler's message when a build fails. */
export async function buildKernels(engine = ENGINE) {
  const build = path.join(engine, 'build')
  const stamp = readStamp(engine)
  const kernels = findKernels(engine)
  const stale = kernels.filter((kernel) => !isCurrent(engine, kernel, stamp))
  mkdirSync(build, { recursive: true })
  for (const kernel of stale) {
    const { wasm, inputs } = await compile(engine, kernel)
    refuseStaticData(kernel, wasm)
    replaceFile(path.join(build, kernel.output), wasm)
    stamp[kernel.output] = { flags: FLAGS, inputs, wasm: digest(wasm) }
  }
  const wanted = new Set(kernels.map((kernel) => kernel.output))
  const left = Object.keys(stamp).filter((output) => !wanted.has(output))
  for (const output of left) {
    rmSync(path.join(build, output), { force: true })
    delete stamp[output]
  }
  if (stale.length + left.length > 0)
    replaceFile(path.join(build, STAMP_FILE), `${JSON.stringify(stamp, undefined, 2)}\n`)
  return stale.map((kernel) => kernel.output)
}

async function compile(engine, kernel) {
  // Loaded here, because the compiler takes half a second to load and most runs have nothing to build.
  const { default: asc } = await import('assemblyscript/asc')
  const inputs = { compiler: asc.version }
  const written = new Map()
  const messages = asc.createMemoryStream()
  const { error } = await asc.main([kernel.source, '--outFile', kernel.output, ...FLAGS], {
    stdout: messages,
    stderr: messages,
    readFile: (name) => {
      const bytes = readOrNull(path.join(engine, name))
      if (bytes !== null) inputs[name] = digest(bytes)
      return bytes?.toString('utf8') ?? null
    },
    writeFile: (name, content) => void written.set(name, content),
    listFiles: () => [],
  })
  const wasm = written.get(kernel.output)
  if (error || wasm === undefined) throw new Error(`${kernel.source} does not build:\n${messages.toString() || error}`)
  return { wasm, inputs }
}

/** A kernel with static data would overwrite the store's first pages when it is loaded. */
function refuseStaticData(kernel, wasm) {
  let at = 8
  while (at < wasm.length) {
    const section = wasm[at]
    let bytes = 0
    let shift = 0
    do {
      at += 1
      bytes += (wasm[at] & 0x7f) * 2 ** shift
      shift += 7
    } while (wasm[at] & 0x80)
    if (section === SECTION_DATA) {
      throw new Error(`${kernel.source} holds static data (a string, an array literal or a message); a kernel must not`)
    }
    at += 1 + bytes
  }
}

function isCurrent(engine, kernel, stamp) {
  const built = stamp[kernel.output]
  if (built === undefined || JSON.stringify(built.flags) !== JSON.stringify(FLAGS)) return false
  const wasm = readOrNull(path.join(engine, 'build', kernel.output))
  if (wasm === null || digest(wasm) !== built.wasm) return false
  const { compiler, ...sources } = built.inputs
  return (
    compiler === compilerVersion() &&
    Object.entries(sources).every(([name, hash]) => {
      const bytes = readOrNull(path.join(engine, name))
      return bytes !== null && digest(bytes) === hash
    })
  )
}

/** Read from its manifest, since loading the compiler would take longer than everything else here. */
function compilerVersion() {
  const manifest = readOrNull(path.resolve(import.meta.dirname, '../node_modules/assemblyscript/package.json'))
  return manifest === null ? undefined : JSON.parse(manifest.toString('utf8')).version
}

function readStamp(engine) {
  const text = readOrNull(path.join(engine, 'build', STAMP_FILE))
  try {
    return text === null ? {} : JSON.parse(text.toString('utf8'))
  } catch {
    // A torn stamp is ignored: everything is built again.
    return {}
  }
}

function readOrNull(file) {
  try {
    return readFileSync(file)
  } catch {
    return null
  }
}

/** Renamed into place, because other processes may be loading the file. */
function replaceFile(file, content) {
  const temporary = `${file}.${process.pid}`
  writeFileSync(temporary, content)
  renameSync(temporary, file)
}

function digest(bytes) {
  return createHash('sha256').update(bytes).digest('hex')
}

if (process.argv[1] === import.meta.filename) {
  try {
    for (const name of await buildKernels()) console.log(`built engine/build/${name}`)
  } catch (error) {
    console.error(error.message)
    process.exitCode = 1
  }
}
