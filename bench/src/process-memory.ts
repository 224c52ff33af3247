/** Resident memory of a process as the kernel counts it (proc(5)), and what of it is whose. */
import { existsSync, readFileSync } from 'node:fs'
import { NotMeasured } from './verdict.ts'

export type ResidentBytes = {
  resident: number
  /** Data, heaps and stacks. */
  anonymous: number
  /** Pages of programs and libraries: the kernel takes them back, and other processes of the same program share them. */
  file: number
}

/** @throws NotMeasured where the kernel does not report it */
export function residentBytes(pid: number): ResidentBytes {
  return residentOf(readFileSync(rollupOf(pid), 'utf8'))
}

/** Bytes, a page of several processes divided among them. @throws NotMeasured where the kernel does not report it */
export function proportionalBytes(pid: number): number {
  return rollupBytes(readFileSync(rollupOf(pid), 'utf8'), 'Pss')
}

/** Every page, counted; `VmRSS` in `status` is put together from what each thread has noted and may be megabytes off. */
function residentOf(rollup: string): ResidentBytes {
  const [resident, anonymous] = [rollupBytes(rollup, 'Rss'), rollupBytes(rollup, 'Anonymous')]
  return { resident, anonymous, file: resident - anonymous }
}

function rollupOf(pid: number): string {
  const file = `/proc/${pid}/smaps_rollup`
  if (!existsSync(file)) throw new NotMeasured('the memory of a process requires /proc, which does not exist')
  return file
}

function rollupBytes(rollup: string, name: string): number {
  const found = new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(rollup)
  if (!found) throw new NotMeasured(`the kernel does not report ${name} for processes`)
  return Number(found[1]) * 1024
}
