/** What a command that writes would change, from reads: old → new, and what a delete takes with it. */
import { type NodeStatus, type PreviewAnswer, type QueryCommand, statusBody } from '@vacancy/shared/contract'
import { COMMANDS, type NightPackage, type RequestFields } from '@vacancy/shared/wire'
import type { NodeAddress } from '../cluster/cluster.ts'
import { problem } from '../http/errors.ts'
import type { RouteRequest } from '../http/route.ts'
import { orNothing, parseJson, propertyAt, type Reach, readFields, refusedBy, requestNode, send } from './ask.ts'
import { oneNode, targetOf } from './target.ts'

type Changes = PreviewAnswer['changes']
type Told = { readonly changes: Changes; readonly removes: PreviewAnswer['removes'] }
type Look = {
  readonly reach: Reach
  readonly node: NodeAddress
  readonly fields: RequestFields
  readonly signal: AbortSignal
}

/** What must be typed to delete: what the delete is about; '' for commands that delete nothing. */
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
  const { changes, removes } = await toldOf(command, { reach, node, fields, signal })
  return { shard: target.shard, node: node.id, changes, removes, confirm: confirmationOf(command, fields) }
}

function toldOf(command: QueryCommand, look: Look): Promise<Told> {
  switch (command) {
    case 'SETPROP':
      return ofProperty(look)
    case 'SETROOMPKG':
      return ofPackage(look)
    case 'SETROOMAVL':
      return ofRooms(look, (_, amount) => amount)
    case 'INCROOMAVL':
      return ofRooms(look, (left, amount) => left + amount)
    case 'DECROOMAVL':
      return ofRooms(look, (left, amount) => left - amount)
    case 'DELROOMDAY':
      return ofDay(look, [String(look.fields['roomType'])])
    case 'DELPROPDAY':
      return roomTypesOf(look).then((rooms) => ofDay(look, rooms))
    case 'DELPROPROOM':
      return ofRoomTypes(look, [String(look.fields['roomType'])], false)
    case 'DELPROP':
      return roomTypesOf(look).then((rooms) => ofRoomTypes(look, rooms, true))
    case 'DELSEGMENT':
      return ofSegment(look)
    default:
      throw problem('no-preview', { detail: `Nobody can tell beforehand what ${command} changes.` })
  }
}

async function nightAt(
  { reach, node, fields, signal }: Look,
  roomType = fields['roomType'],
): Promise<NightPackage | undefined> {
  const { propertyId, date } = fields
  const answered = await orNothing(send(reach, [node], 'GETPROPROOMDAY', { propertyId, roomType, date }, signal))
  return answered?.result
}

async function roomTypesOf({ reach, node, fields, signal }: Look): Promise<readonly string[]> {
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

async function ofProperty({ reach, node, fields, signal }: Look): Promise<Told> {
  const old = await propertyAt(reach, node, String(fields['propertyId']), signal)
  const changes = ATTRIBUTES.map(([field, key]) => ({
    what: field,
    before: old ? textOf(old[key]) : null,
    after: textOf(fields[field]),
  }))
  return { changes: changes.filter(({ before, after }) => before !== after), removes: null }
}

/** Lists have no order of their own. */
function textOf(value: unknown): string {
  return Array.isArray(value) ? value.toSorted().join(', ') : String(value)
}

async function ofPackage(look: Look): Promise<Told> {
  const old = await nightAt(look)
  const { availability, finalPrice, rateFeatures } = look.fields
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

async function ofRooms(look: Look, next: (left: number, amount: number) => number): Promise<Told> {
  const old = await nightAt(look)
  const after = old && next(old.availability, Number(look.fields['amount']))
  return {
    changes: [
      {
        what: 'availability',
        before: old ? String(old.availability) : null,
        // Past the bounds and without a package the node refuses: nothing comes after.
        after: after !== undefined && after >= 0 && after <= 255 ? String(after) : null,
      },
    ],
    removes: null,
  }
}

async function ofDay(look: Look, roomTypes: readonly string[]): Promise<Told> {
  const nights = await Promise.all(roomTypes.map(async (room) => ({ room, night: await nightAt(look, room) })))
  const there = nights.filter(({ night }) => night !== undefined)
  return {
    changes: there.map(({ room, night }) => ({
      what: `${room}, ${look.fields['date']}`,
      before: `${night?.availability} left, ${night?.finalPrice}`,
      after: null,
    })),
    removes: { properties: 0, packages: there.length },
  }
}

async function ofRoomTypes(
  { reach, node, fields, signal }: Look,
  rooms: readonly string[],
  withProperty: boolean,
): Promise<Told> {
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

async function ofSegment({ reach, node, fields, signal }: Look): Promise<Told> {
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
