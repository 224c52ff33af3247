import { afterEach, expect, test } from 'vitest'
import { createBell, createPipes, createReceiver, createSender, type PipeEnd, rings } from '../pipe.ts'
import { atRest, listen } from './attend.ts'
import { ANSWERS } from './serving-pipe.ts'

const open: PipeEnd[] = []

afterEach(() => {
  for (const { port } of open.splice(0)) port.close()
})

function pipes() {
  const ends = createPipes(createBell(), createBell())
  open.push(...ends)
  return ends
}

const message = (number: number, bytes: number) => {
  const buffer = new ArrayBuffer(bytes)
  new DataView(buffer).setUint32(0, number)
  return buffer
}
const numberOf = (buffer: ArrayBuffer) => new DataView(buffer).getUint32(0)

// Lengths that share the ring, leave its end unused, fill it, and pass it by.
test.each([[[4]], [[8, 12_000, 40]], [[16_368]], [[4, 16_000, 100_000, 64]], [[200_000]]])(
  'messages of %j bytes arrive whole and in order, however many wait',
  (lengths) => {
    const [from, to] = pipes()
    const send = createSender(from, ANSWERS)
    const receive = createReceiver(to, ANSWERS)
    const arrived: ArrayBuffer[] = []
    let sent = 0

    for (let waiting = 1; waiting < 30; waiting++) {
      for (let n = 0; n < waiting; n++) send(message(sent++, lengths[sent % lengths.length] ?? 4))
      receive((messages) => arrived.push(...messages))
    }

    expect(arrived.map(numberOf)).toEqual(Array.from({ length: sent }, (_, n) => n))
    expect(arrived.map(({ byteLength }) => byteLength)).toEqual(
      arrived.map((_, n) => lengths[(n + 1) % lengths.length]),
    )
  },
)

test('a message overtakes none that is being handled', () => {
  const [from, to] = pipes()
  const send = createSender(from, ANSWERS)
  const receive = createReceiver(to, ANSWERS)
  const arrived: number[] = []
  const handle = (messages: readonly ArrayBuffer[]) => {
    for (const each of messages) {
      arrived.push(numberOf(each))
      if (arrived.length < 9) send(message(arrived.length, arrived.length % 3 === 0 ? 100_000 : 8))
    }
  }

  send(message(0, 100_000))
  for (let taken = 1; taken > 0; ) taken = receive(handle)

  expect(arrived).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8])
})

test('a thread hears what is sent after it went back to its event loop', async () => {
  const [from, to] = pipes()
  const send = createSender(from, ANSWERS)
  const heard: number[] = []
  const turns = { wanted: 0, done: () => {} }
  listen(atRest(to.bell), to, ANSWERS, (each) => {
    heard.push(numberOf(each))
    if (heard.length === turns.wanted) turns.done()
  })

  for (turns.wanted = 1; turns.wanted <= 3; turns.wanted++) {
    const arrived = new Promise<void>((resolve) => {
      turns.done = resolve
    })
    send(message(turns.wanted, 8))
    await arrived
  }

  expect(heard).toEqual([1, 2, 3])
  expect(rings(to.bell)).toBe(3)
})
