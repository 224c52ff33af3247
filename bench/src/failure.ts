import { VacancyError } from '@vacancy/shared'

/** An environment failure: a program, a node or a file is not as expected. Its message is printed without a stack. */
export function failure(reason: string, cause?: unknown): VacancyError {
  return new VacancyError('failure', { reason }, cause === undefined ? undefined : { cause })
}
