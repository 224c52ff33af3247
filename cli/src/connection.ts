/**
 * One connection to a node for programs that may not import the client: requests are pipelined, and replies matched by
 * correlation id. There are no retries.
 */

import { connect as connectTcp, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { type CodecList, createCodecList, dayOf, VacancyError, yearOf } from '@vacancy/shared'
import {
  type CommandName,
  createFrameSplitter,
  decodeReply,
  encodeLogin,
  encodeRequest,
  type FrameSink,
  type RequestFields,
  type Result,
  readLoginAnswer,
  splitFrames,
} from '@vacancy/shared/wire'

/** Maximum reply size. */
const REPLY_BYTES_MAX = 256 * 1024 * 1024

export type Address = {
  readonly host: string
  readonly port: number
  readonly token?: string | undefined
  /** Certificates to trust, PEM; `''` for those of the system. Without it the connection is not encrypted. */
  readonly tlsCa?: string | undefined
  /** Timeout of connecting, and of each reply. */
  readonly timeoutMs: number
}

/** An ERROR reply: the wire code and the node's message. */
type Refusal = { readonly ok: false; readonly code: string; readonly message: string }
type Answer = { readonly ok: true; readonly result: AnyResult } | Refusal

/** Any result, with the fields of all commands. */
export type AnyResult = Partial<
  Result<'SEARCHAVAIL'> &
    Result<'SEARCHPROP'> &
    Result<'GETSEGMENTS'> &
    Result<'PROPROOMLIST'> &
    Result<'PROPROOMDATELIST'> &
    Result<'GETPROPROOMDAY'> &
    Result<'PROPEXIST'> &
    Result<'SETROOMAVL'>
>

export type Connection = {
  /**
   * @throws VacancyError validation_error when a field does not fit, before anything is sent; failure without a reply
   */
  readonly send: (command: CommandName, fields: RequestFields) => Promise<Answer>
  readonly close: () => void
}

type Waiting = {
  readonly command: CommandName
  readonly answered: (answer: Answer) => void
  readonly failed: (error: VacancyError) => void
  readonly sentAtMs: number
}

/**
 * Connects, logs in when there is a token, and reads the codec list.
 *
 * @throws VacancyError connection_failed, or failure for an unexpected reply
 */
export async function openConnection(address: Address): Promise<Connection> {
  const name = `${address.host}:${address.port}`
  const socket = await connected(address, name)
  if (address.token !== undefined) await logIn(socket, address.token, address.timeoutMs)
  const waiting = new Map<number, Waiting>()
  let codecs: CodecList | undefined
  let correlationId = 0
  let isCorked = false

  const fail = (reason: string) => {
    socket.destroy()
    for (const { failed } of waiting.values()) failed(new VacancyError('failure', { reason: `${name}: ${reason}` }))
    waiting.clear()
  }
  const sink: FrameSink = {
    frame(bytes, start, end, id) {
      const request = waiting.get(id)
      if (!request) return
      waiting.delete(id)
      const context = { baseYear: yearOf(dayOf(Date.now())), codecs }
      try {
        request.answered(decodeReply(request.command, bytes.subarray(start, end), context))
      } catch (error) {
        if (!(error instanceof VacancyError)) throw error
        request.failed(error)
      }
    },
    refuse: (_, text) => fail(text),
    fatal: fail,
  }
  const splitter = createFrameSplitter({ payloadBytesMax: REPLY_BYTES_MAX, skipBytesMax: REPLY_BYTES_MAX })
  socket.on('data', (chunk: Buffer) => splitFrames(splitter, chunk, sink))
  socket.on('error', (error) => fail(error.message))
  socket.on('close', () => fail('the connection was closed'))
  const watch = setInterval(() => {
    const [oldest] = waiting.values()
    if (oldest && performance.now() - oldest.sentAtMs > address.timeoutMs) {
      fail(`no reply to ${oldest.command} within ${address.timeoutMs} ms`)
    }
  }, 100)
  // The socket keeps a program alive, its timer does not.
  watch.unref()

  const send = (command: CommandName, fields: RequestFields): Promise<Answer> => {
    correlationId = (correlationId + 1) >>> 0
    const id = correlationId
    const frame = encodeRequest({ command, correlationId: id, fields })
    if (socket.destroyed) {
      return Promise.reject(new VacancyError('failure', { reason: `${name}: the connection was closed` }))
    }
    // Requests of one turn are sent in one write.
    if (!isCorked) {
      isCorked = true
      socket.cork()
      setImmediate(() => {
        isCorked = false
        socket.uncork()
      })
    }
    socket.write(frame)
    return new Promise((answered, failed) =>
      waiting.set(id, { command, answered, failed, sentAtMs: performance.now() }),
    )
  }
  const list = await send('GETCODECS', {})
  // A node may refuse the list to a write-only token; then replies are shown without features.
  if (list.ok) codecs = createCodecList(list.result.rateFeatures ?? [])
  return {
    send,
    close: () => {
      clearInterval(watch)
      socket.destroy()
    },
  }
}

function connected(address: Address, name: string): Promise<Socket> {
  const { host, port, tlsCa, timeoutMs } = address
  return new Promise((resolve, reject) => {
    const socket =
      tlsCa === undefined
        ? connectTcp({ host, port, noDelay: true })
        : connectTls({ host, port, ...(tlsCa === '' ? {} : { ca: tlsCa }) })
    const failed = (reason: string) => {
      socket.destroy()
      reject(new VacancyError('connection_failed', { address: name, reason }))
    }
    const onError = (error: NodeJS.ErrnoException) =>
      failed(error.code === 'ECONNREFUSED' ? 'nothing listens there; is the node running?' : error.message)
    const timer = setTimeout(() => failed(`no connection within ${timeoutMs} ms`), timeoutMs)
    socket.once('error', onError)
    socket.once(tlsCa === undefined ? 'connect' : 'secureConnect', () => {
      clearTimeout(timer)
      socket.off('error', onError)
      resolve(socket)
    })
  })
}

/** The reply is bare text, before any frame. */
function logIn(socket: Socket, token: string, timeoutMs: number): Promise<void> {
  return new Promise((resolve, reject) => {
    let received = new Uint8Array(0)
    const refused = (reason: string) => {
      clearTimeout(timer)
      socket.destroy()
      reject(new VacancyError('failure', { reason: `LOGIN: ${reason}` }))
    }
    const timer = setTimeout(() => refused(`no reply within ${timeoutMs} ms`), timeoutMs)
    const onClose = () => refused('the connection was closed')
    const onError = (error: Error) => refused(error.message)
    const onData = (chunk: Uint8Array) => {
      received = Uint8Array.from([...received, ...chunk])
      const { answer } = readLoginAnswer(received)
      if (answer === 'failed') refused('the node refused the token')
      if (answer === 'malformed') refused('this is not a Vacancy node')
      if (answer !== 'ok') return
      clearTimeout(timer)
      socket.off('data', onData).off('close', onClose).off('error', onError)
      resolve()
    }
    socket.on('data', onData).on('close', onClose).on('error', onError)
    socket.write(encodeLogin(token))
  })
}
