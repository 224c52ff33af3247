/** A file with one token, for LOGIN or for requests to another service. */

import { VacancyError } from '../errors.ts'
import type { Log } from './log.ts'
import { readText, watchFiles } from './watch.ts'

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
  const text = readText(file, 'invalid_tokens')
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
  const message = 'the token file changed but cannot be used; keeping the previous token'
  const close = watchFiles([file], reload, { log, message }, options.lookMs)
  return { token: () => token, reload, close }
}
