import { connect, createServer, type Socket } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { OPEN, openRelay } from './relay.ts'
import { until } from './until.ts'

const HOST = '127.0.0.1'

async function portOf(server: ReturnType<typeof createServer>): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, HOST, () => resolve()))
  return (server.address() as { port: number }).port
}

/** A listener that answers each chunk with itself, behind a link, and a connection through it. */
async function linked() {
  const seen: string[] = []
  const echo = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.on('data', (chunk) => {
      seen.push(chunk.toString())
      socket.write(chunk)
    })
  })
  const target = { host: HOST, port: await portOf(echo) }
  const link = await openRelay(target)
  const { at } = link
  const heard: string[] = []
  let end = ''
  const socket: Socket = connect(at)
  socket.on('data', (chunk) => heard.push(chunk.toString()))
  socket.on('error', (error: NodeJS.ErrnoException) => {
    end = error.code ?? ''
  })
  await new Promise((resolve) => socket.once('connect', resolve))
  onTestFinished(async () => {
    socket.destroy()
    await link.close()
    echo.close()
  })
  return { link, at, socket, seen: () => seen.join(''), heard: () => heard.join(''), end: () => end }
}

test('bytes go both ways, also late and slowly, and in their order', async () => {
  const { link, socket, heard } = await linked()
  const long = 'x'.repeat(4_000)

  link.set({ ...OPEN, delayMs: 5, bytesPerSecond: 1_000_000 })
  socket.write('one')
  socket.write(long)
  socket.write('two')

  await until('all came back', () => heard().length === long.length + 6)
  expect(heard()).toBe(`one${long}two`)
})

test('a direction that is held delivers nothing until it is let go', async () => {
  const { link, socket, seen, heard } = await linked()

  link.set({ ...OPEN, holdsBackward: true })
  socket.write('hello')
  await until('it arrived', () => seen() === 'hello')
  link.set({ ...OPEN, holdsForward: true })
  await until('the answer arrived', () => heard() === 'hello')
  socket.write(' again')
  link.set({ ...OPEN, holdsForward: true, holdsBackward: true })
  expect(seen()).toBe('hello')
  link.set(OPEN)

  await until('the rest arrived', () => heard() === 'hello again')
})

test('a reset ends connections, and a link that does not listen refuses new ones', async () => {
  const { link, at, end } = await linked()

  link.reset()
  await until('the connection is reset', () => end() === 'ECONNRESET')
  await link.listen(false)
  const refused = connect(at)
  const code = await new Promise((resolve) =>
    refused.once('error', (error: NodeJS.ErrnoException) => resolve(error.code)),
  )
  await link.listen(true)

  expect(code).toBe('ECONNREFUSED')
  const again = connect(at)
  await new Promise((resolve) => again.once('connect', resolve))
  again.destroy()
})

test('a cut relay accepts connections and bytes, and delivers them once it is mended', async () => {
  const { link, at, socket, heard } = await linked()
  socket.write('one')
  await until('the first bytes are back', () => heard() === 'one')

  link.cut()
  socket.write('two')
  const meanwhile = connect(at)
  onTestFinished(() => void meanwhile.destroy())
  let echoed = ''
  meanwhile.on('data', (chunk) => {
    echoed += chunk
  })
  await new Promise((resolve) => meanwhile.once('connect', resolve))
  meanwhile.write('three')
  expect([heard(), echoed]).toEqual(['one', ''])

  link.mend()
  await until('all bytes are back', () => heard() === 'onetwo' && echoed === 'three')
})

test('the end of a connection during a cut arrives after it', async () => {
  const { link, socket } = await linked()
  link.cut()
  const ended = new Promise((resolve) => socket.once('end', resolve))

  socket.end()
  link.mend()

  await ended
})
