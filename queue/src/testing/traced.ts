/** System calls of a program, recorded by strace: found on this machine, or installed if possible. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { findOrInstall } from '@vacancy/testkit/installed'

export type SystemCall = {
  readonly name: string
  /** What its first argument is: a path, or a socket. */
  readonly target: string
  /** The begin of what was written. */
  readonly text: string
}

const TRACED = [
  'fsync',
  'fdatasync',
  'pwrite64',
  'pwritev',
  'write',
  'writev',
  'sendto',
  'sendmsg',
  'ftruncate',
  'unlink',
]
/** Of the text of a call. */
const TEXT_BYTES = 64

/**
 * Begin of a command line: whatever follows is started and recorded in a file. The program keeps its process id, so it
 * is signalled as always.
 *
 * @throws Error with instructions when there is no strace
 */
export function tracing(file: string): readonly string[] {
  const folder = findOrInstall({ programs: ['strace'], aptPackage: 'strace' })
  if (folder === undefined)
    throw new Error('These tests count system calls with strace: install it (Debian: apt-get install strace).')
  const only = ['-e', `trace=${TRACED.join()}`, '-e', 'signal=none', '-e', 'status=successful']
  return [join(folder, 'strace'), '-D', '-f', '-y', '-s', String(TEXT_BYTES), ...only, '-o', file]
}

/** Completed calls, in the order in which they ended. */
export function callsOf(file: string): SystemCall[] {
  const begun = new Map<string, string>()
  const calls: SystemCall[] = []
  for (const line of readFileSync(file, 'latin1').split('\n')) {
    const [, pid = '', rest = ''] = /^(\d+) +(.*)$/.exec(line) ?? []
    const resumed = /^<\.\.\. \w+ resumed>(.*)$/.exec(rest)
    if (rest.endsWith('<unfinished ...>')) begun.set(pid, rest.slice(0, -'<unfinished ...>'.length))
    const whole = resumed === null ? rest : `${begun.get(pid) ?? ''}${resumed[1]}`
    const [, name, target = '', text = ''] =
      /^(\w+)\((?:\d+<(.*?)>|"(?:[^"]*)")(?:, "((?:[^"\\]|\\.)*))?.*\) += \d/.exec(whole) ?? []
    if (name !== undefined) calls.push({ name, target, text })
  }
  return calls
}

export function isSync({ name }: SystemCall): boolean {
  return name === 'fsync' || name === 'fdatasync'
}
