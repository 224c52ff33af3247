import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { takePort } from '@vacancy/testkit/free-port'
import { temporaryFolder } from '@vacancy/testkit/node'
import { expect, test } from 'vitest'
import { freePort, lastLines } from './launch.ts'

test('the last lines of a log, which may have been removed or emptied while its program ran', () => {
  const log = join(temporaryFolder(), 'n1.log')
  expect(lastLines(log, 12)).toEqual([])
  writeFileSync(log, 'started\n\n{"level":"info"}\nfailed\n')
  expect(lastLines(log, 0)).toEqual(['started', 'failed'])
  expect(lastLines(log, 8)).toEqual(['failed'])
  // It was emptied: it had 1,000 bytes.
  expect(lastLines(log, 1_000)).toEqual(['started', 'failed'])
  expect(lastLines(log, 0, { lines: 2, isRaw: true })).toEqual(['{"level":"info"}', 'failed'])
})

test('a free port is used as requested', async () => {
  const { port, close } = await takePort()
  close()

  expect(await freePort('127.0.0.1', port)).toBe(port)
})

test('for a taken port the next free one is given', async () => {
  const taken = await takePort()

  const port = await freePort('127.0.0.1', taken.port)

  expect(port).toBeGreaterThan(taken.port)
  taken.close()
})

test('a port that is already assigned is skipped', async () => {
  const { port, close } = await takePort()
  close()

  expect(await freePort('127.0.0.1', port, [port])).toBeGreaterThan(port)
})

test('for port 0 the system chooses a free one: programs that need to know it are started with it', async () => {
  const { close } = await takePort(await freePort('127.0.0.1', 0))
  close()
})

test('an address that is not of this machine is an error with the address in it', async () => {
  await expect(freePort('192.0.2.1', 7777)).rejects.toThrow('192.0.2.1:7777')
})
