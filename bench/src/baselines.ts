/** What this machine does at best, measured in the same run as what is compared with it. */
import { closeSync, fdatasyncSync, mkdtempSync, openSync, readFileSync, readSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { assert } from '@vacancy/shared'
import { createHistogram, type Histogram, record } from './histogram.ts'
import { runProgram } from './programs.ts'

const PAGE_BYTES = 65_536
const PAGES_MAX = 65_536
/** Beyond the last cache of usual machines. */
const READ_BYTES = 256 * 1024 * 1024
const CHUNK_BYTES = 8 * 1024 * 1024
const ROUNDS = 5

type BaselineKernel = {
  memory: WebAssembly.Memory
  countNewlines(start: number, length: number): number
  sumWords(start: number, length: number): number
}

let compiled: ReturnType<typeof compile> | undefined

async function createBaselineKernel(memoryBytes: number): Promise<BaselineKernel> {
  // Shared and of the same maximum as a node's memory: pages of such memory are small ones, and that shows.
  const memory = new WebAssembly.Memory({
    initial: Math.ceil(memoryBytes / PAGE_BYTES),
    maximum: PAGES_MAX,
    shared: true,
  })
  compiled ??= compile()
  const { instance } = await WebAssembly.instantiate(await compiled, { env: { memory } })
  const { countNewlines, sumWords } = instance.exports as Omit<BaselineKernel, 'memory'>
  return { memory, countNewlines, sumWords }
}

/** Compiled by the compiler's own program: it is a tool of the repository, not a library of this workspace. */
async function compile(): Promise<Buffer<ArrayBuffer>> {
  const dir = mkdtempSync(join(tmpdir(), 'vacancy-baseline-'))
  const output = join(dir, 'baseline.wasm')
  const memory = ['--importMemory', '--sharedMemory', '--initialMemory', '1', '--maximumMemory', String(PAGES_MAX)]
  const flags = ['-O3', '--runtime', 'stub', '--enable', 'simd', '--enable', 'threads', ...memory]
  try {
    await runProgram(['node_modules/assemblyscript/bin/asc.js', 'bench/src/baseline.as.ts', '-o', output, ...flags])
    return Buffer.from(readFileSync(output))
  } finally {
    rmSync(dir, { recursive: true })
  }
}

/** Bytes a second that one thread reads from memory, words added up; the best of a few rounds. */
export async function readBandwidth(): Promise<number> {
  const { memory, sumWords } = await createBaselineKernel(READ_BYTES)
  const words = new Uint32Array(memory.buffer)
  let expected = 0
  for (let i = 0; i < words.length; i++) {
    words[i] = i
    expected = (expected + i) | 0
  }
  let best = 0
  for (let round = 0; round < ROUNDS; round++) {
    const begun = performance.now()
    const sum = sumWords(0, READ_BYTES)
    best = Math.max(best, READ_BYTES / ((performance.now() - begun) / 1000))
    assert(sum === expected, 'the kernel reads every word once')
  }
  return best
}

export type Lines = { lines: number; bytes: number; seconds: number }

/** Reads a file in order and counts its lines: what an import cannot be faster than. */
export async function countLines(path: string): Promise<Lines> {
  const { memory, countNewlines } = await createBaselineKernel(CHUNK_BYTES)
  const chunk = new Uint8Array(memory.buffer, 0, CHUNK_BYTES)
  const file = openSync(path, 'r')
  const begun = performance.now()
  let lines = 0
  let bytes = 0
  try {
    for (;;) {
      const read = readSync(file, chunk, 0, CHUNK_BYTES, null)
      if (read === 0) break
      chunk.fill(0, read, Math.ceil(read / 64) * 64)
      lines += countNewlines(0, Math.ceil(read / 64) * 64)
      bytes += read
    }
  } finally {
    closeSync(file)
  }
  return { lines, bytes, seconds: (performance.now() - begun) / 1000 }
}

/**
 * Milliseconds of one write and fdatasync after the other, `bytes` each, into a file of `dir` that has its full
 * length beforehand, as the log files of a node have.
 */
export function syncLatency({ dir, bytes, count }: { dir: string; bytes: number; count: number }): Histogram {
  const path = join(dir, 'sync-baseline.tmp')
  const histogram = createHistogram()
  const payload = Buffer.alloc(bytes, 0x5a)
  const file = openSync(path, 'w')
  try {
    writeSync(file, Buffer.alloc(bytes * count))
    fdatasyncSync(file)
    for (let i = 0; i < count; i++) {
      const begun = performance.now()
      writeSync(file, payload, 0, bytes, i * bytes)
      fdatasyncSync(file)
      record(histogram, performance.now() - begun)
    }
  } finally {
    closeSync(file)
    rmSync(path)
  }
  return histogram
}
