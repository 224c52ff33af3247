/** The native client of Vacancy: `connect`, the methods of `VacancyClient`, and error classes by what can be done. */

export type {
  CalendarDay,
  FacetCount,
  MapCell,
  NightPackage,
  RequestFields,
  Result,
  SearchBox,
  SearchExplained,
  SearchFacet,
  SearchFacets,
  SearchNear,
  SearchOrder,
  SearchStay,
  SearchWant,
  SearchWeekday,
  StayEntry,
  StayLine,
  StayResult,
  TotalCount,
} from '@vacancy/shared/wire'
export type { AnswerSeen } from './calls.ts'
export {
  type CallOptions,
  type ClientStatus,
  type ConfirmConditions,
  connect,
  type ReleaseConditions,
  type VacancyClient,
} from './client.ts'
export {
  type ClientErrorCode,
  type Details,
  VacancyCallError,
  VacancyClientError,
  VacancyRequestError,
  VacancyRetryError,
  VacancyUnknownOutcomeError,
} from './errors.ts'
export type { ClientOptions, NodeAddress, RouterAddress } from './options.ts'
export type {
  AvailabilityHit,
  AvailabilityPageSearch,
  AvailabilitySearch,
  CalendarSearch,
  FlexibleHit,
  FlexibleSearch,
  PropertyHit,
  PropertyPageSearch,
  PropertySearch,
  SearchPage,
} from './search.ts'
export type { ReadsFrom } from './topology.ts'
