import { setImmediate as turn } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { createBell, createPipes, createSender } from '../pipe.ts'
import { atRest, attendSoon, listen } from './attend.ts'
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

test('a thread that looks at its pipes without a message is rung where it waits, not through its event loop', async () => {
  const [sending, receiving] = createPipes(createBell(), createBell())
  onTestFinished(() => sending.port.close())
  const rests: boolean[] = []
  const settle = () => {
    rests.push(Atomics.load(receiving.bell, 1) === 1)
    return 0
  }
  const attention = { ...atRest(receiving.bell), settle }
  listen(attention, receiving, ANSWERS, () => undefined)
  expect(Atomics.load(receiving.bell, 1)).toBe(1)
  attendSoon(attention)
  await turn()
  expect(rests).toEqual([false, false])
})

test.each([
  ['come in time', 2],
  ['do not come', 1],
])('a round waits for messages that are likely to come, and no longer when they %s', (_, expected) => {
  const [sending, receiving] = createPipes(createBell(), createBell())
  onTestFinished(() => sending.port.close())
  const send = createSender(sending, ANSWERS)
  const heard: number[] = []
  const settled: number[] = []
  const attention = {
    ...atRest(receiving.bell),
    gathering: { trust: 2, waits: 0, endMs: 0 },
    gatherMs: () => {
      if (heard.length !== 1) return 0
      if (expected === 2) send(new ArrayBuffer(16))
      return 1
    },
    settle: () => {
      settled.push(heard.length)
      return 0
    },
  }
  send(new ArrayBuffer(8))
  listen(attention, receiving, ANSWERS, ({ byteLength }) => heard.push(byteLength))
  expect([settled[0], attention.gathering.trust]).toEqual([expected, expected === 2 ? 3 : 0])
})

test('a round does not wait longer while messages come that it does not wait for', () => {
  const [sending, receiving] = createPipes(createBell(), createBell())
  onTestFinished(() => sending.port.close())
  const send = createSender(sending, ANSWERS)
  const attention = {
    ...atRest(receiving.bell),
    gathering: { trust: 2, waits: 0, endMs: 0 },
    settled: 0,
    gatherMs: () => {
      if (attention.settled > 0) return 0
      send(new ArrayBuffer(8))
      return 1
    },
    settle: () => {
      attention.settled++
      return 0
    },
  }
  listen(attention, receiving, ANSWERS, () => undefined)
  expect([attention.settled > 0, attention.gathering.trust]).toEqual([true, 0])
})
