import { setImmediate as turn } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { createBell, createPipes, createSender } from '../pipe.ts'
import { atRest, listen } from './attend.ts'
import { ANSWERS } from './serving-pipe.ts'

test.each([
  ['soon', 1, false],
  ['late', 0, true],
])(
  'where rings come %s, a message does not lead to rest: a turn of the event loop does',
  async (_, trust, isResting) => {
    const [sending, receiving] = createPipes(createBell(), createBell())
    onTestFinished(() => sending.port.close())
    const heard: number[] = []
    createSender(sending, ANSWERS)(new ArrayBuffer(8))
    const attention = { ...atRest(receiving.bell), maySpin: () => true, spinner: { trust, waits: 0 } }
    listen(attention, receiving, ANSWERS, ({ byteLength }) => heard.push(byteLength))
    const rests = () => Atomics.load(receiving.bell, 1) === 1
    expect([heard, rests()]).toEqual([[8], isResting])
    await turn()
    expect(rests()).toBe(true)
  },
)
