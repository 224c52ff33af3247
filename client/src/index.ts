/** The native client of Vacancy: `connect`, the methods of `VacancyClient`, and errors by what can be done about them. */

export type { NightPackage, RequestFields, Result, SearchExplained } from '@vacancy/shared/wire'
export type { AnswerSeen } from './calls.ts'
export { type CallOptions, type ClientStatus, connect, type VacancyClient } from './client.ts'
export {
  type ClientErrorCode,
  VacancyCallError,
  VacancyClientError,
  VacancyRequestError,
  VacancyRetryError,
  VacancyUnknownOutcomeError,
} from './errors.ts'
export type { ClientOptions, NodeAddress } from './options.ts'
export type { ReadsFrom } from './topology.ts'
