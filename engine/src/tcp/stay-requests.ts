/**
 * Requests on stays in the form of the log, and reads of stays for the replica thread, which has the ledger. All checks
 * that need no state are made here.
 *
 *   command   id · u8 flags · u32 seconds · f64 total · u32 features · replaced id · source · u8 lines · lines ·
 *             with the flag `reinstate` or `bookedAt` f64 index
 *   line      property id · room type · u32 arrival · u8 nights · u8 rooms · u8 flags
 *   read      u8 1 · id, or u8 2 · property id · room type · u32 day · u8 limit · f64 index · id of the cursor
 */

import { assert, LIMITS, packPropertyIdInto } from '@vacancy/shared'
import {
  COMMANDS,
  type CommandSpec,
  createStayLineScan,
  LINE_FLAGS,
  LINES_PLACE,
  scanStayLine,
  textFault,
} from '@vacancy/shared/wire'
import {
  checkName,
  endOf,
  isGiven,
  readDate,
  readFeatures,
  readPropertyId,
  readU8,
  readU32,
  readU64,
  startOf,
  type Values,
} from '../protocol/values.ts'
import { REINSTATE_ANY, STAY_FLAGS } from '../store/apply-stays.ts'
import { type CommandWriter, writeBytes, writeF64, writeName, writeU8, writeU32 } from '../store/command.ts'
import { ANY_DAY, STAY_READ } from '../store/stay-reads.ts'
import { BOOKED_AT_LEVEL, LEDGER_LEVEL } from '../store/store.ts'

const { BOOKSTAY, HOLDSTAY, CONFIRMSTAY, RELEASESTAY, GETSTAY, LISTSTAYS } = COMMANDS

const ID_BYTES = 16
const NO_ID = new Uint8Array(ID_BYTES)
const SWITCH_MAX = 1

/** Position of each field by name; −1 where the command has none. */
const fieldsNamed = (name: string) => {
  const places = new Map<CommandSpec, number>()
  for (const command of [BOOKSTAY, HOLDSTAY, CONFIRMSTAY, RELEASESTAY, GETSTAY, LISTSTAYS]) {
    places.set(
      command,
      (command as CommandSpec).fields.findIndex((spec) => spec.name === name),
    )
  }
  return places
}
const FIELDS = {
  stayId: fieldsNamed('stayId'),
  maxTotal: fieldsNamed('maxTotal'),
  rateFeatures: fieldsNamed('rateFeatures'),
  replaces: fieldsNamed('replaces'),
  seconds: fieldsNamed('seconds'),
  retake: fieldsNamed('retake'),
  void: fieldsNamed('void'),
  reinstate: fieldsNamed('reinstate'),
  releasedAt: fieldsNamed('releasedAt'),
  unrecorded: fieldsNamed('unrecorded'),
  bookedAt: fieldsNamed('bookedAt'),
  source: fieldsNamed('source'),
  propertyId: fieldsNamed('propertyId'),
  roomType: fieldsNamed('roomType'),
  date: fieldsNamed('date'),
  limit: fieldsNamed('limit'),
  cursor: fieldsNamed('cursor'),
} as const

function place(name: keyof typeof FIELDS, command: CommandSpec): number {
  return FIELDS[name].get(command) as number
}

function has(values: Values, name: keyof typeof FIELDS, command: CommandSpec): boolean {
  const field = place(name, command)
  return field >= 0 && isGiven(values, field)
}

export function refuse(values: Values, reason: string): void {
  if (values.fault === '') values.fault = `VALIDATION_ERROR: ${reason}`
}

const packed = new Uint8Array(ID_BYTES)

/** Writes the packed id of a field. */
function writeId(
  values: Values,
  writer: CommandWriter,
  name: 'stayId' | 'replaces' | 'propertyId',
  command: CommandSpec,
) {
  const field = place(name, command)
  if (name === 'propertyId') readPropertyId(values, field, packed, 0)
  else if (!packPropertyIdInto(values.scan.bytes, startOf(values, field), endOf(values, field), packed, 0)) {
    refuse(values, `${name} must be a UUID of version 1 to 5 or 7, or 1 to 14 printable ASCII characters`)
  }
  writeBytes(writer, packed, 0, ID_BYTES)
}

function readSwitch(
  values: Values,
  name: 'retake' | 'void' | 'reinstate' | 'unrecorded',
  command: CommandSpec,
): boolean {
  if (!has(values, name, command)) return false
  const value = readU8(values, place(name, command))
  if (value > SWITCH_MAX) refuse(values, `${name} must be 0 or 1`)
  return value === 1
}

/**
 * @param token name of the token of the connection, the source of a request that names none
 * @param level feature level of the data: a member of the shard may not know fields of a later one
 */
export function writeStay(
  values: Values,
  command: CommandSpec,
  writer: CommandWriter,
  token: Uint8Array,
  level: number,
): void {
  refuseLater(values, command, level)
  writeId(values, writer, 'stayId', command)
  const retake = readSwitch(values, 'retake', command)
  const isVoid = readSwitch(values, 'void', command)
  const hasMax = has(values, 'maxTotal', command)
  const hasReplaced = has(values, 'replaces', command)
  const reinstate = readReinstate(values, command)
  const isUnrecorded = readSwitch(values, 'unrecorded', command)
  const bookedAt = has(values, 'bookedAt', command) ? readIndex(values, 'bookedAt', command, 0) : 0
  const lines = countLines(values)
  if (command === CONFIRMSTAY && hasMax && !retake) refuse(values, 'maxTotal needs retake')
  if (isVoid && lines > 0) refuse(values, 'void and lines exclude each other')
  if (isVoid && bookedAt > 0) refuse(values, 'void and bookedAt exclude each other')
  if (isUnrecorded && lines === 0) refuse(values, 'unrecorded needs lines')
  writeU8(
    writer,
    (hasMax ? STAY_FLAGS.maxTotal : 0) |
      (hasReplaced ? STAY_FLAGS.replaces : 0) |
      (retake ? STAY_FLAGS.retake : 0) |
      (isVoid ? STAY_FLAGS.void : 0) |
      (reinstate > 0 ? STAY_FLAGS.reinstate : 0) |
      (isUnrecorded ? STAY_FLAGS.unrecorded : 0) |
      (bookedAt > 0 ? STAY_FLAGS.bookedAt : 0),
  )
  writeU32(writer, readSeconds(values, command))
  writeF64(writer, hasMax ? readU64(values, place('maxTotal', command)) : 0)
  writeU32(writer, has(values, 'rateFeatures', command) ? readFeatures(values, place('rateFeatures', command)) : 0)
  writeReplaced(values, command, writer, hasReplaced)
  writeSource(values, command, writer, token)
  writeU8(writer, lines)
  let nights = 0
  for (let n = 0; n < lines && values.fault === ''; n++) nights += writeLine(values, writer, n)
  if (nights > LIMITS.stayLineNightsMax) {
    refuse(values, `the lines have ${nights} nights; the maximum is ${LIMITS.stayLineNightsMax}`)
  }
  // No command has both.
  if (reinstate > 0) writeF64(writer, reinstate)
  if (bookedAt > 0) writeF64(writer, bookedAt)
}

const LEVEL_OF = {
  reinstate: LEDGER_LEVEL,
  releasedAt: LEDGER_LEVEL,
  unrecorded: LEDGER_LEVEL,
  bookedAt: BOOKED_AT_LEVEL,
}

function refuseLater(values: Values, command: CommandSpec, level: number): void {
  for (const name of ['reinstate', 'releasedAt', 'unrecorded', 'bookedAt'] as const) {
    if (level < LEVEL_OF[name] && has(values, name, command))
      refuse(values, `${command.name} has no field ${command.fields[place(name, command)]?.id}`)
  }
}

/** @returns the index at which the stay was released, REINSTATE_ANY for any, 0 if it is not to be reinstated */
function readReinstate(values: Values, command: CommandSpec): number {
  const isReinstated = readSwitch(values, 'reinstate', command)
  if (!has(values, 'releasedAt', command)) return isReinstated ? REINSTATE_ANY : 0
  if (!isReinstated) refuse(values, 'releasedAt needs reinstate')
  return readIndex(values, 'releasedAt', command, REINSTATE_ANY)
}

function readIndex(values: Values, name: 'releasedAt' | 'bookedAt', command: CommandSpec, above: number): number {
  const index = readU64(values, place(name, command))
  if (index <= above) refuse(values, `${name} must be above ${above}`)
  return index
}

function readSeconds(values: Values, command: CommandSpec): number {
  if (command !== HOLDSTAY) return 0
  if (!has(values, 'seconds', command)) return LIMITS.holdSecondsDefault
  const seconds = readU32(values, place('seconds', command))
  const { holdSecondsMin: min, holdSecondsMax: max } = LIMITS
  if (seconds < min || seconds > max) refuse(values, `seconds must be ${min} to ${max}, got ${seconds}`)
  return seconds
}

function writeReplaced(values: Values, command: CommandSpec, writer: CommandWriter, isThere: boolean): void {
  if (!isThere) return writeBytes(writer, NO_ID, 0, ID_BYTES)
  writeId(values, writer, 'replaces', command)
  const replaced = packed.slice()
  const field = place('stayId', command)
  packPropertyIdInto(values.scan.bytes, startOf(values, field), endOf(values, field), packed, 0)
  if (replaced.every((byte, i) => byte === packed[i])) refuse(values, 'a stay cannot replace itself')
}

function writeSource(values: Values, command: CommandSpec, writer: CommandWriter, token: Uint8Array): void {
  if (!has(values, 'source', command)) return writeName(writer, token, 0, token.length)
  const field = place('source', command)
  const fault = textFault(values.scan.bytes, startOf(values, field), endOf(values, field), LIMITS.sourceBytesMax)
  if (fault !== '') return refuse(values, `source ${fault}`)
  writeName(writer, values.scan.bytes, startOf(values, field), endOf(values, field))
}

function countLines({ scan }: Values): number {
  let lines = 0
  while (lines < LIMITS.stayLinesMax && scan.start[LINES_PLACE + lines] >= 0) lines++
  return COMMANDS_WITH_LINES.has(scan.command) ? lines : 0
}
const COMMANDS_WITH_LINES = new Set<CommandSpec>([BOOKSTAY, HOLDSTAY, RELEASESTAY])

const line = createStayLineScan()

/** Checks a line and writes it. @returns its nights */
function writeLine(values: Values, writer: CommandWriter, n: number): number {
  const { scan } = values
  const { bytes } = scan
  const start = scan.start[LINES_PLACE + n]
  const end = start + scan.length[LINES_PLACE + n]
  const fault = scanStayLine(line, bytes, start, end) && line.end === end ? lineFault(bytes) : 'is not one line'
  if (fault !== '') {
    refuse(values, `line ${n} ${fault}`)
    return 0
  }
  writeBytes(writer, packed, 0, ID_BYTES)
  writeName(writer, bytes, line.roomTypeStart, line.roomTypeEnd)
  writeU32(writer, line.arrival)
  writeU8(writer, line.nights)
  writeU8(writer, line.rooms)
  writeU8(writer, line.flags)
  return line.nights
}

/** Packs the property id of the line. @returns what is wrong with it, '' for nothing */
function lineFault(bytes: Uint8Array): string {
  if (!packPropertyIdInto(bytes, line.idStart, line.idEnd, packed, 0)) return 'has no valid property id'
  const fault = textFault(bytes, line.roomTypeStart, line.roomTypeEnd, LIMITS.nameBytesMax)
  if (fault !== '') return `has a room type that ${fault}`
  if (line.arrival < 0) return 'has an arrival that is not a date of the form YYYY-MM-DD'
  const { stayNightsMax } = LIMITS
  if (line.nights < 1 || line.nights > stayNightsMax)
    return `must have 1 to ${stayNightsMax} nights, got ${line.nights}`
  if (line.rooms < 1) return 'must have 1 to 255 rooms, got 0'
  return line.flags > LINE_FLAGS.uncounted ? `has unknown flags ${line.flags}` : ''
}

/** Writes a read of stays for the replica thread. */
export function writeStayRead(values: Values, command: CommandSpec, writer: CommandWriter): void {
  if (command === GETSTAY) {
    writeU8(writer, STAY_READ.one)
    return writeId(values, writer, 'stayId', command)
  }
  assert(command === LISTSTAYS, 'every read of stays has a form')
  writeU8(writer, STAY_READ.list)
  writeId(values, writer, 'propertyId', command)
  const roomType = place('roomType', command)
  checkName(values, roomType)
  if (isGiven(values, roomType) && values.fault === '') {
    writeName(writer, values.scan.bytes, startOf(values, roomType), endOf(values, roomType))
  } else writeU8(writer, 0)
  writeU32(writer, has(values, 'date', command) ? readDate(values, place('date', command)) : ANY_DAY)
  writeU8(writer, readLimit(values, command))
  writeCursor(values, command, writer)
}

function readLimit(values: Values, command: CommandSpec): number {
  if (!has(values, 'limit', command)) return LIMITS.stayListMax
  const limit = readU8(values, place('limit', command))
  if (limit < 1 || limit > LIMITS.stayListMax) refuse(values, `limit must be 1 to ${LIMITS.stayListMax}, got ${limit}`)
  return limit
}

const CURSOR = /^(\d{1,16})-([0-9a-f]{32})$/
const decoder = new TextDecoder()

function writeCursor(values: Values, command: CommandSpec, writer: CommandWriter): void {
  const field = place('cursor', command)
  const isThere = isGiven(values, field)
  const text = isThere ? decoder.decode(values.scan.bytes.slice(startOf(values, field), endOf(values, field))) : ''
  const [, index = '0', id = ''] = CURSOR.exec(text) ?? []
  if (isThere && id === '') refuse(values, 'Invalid cursor.')
  writeF64(writer, Number(index))
  for (let i = 0; i < ID_BYTES; i++) writeU8(writer, Number.parseInt(id.slice(i * 2, i * 2 + 2) || '0', 16))
}
