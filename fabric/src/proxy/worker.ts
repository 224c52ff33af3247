/** One of the threads that serve the same ports: see workers.ts. */

import { parentPort, workerData } from 'node:worker_threads'
import { assert, VacancyError } from '@vacancy/shared'
import type { RunningProxy, Snapshot, Team } from './proxy.ts'
import { openServing, proxyLog, type Serving } from './serve.ts'
import type { FromWorker, ToWorker, WorkerData } from './workers.ts'

const port = parentPort
assert(port, 'this is the entry of a thread')
const send = (message: FromWorker): void => port.postMessage(message)
const { size, ...options } = workerData as WorkerData
const waiting = new Map<number, (snapshots: readonly Snapshot[] | undefined) => void>()
let nextId = 1

const team: Team = {
  size,
  snapshots: () =>
    new Promise((resolve, reject) => {
      const id = nextId++
      waiting.set(id, (snapshots) => {
        if (snapshots) resolve(snapshots)
        else reject(new Error('a worker did not report its counts in time'))
      })
      send({ kind: 'collect', id })
    }),
}

try {
  const serving = openServing(options)
  const running = await serving.start(team)
  port.on('message', (message: ToWorker) => onMessage(message, serving, running))
  send({ kind: 'serving' })
} catch (error) {
  // The class of an error is lost between threads, and with it the exit code.
  if (!(error instanceof VacancyError)) throw error
  send({ kind: 'failed', code: error.code, fields: error.fields })
}

function onMessage(message: ToWorker, serving: Serving, running: RunningProxy): void {
  switch (message.kind) {
    case 'snapshot':
      return send({ kind: 'snapshot', id: message.id, snapshot: running.snapshot() })
    case 'all':
      waiting.get(message.id)?.(message.snapshots)
      waiting.delete(message.id)
      return
    case 'reload':
      return reload(serving)
    case 'stop':
      // What is left in this thread, such as a file that is watched, must not hold it up.
      return void serving.stop().finally(() => process.exit())
  }
}

function reload(serving: Serving): void {
  try {
    serving.reload()
  } catch (error) {
    proxyLog(options).error({ err: error }, 'reload failed, keeping the previous settings')
  }
}
