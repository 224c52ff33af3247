/** The number of cores changes on the machines of all voters at once (docs/design/http.md#core-count). */

import { spawnSync } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { EXIT } from '@vacancy/shared'
import { ask, closeClient, openClient } from '@vacancy/testkit/node'
import { becomes, leaderOf, type ShardNode, startShard } from '@vacancy/testkit/shard'
import { happens } from '@vacancy/testkit/until'
import { expect, test, vi } from 'vitest'
import { startWriters } from '../testing/shard-writer.ts'

vi.setConfig({ testTimeout: 600_000 })

const hasTaskset = spawnSync('taskset', ['--version']).status === 0 && availableParallelism() > 1
/** One that this process may use. */
const CORE = /: (\d+)/.exec(spawnSync('taskset', ['-cp', `${process.pid}`], { encoding: 'utf8' }).stdout)?.[1] ?? ''

async function canRead(node: ShardNode): Promise<boolean> {
  const client = await openClient(node)
  const { ok } = await ask(client, 'GETSEGMENTS', {})
  closeClient(client)
  return ok
}

test.skipIf(!hasTaskset)(
  'each voter ends once and is started again, one after another, while the others serve',
  async () => {
    const shard = await startShard({ config: { cpu_watch: true } })
    const writers = startWriters(shard)
    const left: string[] = []
    const away = new Set<string>()
    const faults: string[] = []
    /** Starts a voter again with the new cores, as a supervisor does. */
    const supervise = async (node: ShardNode): Promise<void> => {
      const { code } = await node.ended
      if (left.length === shard.voters.length) return
      left.push(node.name)
      if (code !== EXIT.coresChanged) faults.push(`${node.name} ended with ${code}`)
      if (away.size > 0) faults.push(`${node.name} ended while ${[...away]} was away`)
      away.add(node.name)
      const others = shard.running()
      const before = writers.acknowledged()
      const again = shard.start(node.name, { wrapper: ['taskset', '-c', CORE] })
      await happens('writes go on', others, () => writers.acknowledged() > before)
      for (const other of others) if (!(await canRead(other))) faults.push(`${other.name} cannot read`)
      await becomes(again, 'active_follower', 'active_leader')
      away.delete(node.name)
      watch(again)
    }
    const watch = (node: ShardNode) => void supervise(node).catch((error: unknown) => faults.push(`${error}`))
    try {
      const voters = shard.running()
      const leader = await leaderOf(shard)
      await happens('writes begin', voters, () => writers.acknowledged() > 0)
      for (const node of voters) watch(node)
      for (const { pid } of voters) expect(spawnSync('taskset', ['-acp', CORE, `${pid}`]).status).toBe(0)
      const areBack = () => left.length === voters.length && away.size === 0
      await happens('each has left and is back', voters, () => faults.length > 0 || areBack(), 300_000)

      expect(faults).toEqual([])
      expect([...left].sort()).toEqual([...shard.voters].sort())
      expect(left.at(-1)).toBe(leader.name)
      await writers.stop()
      expect(await writers.differences(await leaderOf(shard))).toEqual([])
      expect(shard.running()).toHaveLength(shard.voters.length)
    } finally {
      await writers.stop().catch(() => undefined)
      await shard.close()
    }
  },
)
