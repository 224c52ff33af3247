/** The ground door: words, limits, dates, ids and errors. Pure: runs in a browser, too. */

export { AssertionError, assert, unreachable } from './assert.ts'
export { type Clock, type TurnableClock, turnableClock } from './clock.ts'
export { type CodecList, compareBytes, createCodecList, maskOf, namesOf, nearestName } from './codecs.ts'
export {
  addOneYear,
  dayOf,
  formatDay,
  isVisible,
  lastVisibleDay,
  packDay,
  parseDay,
  parseDayBytes,
  startOfDayMs,
  unpackDay,
  weekdayOf,
  yearOf,
} from './dates.ts'
export { type DailyPackage, LIMITS, type Property, RESERVED_SEGMENTS } from './domain.ts'
export {
  classOfWireCode,
  ERRORS,
  type ErrorClass,
  type ErrorCode,
  type ErrorFields,
  type ErrorRow,
  EXIT,
  sentence,
  VacancyError,
} from './errors.ts'
export { isId, parseId } from './ids.ts'
export { PROPERTY_ID_BYTES, packPropertyId, packPropertyIdInto, unpackPropertyId } from './property-id.ts'
