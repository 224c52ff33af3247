/** Processor time of a process as the kernel counts it: all its threads, in user and kernel mode (proc(5)). */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { NotMeasured } from './verdict.ts'

/** USER_HZ: the same 100 on every architecture that Node runs on. */
const TICKS_PER_SECOND = 100

/** Seconds. @throws NotMeasured where there is no /proc */
export function processSeconds(pid: number): number {
  const file = `/proc/${pid}/stat`
  if (!existsSync(file)) throw new NotMeasured('the processor time of a process requires /proc, which does not exist')
  return secondsOf(readFileSync(file, 'utf8'))
}

/** The same of a process and its children, those that ended included. @throws NotMeasured where there is no /proc */
export function familySeconds(pid: number): number {
  // A child that ends meanwhile moves its time to its parent: count again.
  for (;;) {
    const own = processSeconds(pid) + endedChildrenOf(readFileSync(`/proc/${pid}/stat`, 'utf8'))
    const children = childrenOf(pid)
    const times = children.map(secondsWhileAlive)
    const areAlive = times.every((seconds) => seconds !== undefined)
    if (areAlive && childrenOf(pid).join() === children.join()) return times.reduce((sum, time) => sum + time, own)
  }
}

/** Seconds by the name of the thread; threads of one name are added up. @throws NotMeasured where there is no /proc */
export function threadSeconds(pid: number): { [thread: string]: number } {
  const folder = `/proc/${pid}/task`
  if (!existsSync(folder)) throw new NotMeasured('the processor time of threads requires /proc, which does not exist')
  const seconds: { [thread: string]: number } = {}
  for (const id of readdirSync(folder)) {
    const name = readFileSync(`${folder}/${id}/comm`, 'utf8').trim()
    const nanoseconds = Number(readFileSync(`${folder}/${id}/schedstat`, 'utf8').split(' ')[0])
    seconds[name] = (seconds[name] ?? 0) + nanoseconds / 1e9
  }
  return seconds
}

function childrenOf(pid: number): number[] {
  const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
  return text.split(' ').filter(Boolean).map(Number)
}

function secondsWhileAlive(pid: number): number | undefined {
  try {
    return secondsOf(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    // It has ended.
    return undefined
  }
}

/** Fields 14 and 15, utime and stime; the name in field 2 may hold blanks and brackets itself. */
function secondsOf(stat: string): number {
  return secondsAt(stat, 11)
}

/** Fields 16 and 17, cutime and cstime. */
function endedChildrenOf(stat: string): number {
  return secondsAt(stat, 13)
}

function secondsAt(stat: string, first: number): number {
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[first]) + Number(fields[first + 1])) / TICKS_PER_SECOND
}
