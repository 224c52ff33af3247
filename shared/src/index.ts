/** Shared vocabulary of all workspaces: domain, dates, ids, codec lists, errors. Pure, so usable in browsers. */

export { AssertionError, assert, unreachable } from './assert.ts'
export { ATTEMPT_MS, followAttempts } from './attempts.ts'
export { type Clock, type Schedule, systemClock, turnableClock } from './clock.ts'
export { type CodecList, compareBytes, createCodecList, namesOf } from './codecs.ts'
export {
  addOneYear,
  baseYearOf,
  dayOf,
  formatDay,
  hasRealDate,
  isVisible,
  lastVisibleDay,
  packDay,
  parseDay,
  parseDayBytes,
  unpackDay,
  weekdayOf,
  yearOf,
} from './dates.ts'
export {
  LIMITS,
  RESERVED_SEGMENTS,
} from './domain.ts'
export {
  ERRORS,
  type ErrorName,
  type ErrorRow,
  EXIT,
  errorRow,
  kindOf,
  kindOfWireCode,
  sentence,
  VacancyError,
  WIRE_CODES,
  wireText,
} from './errors.ts'
export { FORMAT_BYTES, formatOf } from './file-format.ts'
export { ID_RULE, parseId } from './ids.ts'
export {
  firstCells,
  IMPORT_COLUMNS,
  type ImportFileKind,
  importColumnOf,
  importFileOf,
  otherSeparator,
  readImportHeader,
} from './import-columns.ts'
export { FORM_ROWS, otherForm } from './import-forms.ts'
export { CATCH_UP, type MemberOperation } from './membership.ts'
export { knownValues, nearestName, snakeCase, spellingOf, suggestion, unknownName } from './names.ts'
export { groupDigits, utcText } from './numbers.ts'
export { PROPERTY_ID_BYTES, packPropertyId, packPropertyIdInto, unpackPropertyId } from './property-id.ts'
export { metresOfChord, writeUnitVector } from './sphere.ts'
export { parseTraceparent, TRACEPARENT_CHARS, type TraceContext, traceparentOf } from './trace-context.ts'
