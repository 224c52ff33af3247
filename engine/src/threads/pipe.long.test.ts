import { Worker } from 'node:worker_threads'
import { expect, test } from 'vitest'
import { createBell, createPipes, createSender } from '../pipe.ts'
import type { EchoOptions } from '../testing/pipe-echo.ts'
import { atRest, listen } from './attend.ts'
import { ANSWERS } from './serving-pipe.ts'

const MESSAGES = 10_000
/** The first passes the ring by: its receiver may have taken it before its sender rings. */
const LENGTHS = [60_000, 4, 8]

test.each([
  { inFlight: 1, lingerMs: 0, hasEventLoop: true },
  { inFlight: 1, lingerMs: 1, hasEventLoop: false },
  { inFlight: 20, lingerMs: 0, hasEventLoop: false },
  { inFlight: 20, lingerMs: 1, hasEventLoop: true },
])('two threads miss no message of each other: %j', async ({ inFlight, lingerMs, hasEventLoop }) => {
  const [end, other] = createPipes(createBell(), createBell())
  const worker = new Worker(new URL('../testing/pipe-echo.ts', import.meta.url), {
    workerData: { end: other, hasEventLoop } satisfies EchoOptions,
    transferList: [other.port],
  })
  const send = createSender(end, ANSWERS)
  const arrived: number[] = []
  let sent = 0
  const sendSome = () => {
    for (; sent < MESSAGES && sent - arrived.length < inFlight; sent++) {
      const message = new ArrayBuffer(LENGTHS[sent % LENGTHS.length] ?? 4)
      new DataView(message).setUint32(0, sent)
      send(message)
    }
  }
  await new Promise<void>((resolve) => {
    const attention = { ...atRest(end.bell), lingerMs, mayLinger: () => true }
    listen(attention, end, ANSWERS, (answer) => {
      arrived.push(new DataView(answer).getUint32(0))
      if (arrived.length === MESSAGES) resolve()
      else sendSome()
    })
    sendSome()
  })
  await worker.terminate()
  end.port.close()

  expect(arrived).toEqual(Array.from({ length: MESSAGES }, (_, n) => n))
})
