import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { startEcho } from './echo.ts'
import { createFrameScanner, scanFrames } from './frame-scanner.ts'

const REPLY_BYTES = 3000

/** Sends frames with these correlation ids in one write and answers with the ids of all replies and their bytes. */
function exchange(port: number, ids: readonly number[]): Promise<{ seen: number[]; bytes: number }> {
  const requests = ids.map((id) => {
    const frame = Buffer.alloc(40, 1)
    frame[0] = 0xff
    frame.writeUInt32LE(id, 1)
    frame.writeUInt32LE(31, 5)
    return frame
  })
  return new Promise((resolve, reject) => {
    const seen: number[] = []
    let bytes = 0
    const scanner = createFrameScanner()
    const socket = connect(port, '127.0.0.1', () => socket.write(Buffer.concat(requests)))
    socket.on('error', reject)
    socket.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      scanFrames(scanner, chunk, chunk.length, (id) => seen.push(id))
      if (seen.length < ids.length) return
      socket.destroy()
      resolve({ seen, bytes })
    })
  })
}

test('an echo on two threads answers each frame once, in order, with its prepared reply', async () => {
  const echo = await startEcho({ replyBytes: [REPLY_BYTES], threads: 2 })
  // More replies than one slab holds, on more connections than there are threads.
  const ids = Array.from({ length: 900 }, (_, i) => i * 4_771_711)
  const answers = await Promise.all([1, 2, 3, 4].map(() => exchange(echo.port, ids)))

  for (const { seen, bytes } of answers) {
    expect(seen).toEqual(ids)
    expect(bytes).toBe(ids.length * REPLY_BYTES)
  }
  expect(await echo.cpuSeconds()).toBeGreaterThan(0)
  echo.stop()
})

test('the threads of an echo answer each of its ports with the length of that port', async () => {
  const echo = await startEcho({ replyBytes: [REPLY_BYTES, 27], threads: 2 })
  const [long = 0, short = 0] = echo.ports
  const ids = Array.from({ length: 200 }, (_, i) => i)
  const answers = await Promise.all([long, short, long, short].map((port) => exchange(port, ids)))

  expect(long).not.toBe(short)
  expect(answers.map(({ bytes }) => bytes / ids.length)).toEqual([REPLY_BYTES, 27, REPLY_BYTES, 27])
  echo.stop()
})

test('an echo with a journal has all requests in it, one behind the other', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'vacancy-echo-'))
  const journal = join(dir, 'journal')
  const echo = await startEcho({ replyBytes: [27], threads: 1, journal })

  expect((await exchange(echo.port, [7, 8])).seen).toEqual([7, 8])
  expect((await exchange(echo.port, [9])).seen).toEqual([9])

  const bytes = readFileSync(journal)
  expect([0, 40, 80, 120].map((at) => [bytes[at], bytes.readUInt32LE(at + 1)])).toEqual([
    [0xff, 7],
    [0xff, 8],
    [0xff, 9],
    [0, 0],
  ])
  echo.stop()
  rmSync(dir, { recursive: true })
})
