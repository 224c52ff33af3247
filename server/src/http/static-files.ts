/**
 * Files of the console's build. Their names contain a hash of their content, so browsers cache them permanently. Each
 * is compressed once, on its first request; Next would compress it for every request.
 */
import { readdirSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { extname, join, sep } from 'node:path'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import { accepts } from '@vacancy/shared/api/encodings'

export type StaticFile = {
  readonly type: string
  /** Undefined: not compressed. */
  readonly encoding: 'br' | 'gzip' | undefined
  readonly body: Buffer
}

const TYPES: { readonly [extension: string]: string } = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
}
const toBrotli = promisify(brotliCompress)
const toGzip = promisify(gzip)
const PACKED = {
  br: (body: Buffer) => toBrotli(body, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } }),
  gzip: (body: Buffer) => toGzip(body, { level: 9 }),
} as const

/** Returns a file by its path below the folder, in an encoding that the browser accepts; undefined for missing files and other types. */
export function createStaticFiles(
  folder: string,
): (path: string, acceptEncoding: string) => Promise<StaticFile> | undefined {
  // Only files listed at the start are ever opened, whatever the path is.
  const types = new Map(
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .map((path) => [path.split(sep).join('/'), TYPES[extname(path)]] as const)
      .filter((entry): entry is [string, string] => entry[1] !== undefined),
  )
  const kept = new Map<string, Promise<StaticFile>>()

  async function read(path: string, type: string, encoding: StaticFile['encoding']): Promise<StaticFile> {
    const body = await readFile(join(folder, path))
    return { type, encoding, body: encoding === undefined ? body : await PACKED[encoding](body) }
  }

  return (path, acceptEncoding) => {
    const type = types.get(path)
    if (type === undefined) return undefined
    const encoding = (['br', 'gzip'] as const).find((one) => accepts(acceptEncoding, one))
    const key = `${encoding} ${path}`
    const known = kept.get(key)
    if (known !== undefined) return known
    const reading = read(path, type, encoding)
    kept.set(key, reading)
    // A read error may be temporary.
    reading.catch(() => kept.delete(key))
    return reading
  }
}
