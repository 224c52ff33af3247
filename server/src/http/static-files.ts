/**
 * Files of the console's build. Their names are made of their content: browsers keep them for good, and each is compressed
 * once, when it is first asked for, where Next would do it again for every browser.
 */
import { readdirSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { extname, join, sep } from 'node:path'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'

export type StaticFile = {
  readonly type: string
  /** Undefined: as it is. */
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

/** Gives a file by its path below the folder, as a browser wants it; undefined for what is not there or of another kind. */
export function createStaticFiles(
  folder: string,
): (path: string, acceptEncoding: string) => Promise<StaticFile> | undefined {
  // Only what was there at the start is ever opened, whatever a path says.
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
    // A disk that fails may be well again.
    reading.catch(() => kept.delete(key))
    return reading
  }
}

/** Whether an `accept-encoding` takes it: `q=0` is a no. */
export function accepts(acceptEncoding: string, encoding: string): boolean {
  return acceptEncoding.split(',').some((one) => {
    const [name, ...parameters] = one.split(';').map((part) => part.trim())
    return name === encoding && !parameters.some((part) => /^q=0(\.0*)?$/.test(part))
  })
}
