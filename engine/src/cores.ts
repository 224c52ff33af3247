/**
 * The cores that this process may use: those of its affinity, and no more than the quotas of its control groups, which
 * count rounded up: with one and a half cores two threads can work. Node rounds them down, or misses them.
 */

import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'

/** Text of a file; '' when it cannot be read. */
type Read = (file: string) => string

/** At least 1. */
export function usableCores(read: Read = textOf): number {
  const allowed = /^Cpus_allowed_list:\s*(\S+)$/m.exec(read('/proc/self/status'))?.[1]
  if (allowed === undefined) return availableParallelism()
  return Math.max(1, Math.min(countOf(allowed), Math.ceil(quotaOf(read))))
}

/** Of a list like `0-3,8`. */
function countOf(list: string): number {
  return list.split(',').reduce((sum, range) => {
    const [first = 0, last = first] = range.split('-').map(Number)
    return sum + last - first + 1
  }, 0)
}

/** In cores; infinite without one. */
function quotaOf(read: Read): number {
  const quotas = read('/proc/self/cgroup')
    .split('\n')
    .flatMap((line) => {
      const [, controllers = '', path] = /^\d+:([^:]*):(\/.*)$/.exec(line) ?? []
      if (path === undefined) return []
      if (controllers === '')
        return foldersOf(['', '/unified'], path).map((folder) => quotaIn(read(`${folder}/cpu.max`)))
      if (!controllers.split(',').includes('cpu')) return []
      return foldersOf([`/${controllers}`, '/cpu'], path).map((folder) =>
        quotaIn(`${read(`${folder}/cpu.cfs_quota_us`)} ${read(`${folder}/cpu.cfs_period_us`)}`),
      )
    })
  return Math.min(Number.POSITIVE_INFINITY, ...quotas)
}

/** The group and those above it. Within a container the first that exists is its own. */
function foldersOf(mounts: readonly string[], path: string): string[] {
  const names = path.split('/').filter((name) => name !== '')
  return mounts.flatMap((mount) =>
    Array.from({ length: names.length + 1 }, (_, n) => [`/sys/fs/cgroup${mount}`, ...names.slice(0, n)].join('/')),
  )
}

/** @param text quota and period in microseconds; a quota of `max` or −1 is none */
function quotaIn(text: string): number {
  const [, quota, period] = /^(\d+)\s+(\d+)\s*$/.exec(text) ?? []
  return quota === undefined || Number(period) === 0 ? Number.POSITIVE_INFINITY : Number(quota) / Number(period)
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'latin1')
  } catch {
    // Another system, or no free descriptor: the system is asked in another way.
    return ''
  }
}
