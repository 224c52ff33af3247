/** The machine and the versions that a report's figures belong to. */
import { existsSync, readFileSync } from 'node:fs'
import { availableParallelism, cpus, loadavg, release, totalmem, type } from 'node:os'
import { join } from 'node:path'
import { commitOf } from '@vacancy/shared/node'
import { ROOT } from './programs.ts'

export type Machine = ReturnType<typeof describeMachine>

export function describeMachine() {
  return {
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    cores: availableParallelism(),
    memoryGb: Math.round(totalmem() / 2 ** 30),
    system: `${type()} ${release()}`,
    node: process.versions.node,
    v8: process.versions.v8,
    vacancy: String((JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: unknown }).version),
    commit: commitOf(ROOT),
    /** Processes that wanted a core when the report began, on average of a minute: other work on the machine. */
    loadBefore: loadavg()[0] ?? 0,
  }
}

const PRESSURE = '/proc/pressure/cpu'

/**
 * Starts to observe how often a thread waited for a core; the measurement waits with it.
 *
 * @returns a sentence with the result; nothing where the kernel does not count it
 */
export function cpuPressure(): () => string[] {
  if (!existsSync(PRESSURE)) return () => []
  const waitedMicros = () => Number(/^some .*total=(\d+)/m.exec(readFileSync(PRESSURE, 'utf8'))?.[1])
  const [micros, begun] = [waitedMicros(), performance.now()]
  return () => {
    const share = (waitedMicros() - micros) / 1000 / (performance.now() - begun)
    return [`Some process waited for a core during ${(share * 100).toFixed(0)} % of the time.`]
  }
}
