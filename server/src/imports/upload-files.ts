/** The bytes of uploads on disk: writing chunks, and fingerprints of files. */
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import type { FileHandle } from 'node:fs/promises'
import { problem } from '@vacancy/shared/api/errors'
import type { ProblemError } from '@vacancy/shared/api/route'

const MEBIBYTE = 2 ** 20

const NAME_CHARACTERS_MAX = 200

/** A write may be partial, for example on a nearly full disk; the next one reports the error. */
export async function writeAll(file: FileHandle, piece: Buffer, position: number): Promise<void> {
  for (let done = 0; done < piece.length; ) {
    const { bytesWritten } = await file.write(piece, done, piece.length - done, position + done)
    done += bytesWritten
  }
}

/** The displayed name of a file: the last part of its path, without control characters. */
export function cleanName(name: string): string {
  const last = name.split(/[\\/]/).at(-1) ?? ''
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these characters are removed.
  const text = last.replace(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2066-\u2069]/g, '').trim()
  return text === '' || /^\.+$/.test(text) ? 'file.csv' : text.slice(0, NAME_CHARACTERS_MAX)
}

/** SHA-256 of the size as digits and a line end, the first MiB and the last MiB. */
export async function fingerprintOf(path: string, bytes: number): Promise<string> {
  const digest = createHash('sha256').update(`${bytes}\n`)
  for (const [start, end] of [
    [0, Math.min(bytes, MEBIBYTE)],
    [Math.max(0, bytes - MEBIBYTE), bytes],
  ] as const) {
    for await (const piece of createReadStream(path, { start, end: end - 1 })) digest.update(piece as Buffer)
  }
  return digest.digest('hex')
}

export function isDiskFull(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException | undefined)?.code
  return code === 'ENOSPC' || code === 'EDQUOT'
}

export function diskFull(cause: unknown): ProblemError {
  return problem('disk-full', { cause })
}
