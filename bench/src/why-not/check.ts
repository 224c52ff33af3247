/** All systems must give the same answers, before and after rooms change. A comparison of different answers means nothing. */

import { parseDay } from '@vacancy/shared'
import { failure } from '../failure.ts'
import { availabilityOf } from '../inventory.ts'
import { answerTo, type Search, type SearchFields, type Tables } from '../queries.ts'
import type { Booking, Connection, SystemName } from './system.ts'

export type Connected = { readonly name: SystemName; readonly connection: Connection }

/** Nights that are sold out and given back for the check. */
const SOLD_OUT = 20

/** @returns the number of answers compared. Throws on the first difference. */
export async function checkSystems(
  systems: readonly Connected[],
  tables: Tables,
  searches: readonly Search[],
): Promise<number> {
  let compared = 0
  const expectIds = async (fields: SearchFields, wanted: readonly string[], when: string) => {
    for (const { name, connection } of systems) {
      const found = [...(await connection.search(fields)())].sort()
      compared++
      if (found.join() === wanted.join()) continue
      const query = JSON.stringify(fields)
      throw failure(`${name} finds ${found.length} properties instead of ${wanted.length} ${when}: ${query}`)
    }
  }
  for (const { fields } of searches) await expectIds(fields, answerTo(tables, fields).sort(), 'in the loaded data')
  for (const { fields, booking, id, rooms } of lastRooms(tables, searches)) {
    const wanted = answerTo(tables, fields).sort()
    const without = wanted.filter((each) => each !== id)
    for (let left = rooms; left > 0; left--) await writeAll(systems, booking, -1)
    await expectIds(fields, without, 'after a night was sold out')
    await writeAll(systems, booking, 1)
    await expectIds(fields, wanted, 'after a room was given back')
    for (let left = rooms; left > 1; left--) await writeAll(systems, booking, 1)
  }
  return compared
}

async function writeAll(systems: readonly Connected[], booking: Booking, rooms: 1 | -1): Promise<void> {
  for (const { connection } of systems) await connection.write(booking, rooms)()
}

/** A hit of each search, with the first night of the stay and the rooms left then. */
function lastRooms(tables: Tables, searches: readonly Search[]) {
  const { dataset } = tables
  return searches.slice(0, SOLD_OUT).flatMap(({ fields }) => {
    const [id] = answerTo(tables, fields)
    const day = parseDay(fields.dates[0] ?? '')
    const property = dataset.properties.ids.indexOf(id ?? '')
    const roomType = dataset.names.roomTypes.indexOf(fields.roomType)
    const row = dataset.rows.property.findIndex(
      (each, at) => each === property && dataset.rows.roomType[at] === roomType,
    )
    if (id === undefined || day === undefined || row === -1) return []
    const rooms = availabilityOf(dataset.packageOf(dataset, row, day))
    return [{ fields, id, booking: { property, roomType, day }, rooms }]
  })
}
