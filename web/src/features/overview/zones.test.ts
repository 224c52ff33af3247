import type { ShardBrief } from '@vacancy/shared/contract'
import { expect, test } from 'vitest'
import { canFold, zonesOf } from './zones.ts'

const shard = (id: string, zone: string, over: Partial<ShardBrief> = {}): ShardBrief =>
  ({ id, zone, level: 'ok', state: 'healthy', slots: [], ...over }) as unknown as ShardBrief

test('zones and their shards are by name, numbers as numbers, and problems are listed apart', () => {
  const zones = zonesOf([
    shard('s1', 'eu-2'),
    shard('s2', 'eu-1', { level: 'crit', state: 'quorum-lost' }),
    shard('s10', 'eu-2'),
    shard('s3', 'eu-2', { level: 'info', state: 'standalone' }),
    shard('s4', 'eu-1'),
  ])

  expect(
    zones.map(({ zone, shards, problems }) => [zone, shards.map(({ id }) => id), problems.map(({ id }) => id)]),
  ).toEqual([
    ['eu-1', ['s2', 's4'], ['s2']],
    ['eu-2', ['s1', 's3', 's10'], []],
  ])
})

test('zones fold only where the racks would fill more than a window', () => {
  expect(canFold(Array.from({ length: 40 }))).toBe(false)
  expect(canFold(Array.from({ length: 41 }))).toBe(true)
})
