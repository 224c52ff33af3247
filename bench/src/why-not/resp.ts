/** A connection to Redis: requests as arrays of bulk strings, replies in order (RESP2). */
import { connect, type Socket } from 'node:net'
import { failure } from '../failure.ts'

type Reply = Buffer | number | null | readonly Reply[]

export type RespConnection = {
  /** @returns the reply; rejects when it is an error */
  send(command: Uint8Array): Promise<Reply>
  close(): void
}

type Waiting = { resolve(reply: Reply): void; reject(error: Error): void }
/** An error reply, so that one inside an array does not break the parser. */
class RespError extends Error {}
type Parsed = { readonly value: Reply | RespError; readonly end: number }

const CR_LF = '\r\n'
const LF = 10

export function encodeCommand(parts: readonly (string | number | Uint8Array)[]): Buffer {
  const pieces: Buffer[] = [Buffer.from(`*${parts.length}${CR_LF}`)]
  for (const part of parts) {
    const bytes = part instanceof Uint8Array ? part : Buffer.from(String(part))
    pieces.push(Buffer.from(`$${bytes.length}${CR_LF}`), Buffer.from(bytes), Buffer.from(CR_LF))
  }
  return Buffer.concat(pieces)
}

export function openResp(port: number): Promise<RespConnection> {
  return new Promise((resolve, reject) => {
    const waiting: Waiting[] = []
    const socket: Socket = connect({ host: '127.0.0.1', port, noDelay: true })
    const end = (reason: string) => {
      for (const each of waiting.splice(0)) each.reject(failure(reason))
    }
    let rest: Buffer = Buffer.alloc(0)
    socket.on('data', (chunk: Buffer) => {
      rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
      let at = 0
      for (let parsed = parseReply(rest, at); parsed; parsed = parseReply(rest, at)) {
        at = parsed.end
        const next = waiting.shift()
        if (parsed.value instanceof RespError) next?.reject(parsed.value)
        else next?.resolve(parsed.value)
      }
      rest = rest.subarray(at)
    })
    socket.once('error', reject)
    socket.once('close', () => end('Redis closed the connection'))
    socket.once('connect', () => {
      resolve({
        send: (command) =>
          new Promise((answer, refuse) => {
            waiting.push({ resolve: answer, reject: refuse })
            socket.write(command)
          }),
        close: () => socket.destroy(),
      })
    })
  })
}

/** @returns undefined while the reply is incomplete */
function parseReply(bytes: Buffer, start: number): Parsed | undefined {
  const lineEnd = bytes.indexOf(LF, start)
  if (lineEnd === -1) return undefined
  const line = bytes.toString('latin1', start + 1, lineEnd - 1)
  const after = lineEnd + 1
  switch (bytes.toString('latin1', start, start + 1)) {
    case '+':
      return { value: Buffer.from(line), end: after }
    case '-':
      return { value: new RespError(`Redis: ${line}`), end: after }
    case ':':
      return { value: Number(line), end: after }
    case '$': {
      const length = Number(line)
      if (length === -1) return { value: null, end: after }
      if (bytes.length < after + length + CR_LF.length) return undefined
      return { value: bytes.subarray(after, after + length), end: after + length + CR_LF.length }
    }
    case '*':
      return parseArray(bytes, after, Number(line))
    default:
      throw failure('Redis sent an invalid reply')
  }
}

function parseArray(bytes: Buffer, start: number, count: number): Parsed | undefined {
  const values: Reply[] = []
  let end = start
  for (let i = 0; i < count; i++) {
    const parsed = parseReply(bytes, end)
    if (!parsed) return undefined
    if (parsed.value instanceof RespError) return { value: parsed.value, end: parsed.end }
    values.push(parsed.value)
    end = parsed.end
  }
  return { value: values, end }
}
