/**
 * The configured folder of this machine whose CSV files can be imported without an upload. Requested files must be
 * inside it, checked on the resolved real path.
 */
import type { Stats } from 'node:fs'
import { readdir, realpath, stat } from 'node:fs/promises'
import { isAbsolute, join, sep } from 'node:path'
import { problem } from '@vacancy/shared/api/errors'
import type { ProblemError } from '@vacancy/shared/api/route'
import { type FolderFile, IMPORT_LIMITS } from '@vacancy/shared/contract'

/** Maximum depth of nested folders. */
const DEPTH_MAX = 3
/** Maximum number of entries read, files and folders. */
const NAMES_MAX = 10_000
/** The writer of a younger file may not have finished. */
const RECENT_MS = 60_000
const TAKEN = /\.(?:csv|csv\.gz|gz)$/i

/** @throws ProblemError 404 without a folder, 503 when it cannot be read */
export async function listFolder(folder: string): Promise<{ files: FolderFile[]; more: boolean }> {
  const root = await rootOf(folder)
  const files: FolderFile[] = []
  let names = 0
  let more = false
  const look = async (within: string, depth: number): Promise<void> => {
    const entries = await readdir(join(root, within), { withFileTypes: true }).catch((cause: unknown) => {
      // An unreadable folder does not hide the others.
      if (depth > 0) return []
      throw unreadable(folder, cause)
    })
    entries.sort((a, b) => (a.name < b.name ? -1 : 1))
    for (const entry of entries) {
      if (entry.name.startsWith('.')) continue
      if (++names > NAMES_MAX || files.length >= IMPORT_LIMITS.folderFilesMax) {
        more = true
        return
      }
      const path = within === '' ? entry.name : `${within}/${entry.name}`
      if (entry.isDirectory()) {
        if (depth < DEPTH_MAX) await look(path, depth + 1)
      } else if (TAKEN.test(entry.name)) {
        const found = await fileIn(root, path)
        if (found) files.push({ path, ...shown(found.stats) })
      }
    }
  }
  await look('', 0)
  return { files, more }
}

function shown({ size, mtime }: Stats): Pick<FolderFile, 'bytes' | 'changedAt' | 'recent'> {
  const recent = Date.now() - mtime.getTime() < RECENT_MS
  return { bytes: size, changedAt: mtime.toISOString(), recent }
}

/** The real path of a file in the folder. @throws ProblemError 400, 404 */
export async function fileOf(folder: string, path: string): Promise<{ path: string; bytes: number }> {
  const root = await rootOf(folder)
  const refused = problem('no-such-file', {
    detail: `${path.slice(0, 200)} is not a CSV file in the import folder.`,
    field: 'path',
  })
  const isPlain = !isAbsolute(path) && !path.includes('\0') && !path.split(/[\\/]/).includes('..') && TAKEN.test(path)
  const found = isPlain ? await fileIn(root, path) : undefined
  if (!found) throw refused
  const { size: bytes } = found.stats
  if (bytes > 0 && bytes <= IMPORT_LIMITS.fileBytesMax) return { path: found.path, bytes }
  throw problem('wrong-size', {
    detail: `${path.slice(0, 200)} has ${bytes} bytes.`,
    field: 'path',
    hint: `A file has 1 to ${IMPORT_LIMITS.fileBytesMax} bytes.`,
  })
}

async function rootOf(folder: string): Promise<string> {
  if (folder === '') {
    throw problem('no-import-folder')
  }
  return await realpath(folder).catch((cause: unknown) => {
    throw unreadable(folder, cause)
  })
}

/** Undefined when it is not a file or outside of the folder. */
async function fileIn(root: string, path: string): Promise<{ path: string; stats: Stats } | undefined> {
  try {
    const real = await realpath(join(root, path))
    if (!real.startsWith(root.endsWith(sep) ? root : root + sep)) return undefined
    const stats = await stat(real)
    return stats.isFile() ? { path: real, stats } : undefined
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? ''
    // Deleted meanwhile, a broken or circular link, or unreadable: it cannot be imported.
    if (['ENOENT', 'ENOTDIR', 'ELOOP', 'EACCES', 'ENAMETOOLONG'].includes(code)) return undefined
    throw error
  }
}

function unreadable(folder: string, cause: unknown): ProblemError {
  return problem('folder-unreadable', { detail: `The import folder ${folder} cannot be read.`, cause })
}
