import { spawn } from 'node:child_process'
import { expect, test } from 'vitest'
import { endedChildrenOf, familySeconds, processSeconds, secondsOf } from './process-time.ts'

test('user and kernel time are added up, whatever the process calls itself', () => {
  const rest = 'S 1 100 100 0 -1 4194304 5000 0 3 0 1234 66 250 50 20 0 12 0 999 1000000 2000'

  expect(secondsOf(`100 (node) ${rest}`)).toBe(13)
  expect(secondsOf(`100 (a (strange) name) ${rest}`)).toBe(13)
  expect(endedChildrenOf(`100 (node) ${rest}`)).toBe(3)
})

test.runIf(process.platform === 'linux')('children that end while their time is read are counted once', async () => {
  const ended = Array.from({ length: 20 }, () => new Promise((resolve) => spawn('true').once('close', resolve)))
  const during = familySeconds(process.pid)
  await Promise.all(ended)

  expect(during).toBeGreaterThan(0)
  expect(familySeconds(process.pid)).toBeGreaterThanOrEqual(processSeconds(process.pid) - 1)
})
