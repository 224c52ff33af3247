// What would make a command fail minutes later, found before anything is installed or built: one line with the cause and
// the way out. Plain JavaScript without dependencies: runs on Node 20.
import { accessSync, constants, existsSync, statfsSync, statSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { userInfo } from 'node:os'
import path from 'node:path'
import { installFault } from './install.mjs'

const GB = 1e9
/** What `npm ci` and the build write, and the sample data of a start with logs and snapshots of its nodes. */
const PACKAGES_BYTES = 1.2 * GB
const DATA_BYTES = 0.8 * GB
const LOOPBACK = '127.0.0.1'
const CONNECT_MS = 5_000

/**
 * @param root of the clone
 * @param args of the command, of which `--dir` is looked at
 * @param dataDir where the command writes sample data without `--dir`; undefined when it writes none
 * @returns what stands in the way, in one line; '' for nothing
 */
export async function preflightFault(root, args, dataDir) {
  const dir = dataDir === undefined ? root : path.resolve(root, dirOf(args) ?? dataDir)
  return faultOf({
    root,
    dir,
    rootFault: folderFault(root),
    dirFault: folderFault(dir),
    needsPackages: installFault(root) !== '',
    needsData: dataDir !== undefined && !existsSync(dir),
    freeBytes: freeBytesAt,
    hasLoopback: await canConnect(),
  })
}

/** @param facts about the machine, as `preflightFault` gathers them */
export function faultOf({ root, dir, rootFault, dirFault, needsPackages, needsData, freeBytes, hasLoopback }) {
  if (/[#?]/.test(root))
    return `${root}: tools of the build read "#" and "?" in a path as part of a URL. Move the clone to a path without them.`
  if (rootFault !== '')
    return `${rootFault} The clone is written to by the install and the build: clone it where you may write.`
  if (dirFault !== '') return `${dirFault} Choose another folder with --dir.`
  const fault = spaceFault(
    [
      [root, needsPackages ? PACKAGES_BYTES : 0, 'packages and build'],
      [dir, needsData ? DATA_BYTES : 0, 'sample data'],
    ],
    freeBytes,
  )
  if (fault !== '') return fault
  if (!hasLoopback)
    return `${LOOPBACK} cannot be used: all programs of this command listen there. Bring the loopback interface up (ip link set lo up), with IPv4.`
  return ''
}

/** Places on one disk need their space together. */
function spaceFault(needs, freeBytes) {
  const disks = new Map()
  for (const [place, bytes, what] of needs) {
    if (bytes === 0) continue
    const { disk, free } = freeBytes(place)
    const found = disks.get(disk) ?? { free, bytes: 0, parts: [], place }
    disks.set(disk, { ...found, bytes: found.bytes + bytes, parts: [...found.parts, `${inGB(bytes)} for ${what}`] })
  }
  for (const { free, bytes, parts, place } of disks.values()) {
    if (free < bytes)
      return `${place}: ${inGB(free)} are free, and ${parts.join(' and ')} are needed. Free some space, or use another disk.`
  }
  return ''
}

const inGB = (bytes) => `${(bytes / GB).toFixed(1)} GB`

/** The value of `--dir DIR` or `--dir=DIR`; undefined without it. */
function dirOf(args) {
  const at = args.findIndex((arg) => arg === '--dir' || arg.startsWith('--dir='))
  if (at < 0) return undefined
  return (args[at] === '--dir' ? args[at + 1] : args[at].slice('--dir='.length)) || undefined
}

/** Why nothing can be written to a folder, which need not exist yet. */
function folderFault(folder) {
  const there = nearest(folder)
  const found = statSync(there)
  if (!found.isDirectory()) return `${there} is a file, not a folder.`
  try {
    accessSync(there, constants.W_OK | constants.X_OK)
    return ''
  } catch (error) {
    if (error.code === 'EROFS') return `${there} is on a file system that is mounted read-only.`
    const { uid, username } = userInfo()
    return `${there} is not writable for ${username}${found.uid === uid ? '' : `: it belongs to user ${found.uid}`}.`
  }
}

/** The folder itself, or the closest one above it that exists. */
function nearest(folder) {
  let at = folder
  while (!existsSync(at) && path.dirname(at) !== at) at = path.dirname(at)
  return at
}

function freeBytesAt(place) {
  const there = nearest(place)
  const { bsize, bavail } = statfsSync(there)
  return { disk: statSync(there).dev, free: bsize * bavail }
}

/** Where the interface is down, listening alone succeeds. */
function canConnect() {
  return new Promise((resolve) => {
    const server = createServer((socket) => socket.destroy())
    const end = (socket, isGood) => {
      socket.destroy()
      server.close(() => resolve(isGood))
    }
    server.once('error', () => resolve(false))
    server.listen(0, LOOPBACK, () => {
      const socket = connect(server.address().port, LOOPBACK, () => end(socket, true))
      socket.on('error', () => end(socket, false)).setTimeout(CONNECT_MS, () => end(socket, false))
    })
  })
}
