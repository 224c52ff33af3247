/** Errors passed between threads by code and fields, so that the receiver throws the same error. */

import { AssertionError, type ErrorName, VacancyError } from '@vacancy/shared'

export type Failure = {
  readonly code: ErrorName
  readonly fields: VacancyError['fields']
  readonly message: string
}

export function failureOf(error: unknown): Failure {
  if (error instanceof VacancyError) return { code: error.code, fields: error.fields, message: error.message }
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
  const code = error instanceof AssertionError ? 'assertion_failed' : 'internal'
  return { code, fields: { reason: text }, message: text }
}

export function errorOf(failure: Failure): VacancyError {
  return new VacancyError(failure.code, failure.fields as never)
}
