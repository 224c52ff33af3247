/**
 * Writers that verify acknowledgements: each increments rooms one by one with request keys, and repeats a write without
 * a reply, or with a refusal, at any node that accepts it. Afterwards each night must hold exactly the acknowledged
 * count: less is a lost write, more a duplicate.
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
/** Rooms per night before the next night is started; a night holds at most 255. */
const ROOMS = 200

export type Writers = {
  readonly acknowledged: () => number
  /** Resolves when each writer has a reply to its last write. */
  readonly stop: () => Promise<void>
  /** Reads every night; returns descriptions of differences. */
  readonly differences: (node: ShardNode) => Promise<string[]>
}

type Writer = { readonly room: string; readonly session: string; number: number; night: number; counts: number[] }

/** The target of writes: the same node until it refuses, then the next. */
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
      // No connection, or it was lost: try the next node.
      if (isStopped()) throw error
    }
    if (way.client) closeClient(way.client)
    way.client = undefined
    way.at++
    await pause()
  }
}

/**
 * Creates a property and counts until it is stopped. Each writer waits for a reply before its next write, and starts one
 * every `everyMs` at most: a rate that slow replies do not lower needs many writers.
 */
export function startWriters(
  shard: Shard,
  propertyId = 'hotel_1',
  { count = 4, everyMs = 0 }: { readonly count?: number; readonly everyMs?: number } = {},
): Writers {
  let isStopping = false
  let acknowledged = 0
  const writers: Writer[] = Array.from({ length: count }, (_, i) => ({
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
    for (let due = performance.now(); !isStopping; due += everyMs) {
      while (performance.now() < due && !isStopping) await pause()
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
