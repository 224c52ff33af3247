/** The client's environment: time, timers, randomness, and the HTTP API of nodes. Tests replace it. */

import { randomBytes } from 'node:crypto'
import { get as getHttp } from 'node:http'
import { get as getHttps } from 'node:https'
import type { ConnectionOptions } from 'node:tls'
import { type Clock, systemClock } from '@vacancy/shared'

export type World = {
  readonly clock: Clock
  /** Calls `run` once after `ms`. @returns cancels it */
  after(ms: number, run: () => void): () => void
  /** A random number, 0 up to but not including 1, to spread the retries of many clients. */
  random(): number
  /** Unpredictable bytes for sessions of request keys. */
  randomBytes(count: number): Uint8Array
  /** Body of a page of a node's HTTP API, with any status. Rejects when there is no response in time. */
  getText(url: URL, options: GetOptions): Promise<string>
}

type GetOptions = {
  readonly token: string | undefined
  readonly tls: ConnectionOptions | undefined
  readonly answerMs: number
}

export const systemWorld: World = {
  clock: systemClock,
  after(ms, run) {
    const timer = setTimeout(run, ms)
    return () => clearTimeout(timer)
  },
  random: () => Math.random(),
  randomBytes: (count) => randomBytes(count),
  getText,
}

/** The polled responses have a few hundred bytes. */
const TEXT_BYTES_MAX = 64 * 1024

function getText(url: URL, { token, tls, answerMs }: GetOptions): Promise<string> {
  return new Promise((resolve, reject) => {
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
    const get = url.protocol === 'https:' ? getHttps : getHttp
    const signal = AbortSignal.timeout(answerMs)
    // Without an agent: a kept-alive connection would hold the process, for one poll every two seconds.
    const request = get(
      url,
      { ...(url.protocol === 'https:' ? tls : {}), headers, signal, agent: false },
      (response) => {
        let text = ''
        response.setEncoding('utf8')
        response.on('error', reject)
        response.on('end', () => resolve(text))
        response.on('data', (piece: string) => {
          text += piece
          if (text.length > TEXT_BYTES_MAX) request.destroy(new RangeError(`more than ${TEXT_BYTES_MAX} bytes`))
        })
      },
    )
    request.on('error', reject)
  })
}
