/**
 * Thread entry: encodes or decodes parts of words, one after the other, as words-pool.ts hands them out.
 */

import { parentPort } from 'node:worker_threads'
import { assert, VacancyError } from '@vacancy/shared'
import { realDisk } from '../env.ts'
import { decodePart, type PlacedChunk } from './load.ts'
import { firstPlanes, unpackTables } from './shapes.ts'
import { createWordsCoder, type EncodedPart, encodeWords, planWords, type WordsPart } from './words.ts'
import type { FromWorker, Job, ToWorker } from './words-pool.ts'

const port = parentPort
assert(port, 'this file runs in a worker')

let run: ((part: number) => EncodedPart | undefined) | undefined

port.on('message', (message: ToWorker) => {
  const answer = answerTo(message)
  if (!answer) return
  const transfer = answer.encoded ? [answer.encoded.chunk.bytes.buffer as ArrayBuffer] : []
  port.postMessage(answer, transfer)
})

function answerTo(message: ToWorker): FromWorker | undefined {
  const part = 'part' in message ? message.part : -1
  try {
    if ('job' in message) {
      run = begin(message.job, message.scratch)
      return undefined
    }
    assert(run, 'a job comes before its parts')
    const encoded = run(message.part)
    return encoded ? { part, encoded } : { part }
  } catch (error) {
    if (error instanceof VacancyError) return { part, error: { code: error.code, fields: error.fields } }
    return { part, error: { reason: error instanceof Error ? (error.stack ?? error.message) : String(error) } }
  }
}

function begin(job: Job, scratch: number): (part: number) => EncodedPart | undefined {
  const tables = unpackTables(job.tables)
  const parts = planWords(tables).flat()
  const coder = createWordsCoder(job.memory, scratch, { tables, ids: job.ids, roomTypes: job.roomTypes })
  const firstPlane = firstPlanes(tables)
  if (job.kind === 'encode') {
    const words = (table: number, rowStart: number, _rows: number, addresses: Uint32Array): boolean => {
      const first = firstPlane[table] as number
      const nights = (firstPlane[table + 1] as number) - first
      for (let night = 0; night < nights; night++)
        addresses[night] = (job.words[first + night] as number) + rowStart * 8
      return true
    }
    return (part) => encodeWords(coder, parts[part] as WordsPart, job.codecsOrderedHash, words)
  }
  const words = { parts, chunks: job.chunks as readonly PlacedChunk[] }
  return (part) => {
    decodePart(realDisk, { words, form: job.form, firstPlane }, coder, job.planeMap, part)
    return undefined
  }
}
