/** Shared vocabulary of all workspaces: domain, dates, ids, codec lists, errors. Pure, so usable in browsers. */

export { AssertionError, assert, unreachable } from './assert.ts'
export { type Clock, systemClock, type TurnableClock, turnableClock } from './clock.ts'
export { type CodecList, compareBytes, createCodecList, maskOf, namesOf, nearestName } from './codecs.ts'
export {
  addOneYear,
  DATE_BYTES,
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
export {
  type DailyPackage,
  type DayRecord,
  EARTH_RADIUS_METRES,
  LIMITS,
  type Property,
  RESERVED_SEGMENTS,
} from './domain.ts'
export {
  ERRORS,
  type ErrorFields,
  type ErrorFieldValue,
  type ErrorKind,
  type ErrorName,
  type ErrorRow,
  EXIT,
  errorRow,
  isNumeric,
  kindOf,
  kindOfWireCode,
  sentence,
  VacancyError,
  WIRE_CODES,
  type WireCode,
  wireText,
} from './errors.ts'
export { compareIds, formatSession, ID_RULE, parseId, parseSession, SESSION_BYTES } from './ids.ts'
export {
  IMPORT_COLUMNS,
  type ImportFileKind,
  type ImportHeader,
  importFileOf,
  readImportHeader,
} from './import-columns.ts'
export { PROPERTY_ID_BYTES, packPropertyId, packPropertyIdInto, unpackPropertyId } from './property-id.ts'
