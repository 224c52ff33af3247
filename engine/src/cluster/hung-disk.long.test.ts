/** A disk that neither works nor fails: a sync that never returns (docs/design/storage.md#disk-errors). */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { hang, hangingDisk, recover } from '@vacancy/testkit/hanging-disk'
import {
  ask,
  getText,
  openClient,
  removeFolder,
  somewhere,
  startNodeProcess,
  temporaryFolder,
} from '@vacancy/testkit/node'
import { becomes, leaderOf, openShard, type Shard, type ShardNode, sameDigest } from '@vacancy/testkit/shard'
import { happens } from '@vacancy/testkit/until'
import { expect, test, vi } from 'vitest'
import { startWriters } from '../testing/shard-writer.ts'

vi.setConfig({ testTimeout: 900_000, hookTimeout: 120_000 })

const ROUNDS = 5
/** 200 writes a second, also where a reply takes a fifth of a second. */
const LOAD = { count: 40, everyMs: 200 }
/** What a node that hangs may need more for a minute of writes by others. */
const GROWTH_BYTES_MAX = 128 << 20

const reasonsOf = async (node: Pick<ShardNode, 'host' | 'apiPort'> | { apiPort: number }) => {
  const [status, text] = await getText(node, '/ready')
  const { reasons } = JSON.parse(text) as { reasons: { reason: string }[] }
  return { status, reasons: reasons.map(({ reason }) => reason) }
}

const isStuck = async (node: Parameters<typeof reasonsOf>[0]) => {
  const { status, reasons } = await reasonsOf(node)
  return status === 503 && reasons.includes('disk_stuck')
}

function residentBytes(pid: number): number {
  const [, kilobytes] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Number(kilobytes) * 1024
}

async function startHangable(): Promise<Shard> {
  const shard = await openShard()
  shard.startRegistry()
  shard.startResolver()
  for (const voter of shard.voters) shard.start(voter, { environment: hangingDisk(fileOf(shard, voter)) })
  await leaderOf(shard)
  return shard
}

const fileOf = (shard: Shard, node: string) => join(shard.folder, `hang-${node}`)

test(`the disk of the leader hangs, ${ROUNDS} times: another voter takes the writes, none is lost, the node comes back`, async () => {
  const shard = await startHangable()
  const writers = startWriters(shard, 'hotel_1', LOAD)
  try {
    for (let round = 0; round < ROUNDS; round++) {
      const sick = await leaderOf(shard)
      const others = shard.running().filter((node) => node !== sick)
      const before = residentBytes(sick.pid)
      hang(fileOf(shard, sick.name))

      await happens(`${sick.name} is not ready and says why`, [sick], () => isStuck(sick))
      const leader = await leaderOf(shard, others)
      const accepted = writers.acknowledged()
      await happens('writes go on', [leader, sick], () => writers.acknowledged() > accepted + 200)
      expect((await reasonsOf(leader)).status).toBe(200)
      expect(residentBytes(sick.pid) - before).toBeLessThan(GROWTH_BYTES_MAX)

      recover(fileOf(shard, sick.name))
      await becomes(sick, 'active_follower', 'active_leader')
      await happens(`${sick.name} is ready again`, [sick], async () => (await reasonsOf(sick)).status === 200)
    }
    await writers.stop()
    await sameDigest(shard.running())
    expect(await writers.differences(await leaderOf(shard))).toEqual([])
  } finally {
    await writers.stop().catch(() => undefined)
    await shard.close()
  }
})

test('a node alone whose disk hangs is not ready, refuses writes, answers reads, and continues when the disk answers', async () => {
  const folder = temporaryFolder()
  const file = join(folder, 'hang')
  const node = await startNodeProcess({ folder, environment: hangingDisk(file) })
  try {
    expect((await reasonsOf(node)).status).toBe(200)
    const [first, second] = [await openClient(node), await openClient(node)]
    for (const id of ['hotel_1', 'hotel_2', 'hotel_3'])
      expect(await ask(first, 'SETPROP', somewhere(id))).toMatchObject({ ok: true })
    hang(file)
    // At its deadline its outcome is unknown.
    expect(await ask(first, 'SETPROP', somewhere('hotel_4'))).toMatchObject({ ok: false, code: '408' })

    await happens('it is not ready and says why', [node], () => isStuck(node))
    expect(await ask(second, 'SETPROP', somewhere('hotel_5'))).toMatchObject({ ok: false, code: '429' })
    expect(await ask(second, 'PROPEXIST', { propertyId: 'hotel_3' })).toMatchObject({ ok: true })
    expect(await getText(node, '/healthz')).toEqual([200, 'active'])

    recover(file)
    await happens('it is ready again', [node], async () => (await reasonsOf(node)).status === 200)
    expect(await ask(first, 'DELPROP', { propertyId: 'hotel_4' })).toMatchObject({ ok: true })
    expect((await node.stop()).code).toBe(0)
  } finally {
    recover(file)
    removeFolder(folder)
  }
})
