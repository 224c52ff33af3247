/** What a write command would change, computed from reads: old and new values, and the data that a delete removes. */

import { problem } from '@vacancy/shared/api/errors'
import type { RouteRequest } from '@vacancy/shared/api/route'
import { type NodeStatus, type PreviewAnswer, type QueryCommand, statusBody } from '@vacancy/shared/contract'
import { COMMANDS, type NightPackage, type RequestFields } from '@vacancy/shared/wire'
import type { NodeAddress } from '../cluster/cluster.ts'
import { orNothing, parseJson, propertyAt, type Reach, readFields, refusedBy, requestNode, send } from '../nodes/ask.ts'
import { oneNode, targetOf } from '../nodes/target.ts'

type Changes = PreviewAnswer['changes']
type Effects = { readonly changes: Changes; readonly removes: PreviewAnswer['removes'] }
type PreviewContext = {
  readonly reach: Reach
  readonly node: NodeAddress
  readonly fields: RequestFields
  readonly signal: AbortSignal
}

/** The text to type to confirm a delete: the id of its object; '' for commands that delete nothing. */
export function confirmationOf(command: QueryCommand, { propertyId, segment }: RequestFields): string {
  return command.startsWith('DEL') ? String(propertyId ?? segment) : ''
}

export async function preview(
  reach: Reach,
  { body, signal }: Pick<RouteRequest<'POST /api/v1/query/preview'>, 'body' | 'signal'>,
): Promise<PreviewAnswer> {
  const { command } = body
  if (COMMANDS[command].access !== 'write') {
    throw problem('no-write', { detail: `${command} changes nothing.`, field: 'command' })
  }
  const fields = readFields(command, body.fields)
  const target = targetOf(reach.cluster, body)
  const leader = target.nodes.find(({ id }) => reach.cluster.node(target.shard, id)?.role === 'leader')
  const node = leader ?? oneNode(reach.cluster, target)
  const { changes, removes } = await effectsOf(command, { reach, node, fields, signal })
  return { shard: target.shard, node: node.id, changes, removes, confirm: confirmationOf(command, fields) }
}

function effectsOf(command: QueryCommand, context: PreviewContext): Promise<Effects> {
  switch (command) {
    case 'SETPROP':
      return ofProperty(context)
    case 'SETROOMPKG':
      return ofPackage(context)
    case 'SETROOMAVL':
      return ofRooms(context, (_, amount) => amount)
    case 'INCROOMAVL':
      return ofRooms(context, (left, amount) => left + amount)
    case 'DECROOMAVL':
      return ofRooms(context, (left, amount) => left - amount)
    case 'DELROOMDAY':
      return ofDay(context, [String(context.fields['roomType'])])
    case 'DELPROPDAY':
      return roomTypesOf(context).then((rooms) => ofDay(context, rooms))
    case 'DELPROPROOM':
      return ofRoomTypes(context, [String(context.fields['roomType'])], false)
    case 'DELPROP':
      return roomTypesOf(context).then((rooms) => ofRoomTypes(context, rooms, true))
    case 'DELSEGMENT':
      return ofSegment(context)
    case 'BOOKSTAY':
      return ofStay(context, 'booked')
    case 'HOLDSTAY':
      return ofStay(context, 'held')
    case 'CONFIRMSTAY':
      return ofStay(context, 'booked')
    case 'RELEASESTAY':
      return ofStay(context, context.fields['void'] === 1 ? 'void' : 'released')
    default:
      throw problem('no-preview', { detail: `There is no preview of ${command}.` })
  }
}

async function nightAt(
  { reach, node, fields, signal }: PreviewContext,
  roomType = fields['roomType'],
): Promise<NightPackage | undefined> {
  const { propertyId, date } = fields
  const answered = await orNothing(send(reach, [node], 'GETPROPROOMDAY', { propertyId, roomType, date }, signal))
  return answered?.result
}

async function roomTypesOf({ reach, node, fields, signal }: PreviewContext): Promise<readonly string[]> {
  const { propertyId } = fields
  const answered = await orNothing(send(reach, [node], 'PROPROOMLIST', { propertyId }, signal))
  return answered?.result.roomTypes ?? []
}

const ATTRIBUTES = [
  ['segment', 'segment'],
  ['area', 'area'],
  ['propertyType', 'type'],
  ['category', 'category'],
  ['stars', 'stars'],
  ['latitude', 'latitude'],
  ['longitude', 'longitude'],
  ['amenities', 'amenities'],
] as const

async function ofProperty({ reach, node, fields, signal }: PreviewContext): Promise<Effects> {
  const old = await propertyAt(reach, node, String(fields['propertyId']), signal)
  const changes = ATTRIBUTES.map(([field, key]) => ({
    what: field,
    before: old ? textOf(old[key]) : null,
    after: textOf(fields[field]),
  }))
  return { changes: changes.filter(({ before, after }) => before !== after), removes: null }
}

/** The order of lists has no meaning. */
function textOf(value: unknown): string {
  return Array.isArray(value) ? value.toSorted().join(', ') : String(value)
}

async function ofPackage(context: PreviewContext): Promise<Effects> {
  const old = await nightAt(context)
  const { availability, finalPrice, rateFeatures } = context.fields
  const line = (what: string, before: unknown, given: unknown, fresh: string) => ({
    what,
    before: old ? textOf(before) : null,
    after: given === undefined ? (old ? textOf(before) : fresh) : textOf(given),
  })
  const changes = [
    line('availability', old?.availability, availability, '0'),
    line('finalPrice', old?.finalPrice, finalPrice, '0'),
    line('rateFeatures', old?.rateFeatures, rateFeatures, ''),
  ]
  return { changes: changes.filter(({ before, after }) => before !== after), removes: null }
}

async function ofRooms(context: PreviewContext, next: (left: number, amount: number) => number): Promise<Effects> {
  const old = await nightAt(context)
  const after = old && next(old.availability, Number(context.fields['amount']))
  return {
    changes: [
      {
        what: 'availability',
        before: old ? String(old.availability) : null,
        // Out of bounds or without a package the node refuses: there is no new value.
        after: after !== undefined && after >= 0 && after <= 255 ? String(after) : null,
      },
    ],
    removes: null,
  }
}

/** The state of the stay, if the shard does not refuse: what is left decides only when the command is applied. */
async function ofStay({ reach, node, fields, signal }: PreviewContext, after: string): Promise<Effects> {
  const { stayId } = fields
  const answered = await orNothing(send(reach, [node], 'GETSTAY', { stayId }, signal))
  return { changes: [{ what: 'state', before: answered?.result.state ?? null, after }], removes: null }
}

async function ofDay(context: PreviewContext, roomTypes: readonly string[]): Promise<Effects> {
  const nights = await Promise.all(roomTypes.map(async (room) => ({ room, night: await nightAt(context, room) })))
  const there = nights.filter(({ night }) => night !== undefined)
  return {
    changes: there.map(({ room, night }) => ({
      what: `${room}, ${context.fields['date']}`,
      before: `${night?.availability} left, ${night?.finalPrice}`,
      after: null,
    })),
    removes: { properties: 0, packages: there.length },
  }
}

async function ofRoomTypes(
  { reach, node, fields, signal }: PreviewContext,
  rooms: readonly string[],
  withProperty: boolean,
): Promise<Effects> {
  const { propertyId } = fields
  const counted = await Promise.all(
    rooms.map(async (roomType) => {
      const answered = await orNothing(send(reach, [node], 'PROPROOMDATELIST', { propertyId, roomType }, signal))
      return { roomType, packages: answered?.result.dates.length }
    }),
  )
  const there = counted.filter(({ packages }) => packages !== undefined)
  const packages = there.reduce((sum, each) => sum + (each.packages ?? 0), 0)
  const { result } = await send(reach, [node], 'PROPEXIST', { propertyId }, signal)
  return {
    changes: there.map((each) => ({ what: each.roomType, before: `${each.packages} packages`, after: null })),
    removes: { properties: withProperty && result.exists ? 1 : 0, packages },
  }
}

async function ofSegment({ reach, node, fields, signal }: PreviewContext): Promise<Effects> {
  const path = '/status'
  const { status, body } = await requestNode(reach, node, path, { as: 'monitoring', signal })
  const parsed = statusBody.safeParse(parseJson(body))
  if (status !== 200 || !parsed.success) throw refusedBy(node, path, status, body)
  const found: NodeStatus['segments'][number] | undefined = parsed.data.segments.find(
    ({ name }) => name === fields['segment'],
  )
  const { properties = 0, packages = 0 } = found ?? {}
  const before = found ? `${properties} properties, ${packages} packages` : null
  return {
    changes: [{ what: String(fields['segment']), before, after: null }],
    removes: { properties, packages },
  }
}
