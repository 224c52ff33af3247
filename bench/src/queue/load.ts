/** A load of the queue benchmark: jobs submitted, then delivered, on two servers in turns, and their figures side by side. */

import { type RowReport, rowOf } from '../format.ts'
import { inTurns } from '../in-turns.ts'
import { median, ratios } from '../pauses.ts'
import { processSeconds } from '../process-time.ts'
import { judged, type Measure, worstOf } from '../verdict.ts'
import { clientsOf, closeServer, PAYLOAD_BYTES, refuseRefused, runClients, type Server, TOPICS } from './servers.ts'

/** Beyond this share of a core the client was the limit. */
const CLIENT_BUSY = 0.85

/** How jobs are submitted, and to how many consumers they are delivered. */
export type Load = {
  readonly id: number
  readonly what: string
  readonly batch: number
  readonly connections: number
  readonly isNew: boolean
  readonly consumers: number
  readonly prefetch: number
  /** Shares of what the other server does. */
  readonly submitMin: number | undefined
  readonly deliverMin: number | undefined
  /** Processor time of a job, submitted and delivered, as a multiple of that of the other server. */
  readonly cpuMax: number | undefined
  /** The same for the database, where there is one. */
  readonly databaseMax?: number
  /** Jobs of a run, as a multiple of `--jobs`. */
  readonly share: number
}

/** Two servers under the same load. */
export type Sides = {
  readonly openOurs: () => Promise<Server>
  /** What ours is compared with, and its name in the report. */
  readonly openOther: () => Promise<Server>
  readonly other: string
}

/** What one run of a load took, on one server. */
type Figures = {
  readonly submitPerSecond: number
  readonly deliverPerSecond: number
  /** Microseconds of the server for a job, submitted and delivered. */
  readonly cpuMicros: number
  /** The same of its database. */
  readonly databaseMicros: number | undefined
  /** Share of a core that the client used while submitting, and delivering. */
  readonly submitClient: number
  readonly deliverClient: number
}

/** Runs a load on both in turns, so many rounds, and compares their medians. */
export async function measureLoad(
  { jobs: usual, rounds }: { readonly jobs: number; readonly rounds: number },
  load: Load,
  { openOurs, openOther, other }: Sides,
  say: (text: string) => void,
): Promise<RowReport> {
  const jobs = Math.max(load.batch * TOPICS.length, Math.round(usual * load.share))
  const loads = {
    ours: (round: number) => runLoad(openOurs, load, jobs, `${round}o`),
    others: (round: number) => runLoad(openOther, load, jobs, `${round}f`),
  }
  const { ours, others } = await inTurns(rounds, loads, (round) => say(`${load.what}: round ${round} of ${rounds}`))
  const figures = { ours, others, other }
  const cpu = cpuMeasures('processor time', figures, (each) => each.cpuMicros, load.cpuMax)
  const isCpuMet = worstOf(cpu) === 'met'
  const submit = { pick: (each: Figures) => each.submitPerSecond, client: (each: Figures) => each.submitClient }
  const deliver = { pick: (each: Figures) => each.deliverPerSecond, client: (each: Figures) => each.deliverClient }
  const measures = [
    ...rateMeasures('submitted', figures, submit, load.submitMin, isCpuMet),
    ...rateMeasures('delivered', figures, deliver, load.deliverMin, isCpuMet),
    ...cpu,
    ...(ours.some(({ databaseMicros }) => databaseMicros !== undefined)
      ? cpuMeasures('in the database', figures, (each) => each.databaseMicros ?? each.cpuMicros, load.databaseMax)
      : []),
  ]
  return rowOf(load.id, load.what, measures)
}

type Compared = { readonly ours: readonly Figures[]; readonly others: readonly Figures[]; readonly other: string }
type Pick = (figures: Figures) => number

/**
 * The rate, and its share of the other's with the smallest and largest of all rounds. Where the client was the limit of
 * ours, the rate is that of the client, and processor time decides.
 */
function rateMeasures(
  name: string,
  { ours, others, other }: Compared,
  { pick, client }: { readonly pick: Pick; readonly client: Pick },
  min: number | undefined,
  isCpuMet: boolean,
): Measure[] {
  const value = median(ours.map(pick))
  const baseline = { name: other, value: median(others.map(pick)) }
  const { value: part, why: spread } = ratios(ours.map(pick), others.map(pick))
  const share = { name: `${name}: share of the ${other}`, value: part * 100, unit: '%', why: spread } as const
  return [
    { name, value, unit: '/s', baseline },
    min === undefined ? share : withinClient(judged({ ...share, target: { atLeast: min * 100 } })),
  ]

  function withinClient(measure: Measure): Measure {
    const used = median(ours.map(client))
    if (measure.verdict === 'met' || !isCpuMet || used <= CLIENT_BUSY) return measure
    const why = `the client was the limit, with ${used.toFixed(2)} of a core: processor time decides; ${spread}`
    return { ...measure, verdict: 'met', why }
  }
}

function cpuMeasures(name: string, { ours, others, other }: Compared, pick: Pick, max: number | undefined): Measure[] {
  const value = median(ours.map(pick))
  const baseline = { name: other, value: median(others.map(pick)) }
  const times = ratios(ours.map(pick), others.map(pick)).value
  const ratio = { name: `${name} over the ${other}`, value: times, unit: '×' } as const
  return [
    { name: `${name} of a job`, value, unit: 'µs', baseline },
    max === undefined ? ratio : judged({ ...ratio, target: { atMost: max } }),
  ]
}

async function runLoad(open: () => Promise<Server>, load: Load, jobs: number, run: string): Promise<Figures> {
  const server = await open()
  try {
    const at = clientsOf(server)
    const { batch, connections, isNew, consumers, prefetch } = load
    const stamp = `${run}-${load.id}-${Date.now().toString(36)}`
    const [cpuBefore, databaseBefore] = [processSeconds(server.program.pid), server.databaseSeconds?.()]
    const submitted = await runClients({
      ...at,
      kind: 'submit',
      jobs,
      batch,
      connections,
      isNew,
      payloadBytes: PAYLOAD_BYTES,
      run: stamp,
    })
    refuseRefused(submitted)
    const delivered = await runClients({ ...at, kind: 'deliver', jobs, consumers, prefetch })
    await server.settle?.()
    const micros = (seconds: number) => (seconds / jobs) * 1e6
    const databaseAfter = server.databaseSeconds?.()
    return {
      submitPerSecond: (jobs / submitted.ms) * 1000,
      deliverPerSecond: (jobs / delivered.ms) * 1000,
      cpuMicros: micros(processSeconds(server.program.pid) - cpuBefore),
      databaseMicros:
        databaseAfter === undefined || databaseBefore === undefined
          ? undefined
          : micros(databaseAfter - databaseBefore),
      submitClient: (submitted.cpuSeconds * 1000) / submitted.ms,
      deliverClient: (delivered.cpuSeconds * 1000) / delivered.ms,
    }
  } finally {
    await closeServer(server)
  }
}
