import { expect, test } from 'vitest'
import { shardBriefOf } from '../features/shards/testing/shards.ts'
import { whyNoChange, whyNoWrite } from './quorum.ts'

const LOST = { state: 'quorum-lost', message: 'Quorum lost (1 of 3 voters answers, 2 needed)' } as const

test('without a quorum nothing is changed or written', () => {
  const lost = shardBriefOf({ ...LOST, leader: null })

  expect([whyNoChange(lost), whyNoWrite(lost)]).toEqual([LOST.message, LOST.message])
  expect([whyNoChange(shardBriefOf()), whyNoWrite(shardBriefOf())]).toEqual([undefined, undefined])
})

test('a leader that responds decides itself whether it can write', () => {
  const led = shardBriefOf({ ...LOST, leader: 'n1' })

  expect([whyNoChange(led), whyNoWrite(led)]).toEqual([LOST.message, undefined])
})
