/** Processor time of a process as the kernel counts it: all its threads, in user and kernel mode (proc(5)). */
import { existsSync, readFileSync } from 'node:fs'
import { NotMeasured } from './verdict.ts'

/** USER_HZ: the same 100 on every architecture that Node runs on. */
const TICKS_PER_SECOND = 100

/** Seconds. @throws NotMeasured where there is no /proc */
export function processSeconds(pid: number): number {
  const file = `/proc/${pid}/stat`
  if (!existsSync(file)) throw new NotMeasured('the processor time of a process requires /proc, which does not exist')
  return secondsOf(readFileSync(file, 'utf8'))
}

/** Fields 14 and 15, utime and stime; the name in field 2 may hold blanks and brackets itself. */
export function secondsOf(stat: string): number {
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND
}
