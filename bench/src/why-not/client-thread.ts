/** The thread of one or more clients; started by clients.ts. */
import { parentPort, workerData } from 'node:worker_threads'
import { createDataset } from '../dataset.ts'
import { createHistogram, type Histogram, record } from '../histogram.ts'
import { type FromClient, type Job, type Latencies, WRITERS_MAX } from './clients.ts'
import { CONNECT } from './connect.ts'
import type { Connection } from './system.ts'

async function runJob(job: Job): Promise<void> {
  const dataset = createDataset(job.spec)
  const open = async (count: number) =>
    await Promise.all(Array.from({ length: count }, () => CONNECT[job.system](job.target, dataset)))
  const [searchers, writers] = [await open(job.searchers), await open(job.writers)]
  const searching = searchers.map((connection, i) => searchesOf(connection, job, job.firstSearcher + i))
  const writing = writers.map((connection, i) => writesOf(connection, job, job.firstWriter + i))
  const latencies: Latencies = { searches: createHistogram(), writes: createHistogram(), requests: 0, cpuSeconds: 0 }
  const started = new Promise((resolve) => parentPort?.once('message', resolve))
  parentPort?.postMessage({ type: 'ready' } satisfies FromClient)
  await started
  const before = process.threadCpuUsage()
  const counts = await Promise.all([
    ...searching.map((requests) => loop(requests, latencies.searches, job)),
    ...writing.map((requests) => loop(requests, latencies.writes, job)),
  ])
  const { user, system } = process.threadCpuUsage(before)
  latencies.cpuSeconds = (user + system) / 1e6
  latencies.requests = counts.reduce((sum, count) => sum + count, 0)
  for (const connection of [...searchers, ...writers]) await connection.close()
  parentPort?.postMessage({ type: 'done', latencies } satisfies FromClient)
}

type Request = () => unknown

/** Connections begin at different searches, so that the same one does not run twice at once. */
function searchesOf(connection: Connection, { searches, asPages }: Job, place: number): Request[] {
  const first = (place * 7919) % searches.length
  const inTurn = [...searches.slice(first), ...searches.slice(0, first)]
  return inTurn.map((fields) => (asPages ? connection.page(fields) : connection.search(fields)))
}

/** Each room that is taken is given back by the next write. Each writer has nights of its own. */
function writesOf(connection: Connection, { bookings }: Job, place: number): Request[] {
  const own = bookings.filter((_, i) => i % WRITERS_MAX === place)
  return own.flatMap((booking) => [connection.write(booking, -1), connection.write(booking, 1)])
}

/** @returns the number of requests */
async function loop(requests: readonly Request[], latency: Histogram, { warmupMs, runMs }: Job): Promise<number> {
  const measuredFrom = performance.now() + warmupMs
  const stopAt = measuredFrom + runMs
  for (let count = 0; ; count++) {
    const begun = performance.now()
    // Pairs are completed: the next load finds the rooms that this one found.
    if (begun >= stopAt && count % 2 === 0) return count
    await requests[count % requests.length]?.()
    if (begun >= measuredFrom && begun < stopAt) record(latency, performance.now() - begun)
  }
}

await runJob(workerData as Job)
