/** A standalone Vacancy node with its default settings, through @vacancy/client. */
import { join } from 'node:path'
import { connect } from '@vacancy/client'
import { formatDay } from '@vacancy/shared'
import { type Bench, seedOf } from '../bench.ts'
import { failure } from '../failure.ts'
import { describeMachine } from '../machine.ts'
import { metric } from '../metrics.ts'
import { processSeconds } from '../process-time.ts'
import { PAGE_STAYS } from '../queries.ts'
import { metricsOf, startNode, stopNode } from '../running-node.ts'
import type { Connect, RunningSystem } from './system.ts'

/** Writes wait for the disk, which other work may delay. */
const DEADLINE_MS = 30_000

export async function startVacancy(bench: Bench): Promise<RunningSystem> {
  const seed = await seedOf(bench, 'random')
  // All else is the default: snapshots run, every write is synced.
  const config = { query_limit: 1000 }
  const node = await startNode({ dir: join(bench.dir, 'vacancy'), seed: seed.file, codecs: seed.codecs, config })
  return {
    name: 'vacancy',
    version: describeMachine().vacancy,
    target: { port: node.port, file: '' },
    loadSeconds: seed.seconds + node.startMs / 1000,
    bytes: async () => {
      const samples = await metricsOf(node)
      const used = (kind: string) => metric(samples, 'vacancy_memory_bytes', { kind }) ?? Number.NaN
      return used('packages') + used('indexes')
    },
    cpuSeconds: () => processSeconds(node.program.pid),
    stop: async () => {
      const fault = await stopNode(node)
      if (fault) throw failure(fault)
    },
  }
}

export const connectVacancy: Connect = async ({ port }, { names, properties }) => {
  const client = await connect({ port, connections: 1, deadlineMs: DEADLINE_MS })
  return {
    search: (fields) => async () => (await client.searchAvailability(fields)).map(({ propertyId }) => propertyId),
    page(fields) {
      const search = { ...fields, limit: PAGE_STAYS, order: 'total', count: true, compact: true } as const
      return async () => {
        const { properties: found, matches } = await client.searchPage(search)
        return { stays: found.map(({ propertyId, total }) => ({ id: propertyId, total: Number(total) })), matches }
      }
    },
    write({ property, roomType, day }, rooms) {
      const fields = {
        propertyId: properties.ids[property] ?? '',
        roomType: names.roomTypes[roomType] ?? '',
        date: formatDay(day),
        amount: 1,
      }
      const change = rooms === 1 ? client.increaseAvailability : client.decreaseAvailability
      return async () => void (await change(fields))
    },
    close: () => client.close(),
  }
}
