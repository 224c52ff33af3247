/** Faults of a platform: components that are killed and started again, and such that stop for a while. */

import { setTimeout as wait } from 'node:timers/promises'
import type { Random } from '@vacancy/testkit/random'
import type { ComponentStatus } from '../../quickstart/src/platform/control.ts'

/** What is disturbed; leaders are nodes that lead their shard. */
const VICTIMS = ['leader', 'bridge', 'zone router', 'edge router', 'registry'] as const
type Victim = (typeof VICTIMS)[number]
const HOWS = ['kill', 'stop'] as const

export type Fault = { readonly how: (typeof HOWS)[number]; readonly victim: Victim }

const nameOf = ({ how, victim }: Fault): string => `${how} ${victim}`
export const FAULTS: readonly Fault[] = HOWS.flatMap((how) => VICTIMS.map((victim) => ({ how, victim })))

const DOWN_MS = { min: 500, more: 4_500 } as const
const STOPPED_MS = { min: 300, more: 5_700 } as const
const QUIET_MS = { min: 500, more: 2_500 } as const

/** The platform, as far as faults need it. */
export type Patient = {
  status(): Promise<readonly ComponentStatus[]>
  kill(name: string): Promise<unknown>
  restart(name: string): Promise<unknown>
}

/** Each fault once in a random order, then any. */
function* drawFaults(random: Random): Generator<Fault, never> {
  const first = [...FAULTS]
  while (first.length > 0) yield first.splice(random.below(first.length), 1)[0] as Fault
  for (;;) yield FAULTS[random.below(FAULTS.length)] as Fault
}

/**
 * Disturbs the platform, one fault after the other. What was killed is started again, and what was stopped continues,
 * before the next fault.
 *
 * @param pace multiplies all times
 * @param over ends it, after each fault has happened once
 * @returns how often each fault happened
 */
export async function runFaults(
  patient: Patient,
  random: Random,
  pace: number,
  over: AbortSignal,
  say: (line: string) => void,
): Promise<Map<string, number>> {
  const tally = new Map<string, number>(FAULTS.map((fault) => [nameOf(fault), 0]))
  const spanOf = ({ min, more }: { readonly min: number; readonly more: number }) =>
    Math.round(pace * (min + random.below(more)))
  for (const fault of drawFaults(random)) {
    if (over.aborted && [...tally.values()].every((count) => count > 0)) return tally
    const victims = victimsAmong(await patient.status(), fault.victim)
    const victim = victims[random.below(victims.length)]
    // A shard may have no leader just now.
    if (victim?.pid == null) {
      await wait(100)
      continue
    }
    tally.set(nameOf(fault), (tally.get(nameOf(fault)) ?? 0) + 1)
    const lastsMs = spanOf(fault.how === 'kill' ? DOWN_MS : STOPPED_MS)
    say(`${nameOf(fault)}: ${victim.name}, ${lastsMs} ms`)
    if (fault.how === 'kill') await patient.kill(victim.name)
    else process.kill(victim.pid, 'SIGSTOP')
    await wait(lastsMs)
    if (fault.how === 'kill') await patient.restart(victim.name)
    else process.kill(victim.pid, 'SIGCONT')
    await wait(spanOf(QUIET_MS))
  }
  return tally
}

const KINDS: { readonly [victim in Victim]: string } = {
  leader: 'node',
  bridge: 'bridge',
  'zone router': 'zone-router',
  'edge router': 'edge-router',
  registry: 'registry',
}

function victimsAmong(components: readonly ComponentStatus[], victim: Victim): readonly ComponentStatus[] {
  return components.filter(({ kind, text }) => kind === KINDS[victim] && (victim !== 'leader' || text === 'leads'))
}
