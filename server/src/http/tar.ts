/**
 * A tar archive as a stream: files in sequence, each after a header of 512 bytes and padded to a multiple of that
 * (POSIX.1-1988, "ustar"; sizes from 8 GiB in base 256, a widely supported GNU extension).
 */
import { Readable } from 'node:stream'

const BLOCK = 512
const END_BLOCKS = 2
/** Largest size in the octal field of eleven digits. */
const OCTAL_MAX = 8 ** 11 - 1

export type TarEntry = {
  /** At most 100 ASCII characters. */
  readonly name: string
  readonly bytes: number
  /** The exact number of bytes. */
  readonly content: Buffer | (() => Readable)
}

const padding = (bytes: number): number => (BLOCK - (bytes % BLOCK)) % BLOCK

/** Of the whole archive. */
export function tarBytes(entries: readonly TarEntry[]): number {
  return entries.reduce((sum, { bytes }) => sum + BLOCK + bytes + padding(bytes), END_BLOCKS * BLOCK)
}

/** @param modifiedAt unix seconds, of all entries */
export function tarOf(entries: readonly TarEntry[], modifiedAt: number): Readable {
  async function* pieces(): AsyncGenerator<Buffer> {
    for (const entry of entries) {
      yield headerOf(entry, modifiedAt)
      if (Buffer.isBuffer(entry.content)) yield entry.content
      else for await (const piece of entry.content()) yield piece as Buffer
      if (padding(entry.bytes) > 0) yield Buffer.alloc(padding(entry.bytes))
    }
    yield Buffer.alloc(END_BLOCKS * BLOCK)
  }
  return Readable.from(pieces(), { objectMode: false })
}

function headerOf({ name, bytes }: TarEntry, modifiedAt: number): Buffer {
  const header = Buffer.alloc(BLOCK)
  header.write(name, 0, 100, 'ascii')
  header.write('0000644\0', 100)
  header.write('0000000\0', 108)
  header.write('0000000\0', 116)
  if (bytes <= OCTAL_MAX) header.write(`${bytes.toString(8).padStart(11, '0')}\0`, 124)
  else {
    header[124] = 0x80
    header.writeBigUInt64BE(BigInt(bytes), 128)
  }
  header.write(`${modifiedAt.toString(8).padStart(11, '0')}\0`, 136)
  header.write('        ', 148)
  header.write('0', 156)
  header.write('ustar\x0000', 257)
  const sum = header.reduce((total, byte) => total + byte, 0)
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
  return header
}
