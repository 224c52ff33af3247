/**
 * Ids of shards, zones and nodes: 1–128 characters of letters, digits, dot, underscore and hyphen (platform.md §2.11).
 */

import { VacancyError } from './errors.ts'

const ID = /^[A-Za-z0-9._-]{1,128}$/

export function isId(text: string): boolean {
  return ID.test(text) && text !== '.' && text !== '..'
}

/** @param what names the id in the error @throws VacancyError `usage` */
export function parseId(text: string, what: string): string {
  if (isId(text)) return text
  throw new VacancyError('usage', {
    reason: `${what} must be 1 to 128 of A-Z a-z 0-9 . _ -, and not . or .., got "${text.slice(0, 140)}"`,
  })
}
