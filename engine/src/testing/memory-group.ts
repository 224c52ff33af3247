/** A control group that limits the memory of processes, as a container does. */

import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { until } from '@vacancy/testkit/until'

export type MemoryGroup = {
  /** Command prefix that becomes a process of the group. */
  readonly wrapper: readonly string[]
  /** Processes that the kernel has killed because the limit was reached. */
  readonly kills: () => number
  readonly remove: () => Promise<unknown>
}

/** @returns undefined where this process may not make one */
export function makeMemoryGroup(bytes: number): MemoryGroup | undefined {
  const groups = readFileSync('/proc/self/cgroup', 'utf8')
  const [, earlier] = /^\d+:memory:(.*)$/m.exec(groups) ?? []
  const [, unified = '/'] = /^0::(.*)$/m.exec(groups) ?? []
  const name = `vacancy-${process.pid}-${bytes}`
  // A group of the unified hierarchy that has processes gives its own no limits.
  const folder =
    earlier === undefined
      ? join('/sys/fs/cgroup', dirname(unified), name)
      : join('/sys/fs/cgroup/memory', earlier, name)
  const [limit, swap, events] =
    earlier === undefined
      ? ['memory.max', 'memory.swap.max', 'memory.events']
      : ['memory.limit_in_bytes', 'memory.memsw.limit_in_bytes', 'memory.oom_control']
  try {
    mkdirSync(folder)
    writeFileSync(join(folder, limit), `${bytes}`)
    if (existsSync(join(folder, swap))) writeFileSync(join(folder, swap), earlier === undefined ? '0' : `${bytes}`)
  } catch {
    if (existsSync(folder)) rmdirSync(folder)
    return undefined
  }
  return {
    wrapper: ['sh', '-c', 'echo $$ > "$0" && exec "$@"', join(folder, 'cgroup.procs')],
    kills: () => Number(/^oom_kill (\d+)$/m.exec(readFileSync(join(folder, events), 'utf8'))?.[1]),
    // A process that was just killed stays in it for a moment.
    remove: () => until('the control group is empty', () => rmdirSync(folder) === undefined),
  }
}
