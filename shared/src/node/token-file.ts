/** A file with one token, for LOGIN or for requests to another service. */

import { readFileSync } from 'node:fs'
import { VacancyError } from '../errors.ts'
import type { Log } from './log.ts'
import { watchFiles } from './watch.ts'

export type TokenFile = {
  /** The first line of the file; a new one after each reload. */
  token(): string
  /** @throws VacancyError invalid_tokens; the previous token stays in use */
  reload(): void
  close(): void
}

/**
 * The token in the first line of a file.
 *
 * @throws VacancyError invalid_tokens
 */
export function readTokenFile(file: string): string {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (cause) {
    const reason = `${file} cannot be read: ${(cause as Error).message}`
    throw new VacancyError('invalid_tokens', { reason }, { cause })
  }
  const token = (text.split('\n', 1)[0] ?? '').trim()
  if (!/^[\x21-\x7e]{1,255}$/.test(token))
    throw new VacancyError('invalid_tokens', { reason: `${file} holds no token in its first line` })
  return token
}

/**
 * Opens a token file and follows its changes.
 *
 * @throws VacancyError invalid_tokens
 */
export function openTokenFile(options: {
  readonly file: string
  readonly log: Log
  readonly lookMs?: number
}): TokenFile {
  const { file, log } = options
  let token = readTokenFile(file)
  const reload = (): void => {
    const next = readTokenFile(file)
    if (next === token) return
    token = next
    log.info({ file }, 'token reloaded')
  }
  const close = watchFiles(
    [file],
    () => {
      try {
        reload()
      } catch (error) {
        // It may be half-written. The previous token stays in use until it is whole.
        log.error({ file, err: error }, 'the token file changed but cannot be used; keeping the previous token')
      }
    },
    options.lookMs,
  )
  return { token: () => token, reload, close }
}
