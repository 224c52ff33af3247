import { VacancyError } from '@vacancy/shared'

/** A failure of the world: a program, a node or a file is not as it should be. The sentence is told without a stack. */
export function failure(reason: string, cause?: unknown): VacancyError {
  return new VacancyError('failure', { reason }, cause === undefined ? undefined : { cause })
}
