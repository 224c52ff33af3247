import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { readingInto } from './reading-into.ts'

async function connected(buffer: Buffer): Promise<{ client: Socket; socket: Socket }> {
  const server = createServer({ pauseOnConnect: true }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1')
  const [accepted] = await once(server, 'connection')
  const socket = readingInto(buffer, accepted)
  onTestFinished(() => {
    client.destroy()
    socket.destroy()
    server.close()
  })
  return { client, socket }
}

test('tcp_recv_buffer_size: an accepted socket reads so many bytes at once, and notices the end', async () => {
  const buffer = Buffer.alloc(1_000)
  const { client, socket } = await connected(buffer)
  const sent = Buffer.from(Array.from({ length: 10_000 }, (_, i) => i % 251))
  const received: Buffer[] = []
  socket.on('data', (chunk: Buffer) => {
    expect(chunk.buffer).toBe(buffer.buffer)
    received.push(Buffer.from(chunk))
  })

  client.end(sent)
  await once(socket, 'end')

  expect(Buffer.concat(received)).toEqual(sent)
  expect(Math.max(...received.map(({ length }) => length))).toBeLessThanOrEqual(1_000)
})

test('a paused socket reads nothing until it goes on, and writes meanwhile', async () => {
  const { client, socket } = await connected(Buffer.alloc(10))
  const received: string[] = []
  socket.on('data', (chunk: Buffer) => {
    received.push(chunk.toString())
    socket.pause()
    socket.write(`${received.length}`)
  })

  client.write('0123456789abcdef')
  expect(String((await once(client, 'data'))[0])).toBe('1')
  expect(received).toEqual(['0123456789'])
  expect(socket.bytesRead).toBe(10)

  socket.resume()
  expect(String((await once(client, 'data'))[0])).toBe('2')
  expect(received).toEqual(['0123456789', 'abcdef'])
})
