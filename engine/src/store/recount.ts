/**
 * Recounts the charge from the state (charge.ts). The maintained sum must equal it. Used when the feature level is
 * raised, which changes the rules for names, and by tests.
 */

import {
  clearCharge,
  createCharge,
  nameCharge,
  nameGrowth,
  propertyCharge,
  segmentCharge,
  tableBytes,
} from './charge.ts'
import { countName, discountNames, NAME_KINDS, NAMES, nameBytes, nameCount, nameCounts } from './dictionary.ts'
import { PLANE, PROPERTY, SEGMENT, SLOT, STATE, STAY_NIGHT, STAY_PROPERTY, TABLE } from './layout.ts'
import type { Charge } from './memory.ts'
import { forEachNight } from './nights.ts'
import { forEachSlot } from './planes.ts'
import { forEachProperty, forEachTable, roomCount, segmentOf } from './segment.ts'
import { creditCount, forEachHeld, forEachSettled, lineCount, stayBytes } from './stays.ts'
import { type Memory, type Store, state } from './store.ts'
import { field } from './table-fields.ts'

/** The charge of the state in bytes, counted record by record. */
export function recountCharge(memory: Memory): number {
  const names = createCharge()
  let bytes = 0
  for (const kind of NAME_KINDS) {
    const count = nameCount(memory, kind)
    for (let name = 0; name < count; name++) {
      if (!nameCounts(memory, kind, name)) continue
      bytes += nameGrowth(names, kind, 1, nameCharge(nameBytes(memory, kind, name).length))
      names.names[kind] = names.names[kind] + 1
    }
  }
  forEachSegment(memory, (segment) => {
    let tables = 0
    forEachTable(memory, segment, (table) => {
      tables++
      bytes += tableBytes(field(memory, table + TABLE.rowCount), countedPlanes(memory, table))
    })
    const properties = field(memory, segment + SEGMENT.propertyTable)
    bytes += segmentCharge(tables)
    bytes += tableBytes(field(memory, properties + TABLE.rowCount), 0)
    forEachProperty(memory, segment, (property) => {
      bytes += propertyCharge(amenityCount(memory, property), roomCount(memory, property))
    })
  })
  return bytes + ledgerBytes(memory)
}

function ledgerBytes(memory: Memory): number {
  let bytes = 0
  for (const forEach of [forEachSettled, forEachHeld]) {
    forEach(memory, (stay) => {
      bytes += stayBytes(lineCount(memory, stay), creditCount(memory, stay))
    })
  }
  forEachNight(memory, () => {
    bytes += STAY_NIGHT.bytes
  })
  for (let property = state(memory, STATE.stayPropertyHead); property !== 0; ) {
    bytes += STAY_PROPERTY.bytes
    property = field(memory, property + STAY_PROPERTY.next)
  }
  return bytes
}

function countedPlanes(memory: Memory, table: number): number {
  let planes = 0
  forEachSlot(memory, table, (slot, plane) => {
    if (state(memory, STATE.slots + slot * SLOT.cells + SLOT.day) === field(memory, plane + PLANE.day)) planes++
  })
  return planes
}

function amenityCount(memory: Memory, property: number): number {
  const amenities = field(memory, property + PROPERTY.amenities)
  return amenities === 0 ? 0 : field(memory, amenities)
}

export function forEachSegment(memory: Memory, visit: (segment: number, name: number) => void): void {
  const capacity = state(memory, STATE.segmentCapacity)
  for (let name = 0; name < capacity; name++) {
    const segment = segmentOf(memory, name)
    if (segment !== 0) visit(segment, name)
  }
}

/** Charges exactly the names in use. Below feature level 1 snapshots omit the others, so replicas differ in them. */
export function countUsedNames(store: Store): void {
  const { memory, writer } = store
  discountNames(store)
  takeOffNames(writer.charge, memory)
  const use = (kind: (typeof NAME_KINDS)[number], name: number) => {
    if (!nameCounts(memory, kind, name)) countName(store, kind, name)
  }
  forEachSegment(memory, (segment, name) => {
    use(NAMES.segment, name)
    forEachTable(memory, segment, (_table, roomType) => use(NAMES.roomType, roomType))
    forEachProperty(memory, segment, (property) => {
      use(NAMES.area, field(memory, property + PROPERTY.area))
      use(NAMES.type, field(memory, property + PROPERTY.type))
      use(NAMES.category, field(memory, property + PROPERTY.category))
      const amenities = field(memory, property + PROPERTY.amenities)
      for (let i = 1; i <= amenityCount(memory, property); i++) use(NAMES.amenity, field(memory, amenities + i * 4))
    })
  })
}

/** The charge without any names. */
function takeOffNames(charge: Charge, memory: Memory): void {
  const bytes = recountCharge(memory)
  const tables = new Map(charge.tables)
  const classes = charge.classes.slice()
  const { classesEnd } = charge
  clearCharge(charge)
  charge.bytes = bytes
  for (const [table, held] of tables) charge.tables.set(table, held)
  charge.classes.set(classes)
  charge.classesEnd = classesEnd
}
