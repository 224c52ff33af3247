import { expect, it } from 'vitest'
import { failoverQueue } from './failover.ts'

it('a killed, frozen or cut-off owner of four partitions loses no accepted job and writes nothing afterwards', {
  timeout: 240_000,
}, async () => {
  const { lost, strangers, accepted, secondsMax } = await failoverQueue({ rounds: 1, partitions: 4 })
  expect({ lost, strangers }).toEqual({ lost: [], strangers: 0 })
  expect(accepted).toBeGreaterThan(0)
  expect(Object.keys(secondsMax)).toEqual(['killed', 'frozen', 'cut'])
})
