/**
 * Writers that know what they were answered: each counts rooms up one by one, every count with a request key, and
 * repeats one that had no answer, or a refusal, at whatever node takes it. So afterwards each night must hold exactly
 * what was acknowledged: less is a lost write, more a doubled one.
 */

import { randomBytes } from 'node:crypto'
import { type CommandName, encodeRequest, type Reply, type RequestFields } from '@vacancy/shared/wire'
import {
  answerTo,
  closeClient,
  dateIn,
  openClient,
  pause,
  readAnswer,
  somewhere,
  succeed,
  type WireClient,
} from '@vacancy/testkit/node'
import type { Shard, ShardNode } from '@vacancy/testkit/shard'

const ANSWER_MS = 2_000
const WRITERS = 4
/** Rooms of a night before the next one is begun; more than 255 do not go into one. */
const ROOMS = 200

export type Writers = {
  readonly acknowledged: () => number
  /** Ends when each has an answer to what it sent last. */
  readonly stop: () => Promise<void>
  /** Reads every night; the differences, in words. */
  readonly differences: (node: ShardNode) => Promise<string[]>
}

type Writer = { readonly room: string; readonly session: string; number: number; night: number; counts: number[] }

/** Where a write goes: the same node until it refuses, then the next. */
export type Way = { at: number; client: WireClient | undefined }

export async function write<Name extends CommandName>(
  shard: Shard,
  way: Way,
  command: Name,
  fields: RequestFields,
  isStopped: () => boolean,
): Promise<Reply<Name>> {
  for (;;) {
    const nodes = shard.running()
    const node = nodes[way.at % Math.max(1, nodes.length)]
    try {
      if (!node) throw new Error('no node runs')
      if (!way.client || way.client.isClosed) way.client = await openClient(node)
      const { client } = way
      const correlationId = client.nextId++
      const late = new Promise<undefined>((resolve) => setTimeout(() => resolve(undefined), ANSWER_MS).unref())
      const answer = answerTo(client, correlationId)
      client.socket.write(encodeRequest({ command, correlationId, fields }))
      const reply = readAnswer(client, command, await Promise.race([answer, late]))
      if (reply.ok || !['308', '503', '408', '429'].includes(reply.code)) return reply
    } catch (error) {
      // Nobody is there, or no longer: the next one.
      if (isStopped()) throw error
    }
    if (way.client) closeClient(way.client)
    way.client = undefined
    way.at++
    await pause()
  }
}

/** Makes a property and counts until it is told to stop. */
export function startWriters(shard: Shard, propertyId = 'hotel_1'): Writers {
  let isStopping = false
  let acknowledged = 0
  const writers: Writer[] = Array.from({ length: WRITERS }, (_, i) => ({
    room: `room_${i}`,
    session: randomBytes(16).toString('hex'),
    number: 1,
    night: 0,
    counts: [],
  }))
  const place = ({ room, night }: Pick<Writer, 'room' | 'night'>) => ({
    propertyId,
    date: dateIn(night),
    roomType: room,
  })
  const run = async (writer: Writer): Promise<void> => {
    const way: Way = { at: 0, client: undefined }
    const done = async (command: CommandName, fields: RequestFields) => {
      const key = { session: writer.session, requestNumber: writer.number++ }
      const reply = await write(shard, way, command, { ...fields, ...key }, () => false)
      if (!reply.ok) throw new Error(`${command} ${JSON.stringify(fields)}: ${JSON.stringify(reply)}`)
      acknowledged++
    }
    await done('SETPROP', somewhere(propertyId))
    while (!isStopping) {
      if (writer.counts.length === 0 || writer.counts[writer.night - 1] === ROOMS) {
        writer.night++
        writer.counts.push(0)
        const empty = { availability: 0, finalPrice: 100, rateFeatures: [] }
        await done('SETROOMPKG', { ...place(writer), ...empty })
        continue
      }
      await done('INCROOMAVL', { ...place(writer), amount: 1 })
      writer.counts[writer.night - 1] = writer.counts[writer.night - 1] + 1
    }
    if (way.client) closeClient(way.client)
  }
  const running = Promise.all(writers.map(run))
  running.catch(() => undefined)
  return {
    acknowledged: () => acknowledged,
    async stop() {
      isStopping = true
      await running
    },
    async differences(node) {
      const client = await openClient(node)
      const found: string[] = []
      for (const { room, counts } of writers) {
        for (const [i, wanted] of counts.entries()) {
          const at = place({ room, night: i + 1 })
          const { availability } = await succeed(client, 'GETPROPROOMDAY', at)
          if (availability !== wanted) found.push(`${room} night ${i + 1}: ${availability} instead of ${wanted}`)
        }
      }
      closeClient(client)
      return found
    },
  }
}
