/**
 * Thread entry: decodes parts of words, one after the other, as words-pool.ts hands them out.
 */

import { parentPort } from 'node:worker_threads'
import { assert, VacancyError } from '@vacancy/shared'
import { realDisk } from '../env.ts'
import { decodePart } from './load.ts'
import { firstPlanes, unpackTables } from './schema.ts'
import { createWordsCoder, planWords } from './words.ts'
import type { FromWorker, Job, ToWorker } from './words-pool.ts'

const port = parentPort
assert(port, 'this file runs in a worker')

let decode: ((part: number) => void) | undefined

port.on('message', (message: ToWorker) => {
  const part = 'part' in message ? message.part : -1
  try {
    if ('job' in message) {
      decode = begin(message.job, message.scratch)
      return
    }
    assert(decode, 'a job comes before its parts')
    decode(part)
    port.postMessage({ part } satisfies FromWorker)
  } catch (error) {
    port.postMessage({ part, error: portable(error) } satisfies FromWorker)
  }
})

function begin(job: Job, scratch: number): (part: number) => void {
  const tables = unpackTables(job.tables)
  const words = { parts: planWords(tables).flat(), chunks: job.chunks }
  const coder = createWordsCoder(job.memory, scratch, { tables, ids: job.ids, roomTypes: job.roomTypes })
  const firstPlane = firstPlanes(tables)
  return (part) => decodePart(realDisk, { words, form: job.form, firstPlane }, coder, job.planeMap, part)
}

/** An error as plain data: classes do not survive a message. */
function portable(error: unknown): NonNullable<FromWorker['error']> {
  if (error instanceof VacancyError) return { code: error.code, fields: error.fields }
  return { reason: error instanceof Error ? (error.stack ?? error.message) : String(error) }
}
