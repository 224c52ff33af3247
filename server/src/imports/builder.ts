/**
 * Runs `vacancy build-snapshot` and `vacancy inspect` as separate processes and parses their output. A build that runs
 * out of memory or crashes does not affect the control plane.
 */
import { readFile } from 'node:fs/promises'
import {
  type BuildEvent,
  buildEvent,
  damagedFileBody,
  type SnapshotDifferences,
  type SnapshotFile,
  snapshotDifferencesBody,
  snapshotFileBody,
} from '@vacancy/shared/contract'
import { type ProcessEnd, programEnd, startVacancy } from './process.ts'

/** The output for a snapshot of a hundred thousand segments is smaller. */
const OUTPUT_BYTES_MAX = 256 << 20
const LINE_BYTES_MAX = 1 << 20

export type BuildOptions = {
  readonly shard: string
  readonly inputPath: string
  readonly outputPath: string
  readonly errorsFile: string
  readonly from: string
  readonly to: string
  readonly priceDecimals: number
  readonly signal: AbortSignal
  readonly onEvent: (event: BuildEvent) => void
  readonly onStart: (pid: number) => void
}

export function buildArguments(
  options: Pick<BuildOptions, 'shard' | 'inputPath' | 'outputPath' | 'from' | 'to' | 'priceDecimals'>,
): string[] {
  const { shard, inputPath, outputPath, from, to, priceDecimals } = options
  return [
    ...['build-snapshot', '--shard-id', shard, '--input-path', inputPath, '--output-path', outputPath],
    ...['--from', from, '--to', to, ...(priceDecimals === 0 ? [] : ['--price-decimals', `${priceDecimals}`])],
  ]
}

/** Resolves when the process has ended, with any exit code. @throws Error for invalid output */
export async function runBuild(options: BuildOptions): Promise<ProcessEnd> {
  const args = [...buildArguments(options), '--progress', 'json', '--errors', options.errorsFile, '--overwrite']
  const child = startVacancy(args)
  if (child.pid !== undefined) options.onStart(child.pid)
  let rest = ''
  let fault: unknown
  child.stdout?.setEncoding('utf8')
  child.stdout?.on('data', (text: string) => {
    if (fault !== undefined) return
    const lines = (rest + text).split('\n')
    rest = (lines.pop() ?? '').slice(0, LINE_BYTES_MAX)
    try {
      for (const line of lines) options.onEvent(buildEvent.parse(JSON.parse(line)))
    } catch (error) {
      // Reported when the process has ended: an exception here would end the control plane.
      fault = error
      child.kill('SIGTERM')
    }
  })
  const end = await programEnd(child, options.signal)
  if (fault !== undefined) throw new Error('invalid output of build-snapshot', { cause: fault })
  return end
}

/** @throws Error with the output of the program */
export async function inspectSnapshot(path: string, signal: AbortSignal): Promise<SnapshotFile> {
  return snapshotFileBody.parse(await inspect([path], signal))
}

/** Properties that differ between two snapshot files. @throws Error with the output of the program */
export async function compareSnapshots(a: string, b: string, signal: AbortSignal): Promise<SnapshotDifferences> {
  return snapshotDifferencesBody.parse(await inspect([a, '--against', b], signal))
}

async function inspect(args: readonly string[], signal: AbortSignal): Promise<unknown> {
  const child = startVacancy(['inspect', ...args, '--json'])
  const pieces: Buffer[] = []
  let bytes = 0
  child.stdout?.on('data', (piece: Buffer) => {
    bytes += piece.length
    if (bytes <= OUTPUT_BYTES_MAX) pieces.push(piece)
  })
  const { code, stderr } = await programEnd(child, signal)
  if (bytes > OUTPUT_BYTES_MAX) throw new Error(`the output of inspect exceeds ${OUTPUT_BYTES_MAX} bytes`)
  const text = Buffer.concat(pieces).toString('utf8')
  const document: unknown = text === '' ? undefined : JSON.parse(text)
  if (code === 0) return document
  throw new Error(damagedFileBody.safeParse(document).data?.damage ?? (stderr.trim() || `inspect ended with ${code}`))
}

/** Resident memory of a process in bytes; null if the system does not report it. */
export async function memoryOf(pid: number): Promise<number | null> {
  try {
    const [, resident] = (await readFile(`/proc/${pid}/statm`, 'utf8')).split(' ')
    return Number(resident) * 4096
  } catch {
    // It has just ended, or this is not Linux.
    return null
  }
}
