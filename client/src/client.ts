/** The client: connections that are reopened automatically, one method per command, and a graceful close. */

import { parseTraceparent, traceparentOf } from '@vacancy/shared'
import {
  type CalendarDay,
  CODECS_SEGMENT,
  COMMANDS,
  type CommandName,
  type Envelope,
  type RequestFields,
  type Result,
  SEGMENTS_SEGMENT,
  type StayLine,
} from '@vacancy/shared/wire'
import {
  type AnswerSeen,
  type Call,
  type Calls,
  callAnswered,
  callLost,
  createCalls,
  failWaiting,
  makeCall,
  stopCalls,
  takeTurnSoon,
} from './calls.ts'
import {
  type Address,
  type Connection,
  type ConnectionSettings,
  hangUp,
  openConnection,
  textOfAddress,
} from './connection.ts'
import { type Discovery, startDiscovery, stopDiscovery } from './discovery.ts'
import { badArgument, errorOfClient, type VacancyCallError, VacancyRetryError } from './errors.ts'
import {
  type ClientOptions,
  checkOptions,
  DEADLINE_MS_MAX,
  optionFault,
  type Settings,
  wholeNumber,
} from './options.ts'
import { GOOD_CONNECTION_MS, reconnectDelayMs } from './retry.ts'
import {
  type AvailabilityHit,
  type AvailabilityPageSearch,
  type AvailabilitySearch,
  type CalendarSearch,
  type FlexibleHit,
  type FlexibleSearch,
  type PropertyHit,
  type PropertyPageSearch,
  type PropertySearch,
  plainSearch,
  type SearchCommand,
  type SearchPage,
  searchPage,
  searchPages,
} from './search.ts'
import { createTopology, nodeClosed, nodeOpened, type ShardNode, stopTopology, type Topology } from './topology.ts'
import { systemWorld, type World } from './world.ts'

/**
 * Options of a single call. The last three apply to reads of a shard of several nodes. A node that cannot meet them
 * refuses, and another node is tried within the deadline.
 */
export type CallOptions = {
  /** Deadline of this call in milliseconds, retries included, instead of the client's. */
  readonly deadlineMs?: number
  /** Cancels the call. A write that was already sent ends with an unknown outcome. */
  readonly signal?: AbortSignal
  /** Called with every reply to this call, refusals included, before the call settles. It must not throw. */
  readonly watch?: (seen: AnswerSeen) => void
  /** The segment of the call, for commands that name none. Routers need it; nodes ignore it. */
  readonly segment?: string
  /** Maximum staleness of the reply in milliseconds. The node's default is 10 s. */
  readonly maxStalenessMs?: number
  /** The reply reflects at least the write of this index (`index` of a write that was sent with `wantIndex`). */
  readonly minIndex?: number | bigint
  /** The reply reflects every write acknowledged to any client before this call. */
  readonly linearizable?: boolean
  /**
   * `traceparent` of the caller (W3C trace context), which nodes and routers show with slow requests; a malformed one is
   * ignored. Nodes of versions that do not know it refuse the call.
   */
  readonly traceparent?: string
}

/** The load of a client. */
export type ClientStatus = {
  /** Sockets that are ready. */
  readonly connections: number
  /** Unsettled calls, including queued ones. */
  readonly unsettled: number
  /** Requests on the sockets, including cancelled ones. */
  readonly inFlight: number
  /** With `nodes`: one row each, in option order. */
  readonly nodes?: readonly {
    readonly address: string
    readonly connections: number
    /** As far as it is known. */
    readonly role: 'leader' | 'follower' | 'unknown'
  }[]
}

type Method<Name extends CommandName, Returned> = (
  fields: RequestFields<Name>,
  options?: CallOptions,
) => Promise<Returned>
/** With `reinstate`, rooms are taken again under an id that was released. */
type TakeFields<Name extends 'BOOKSTAY' | 'HOLDSTAY'> = Omit<RequestFields<Name>, 'reinstate'> & {
  readonly reinstate?: boolean | undefined
}

/** Of a stay that expired, and where the call comes from. */
export type ConfirmConditions = {
  readonly retake?: boolean
  /** With `retake`: highest total accepted. */
  readonly maxTotal?: number | bigint
  readonly source?: string
}

export type ReleaseConditions = {
  /** Marks an unknown stay, so that a booking of it that comes later is refused. */
  readonly void?: boolean
  /** Must be those of the stay. */
  readonly lines?: readonly StayLine[]
  /** Gives the rooms of the lines back even if the id is unknown: it was booked before stays were recorded. */
  readonly unrecorded?: boolean
  /** Index of the reply to the booking or hold: a late repeat then ends no later one of the same id. */
  readonly bookedAt?: number | bigint
  readonly source?: string
}

type PlainMethod<Returned> = (options?: CallOptions) => Promise<Returned>

/**
 * A client of one node, of all nodes of a shard, or of a platform through its edge routers. Dates are `YYYY-MM-DD` in UTC, from today to today plus one year.
 * Prices are whole numbers in the operator's unit, per night. Availability is in rooms, 0 to 255. A method rejects
 * with a VacancyRequestError, VacancyClientError or VacancyRetryError when nothing was changed, or with a
 * VacancyUnknownOutcomeError.
 */
export type VacancyClient = {
  /** Names of the shard's rate features, in bit order, as of the latest connection. */
  readonly rateFeatures: readonly string[]
  status(): ClientStatus

  /** The shard's rate features, fetched again (GETCODECS). */
  listRateFeatures: PlainMethod<Result<'GETCODECS'>['rateFeatures']>
  /** Segments that have a property, with the number of their properties (GETSEGMENTS). */
  listSegments: PlainMethod<Result<'GETSEGMENTS'>['segments']>

  /** Adds a property or replaces its attributes; its packages stay (SETPROP). */
  setProperty: Method<'SETPROP', void>
  /** Ids of the properties of a segment that match all filters (SEARCHPROP). Coordinates in degrees, radius in metres. */
  searchProperties: (fields: PropertySearch, options?: CallOptions) => Promise<string[]>
  /**
   * Properties with a package on every night that passes all filters, with their nights (SEARCHAVAIL). Ordered or
   * bounded by the total, each has its `total`, the prices of all nights of one room; `want` adds other values.
   */
  searchAvailability: <const F extends AvailabilitySearch>(
    fields: F,
    options?: CallOptions,
  ) => Promise<AvailabilityHit<F>[]>
  /**
   * One page of `limit` properties in the given order, from its first page or from `cursor` on. A cursor belongs to its
   * search, except for `limit`, `want`, `count` and `compact`, and is valid on all nodes of the shard.
   */
  searchPage: <const F extends AvailabilityPageSearch>(
    fields: F,
    options?: CallOptions,
  ) => Promise<SearchPage<F, AvailabilityHit<F>>>
  /**
   * All pages, each asked for when the loop comes to it. Properties whose place changes meanwhile come once or not at
   * all, all others once: a page may have fewer than `limit`.
   */
  searchPages: <const F extends AvailabilityPageSearch>(
    fields: F,
    options?: CallOptions,
  ) => AsyncIterable<SearchPage<F, AvailabilityHit<F>>>
  /**
   * The lowest total of a stay from each arrival day, with the number of properties that fit and the cheapest of them
   * (PRICECAL): of one property (`propertyId`) or of a whole search.
   */
  priceCalendar: (fields: CalendarSearch, options?: CallOptions) => Promise<CalendarDay[]>
  /**
   * One page of properties with their best stay among all arrival days and numbers of nights: the lowest price per
   * night (SEARCHFLEX). Pages and cursors are as for `searchPage`; without an order they are ordered by total.
   */
  searchFlexible: <const F extends FlexibleSearch>(
    fields: F,
    options?: CallOptions,
  ) => Promise<SearchPage<F, FlexibleHit<F>>>
  /** The same as `searchPage` for properties by their attributes (SEARCHPROP). */
  searchPropertyPage: <const F extends PropertyPageSearch>(
    fields: F,
    options?: CallOptions,
  ) => Promise<SearchPage<F, PropertyHit<F>>>
  /** The same as `searchPages` for properties by their attributes (SEARCHPROP). */
  searchPropertyPages: <const F extends PropertyPageSearch>(
    fields: F,
    options?: CallOptions,
  ) => AsyncIterable<SearchPage<F, PropertyHit<F>>>
  /** Whether the property exists (PROPEXIST). */
  propertyExists: Method<'PROPEXIST', boolean>
  /** Removes a property and everything below it (DELPROP). */
  deleteProperty: Method<'DELPROP', void>
  /** Removes a segment's properties and everything below them (DELSEGMENT). */
  deleteSegment: Method<'DELSEGMENT', void>

  /**
   * Creates or changes the package of a night. Omitted values are unchanged, or 0 or none in a new package
   * (SETROOMPKG).
   */
  setPackage: Method<'SETROOMPKG', void>
  /** The package of a night (GETPROPROOMDAY). */
  getPackage: Method<'GETPROPROOMDAY', Result<'GETPROPROOMDAY'>>
  /** Removes the package of a night (DELROOMDAY). */
  deletePackage: Method<'DELROOMDAY', void>
  /** Removes a date from all room types of a property (DELPROPDAY). */
  deletePropertyDay: Method<'DELPROPDAY', void>

  /** Sets the rooms left on a night. @returns rooms left (SETROOMAVL) */
  setAvailability: Method<'SETROOMAVL', number>
  /** Gives rooms back; `OVERFLOW` past 255. @returns rooms left (INCROOMAVL) */
  increaseAvailability: Method<'INCROOMAVL', number>
  /** Takes rooms; `UNDERFLOW` when fewer are left. @returns rooms left (DECROOMAVL) */
  decreaseAvailability: Method<'DECROOMAVL', number>

  /** Whether the property has the room type (PROPROOMEXIST). */
  roomTypeExists: Method<'PROPROOMEXIST', boolean>
  /** Room types of a property (PROPROOMLIST). */
  listRoomTypes: Method<'PROPROOMLIST', string[]>
  /** Dates on which a room type has a package, ascending (PROPROOMDATELIST). */
  listDates: Method<'PROPROOMDATELIST', string[]>
  /** Removes a room type with all its packages (DELPROPROOM). */
  deleteRoomType: Method<'DELPROPROOM', void>

  /**
   * Takes all nights of all lines, or none (BOOKSTAY). Each call on a stay may be repeated: its id makes the call count
   * once. A refusal has the night in `details`.
   */
  bookStay: (fields: TakeFields<'BOOKSTAY'>, options?: CallOptions) => Promise<Result<'BOOKSTAY'>>
  /** The same until a deadline; repeated with the same lines, it moves the deadline (HOLDSTAY). */
  holdStay: (fields: TakeFields<'HOLDSTAY'>, options?: CallOptions) => Promise<Result<'HOLDSTAY'>>
  /** Makes a held stay booked; with `retake`, also one that expired, if its rooms are still free (CONFIRMSTAY). */
  confirmStay: (stayId: string, conditions?: ConfirmConditions, options?: CallOptions) => Promise<Result<'CONFIRMSTAY'>>
  /** Gives the rooms of a stay back (RELEASESTAY). */
  releaseStay: (stayId: string, release?: ReleaseConditions, options?: CallOptions) => Promise<Result<'RELEASESTAY'>>
  /** One stay (GETSTAY). */
  stay: (stayId: string, options?: CallOptions) => Promise<Result<'GETSTAY'>>
  /** The stays of a property, a room type or a night, newest first (LISTSTAYS). */
  stays: Method<'LISTSTAYS', Result<'LISTSTAYS'>>

  /** Any command by its wire name, with the whole result. Use it for `explain` and `wantIndex`. */
  send<Name extends Exclude<CommandName, 'LOGIN'>>(
    command: Name,
    fields: RequestFields<Name>,
    options?: CallOptions,
  ): Promise<Result<Name>>

  /** Accepts no further calls, waits until pending ones are settled, and closes the connections. */
  close(): Promise<void>
}

/** A slot for one connection, which is reopened whenever it is lost. */
type Link = {
  /** One, or the routers of which each socket uses one at a time. */
  readonly addresses: readonly Address[]
  /** Index of the address in use. */
  at: number
  /** Undefined with a single node. */
  readonly node: ShardNode | undefined
  connection: Connection | undefined
  failures: number
  /** Addresses that refused this client in a row. */
  refusals: number
  /** The last attempt failed, at all addresses, and calls must not wait for the next one. */
  isRefused: boolean
  stopPause: () => void
}

type State = {
  readonly world: World
  readonly settings: Settings
  readonly calls: Calls
  readonly links: Link[]
  readonly discovery: Discovery | undefined
  rateFeatures: readonly string[]
  /** Greatest index of an acknowledged write: of each segment through routers, as shards count alone, else under ''. */
  readonly lastIndexes: Map<string, number | bigint>
  isClosed: boolean
  closing: Promise<void> | undefined
  /** Reports the result of `connect`. */
  started: (error?: VacancyCallError) => void
}

/**
 * Connects to a node and fetches its codec list. Retries until `connectDeadlineMs`.
 *
 * @throws VacancyRequestError for an invalid option; VacancyClientError when the token is refused; VacancyRetryError
 * when no connection is ready in time
 */
export function connect(options: ClientOptions = {}): Promise<VacancyClient> {
  return connectIn(systemWorld, options)
}

/** The same with an environment of the caller. */
export async function connectIn(world: World, options: ClientOptions): Promise<VacancyClient> {
  const settings = checkOptions(options)
  const { connectDeadlineMs, isShard, nodes } = settings
  const topology = isShard ? createTopology(world, nodes, settings.reads) : undefined
  const calls = callsOf(world, settings, topology)
  const state: State = {
    world,
    settings,
    calls,
    links: linksTo(world, settings, topology),
    discovery: topology && startDiscovery(topology, settings),
    rateFeatures: [],
    lastIndexes: new Map(),
    isClosed: false,
    closing: undefined,
    started: () => {},
  }
  const failure = await new Promise<VacancyCallError | undefined>((resolve) => {
    const stopDeadline = world.after(connectDeadlineMs, () => state.started(reasonOfNoConnection(state)))
    state.started = (error) => {
      stopDeadline()
      state.started = () => {}
      resolve(error)
    }
    for (const link of state.links) fill(state, link)
  })
  if (failure) {
    await hangUpAll(state)
    throw failure
  }
  return face(state)
}

function callsOf(world: World, settings: Settings, topology: Topology | undefined): Calls {
  const { maxInFlight, connections, nodes, maxQueued, requestKeys, retry } = settings
  const sockets = connections * (topology ? nodes.length : 1)
  const unsettledMax = maxInFlight * sockets + maxQueued
  const calls = createCalls(world, { inFlightMax: maxInFlight, unsettledMax, hasKeys: requestKeys, retry }, topology)
  if (topology) topology.changed = () => takeTurnSoon(calls)
  return calls
}

function linksTo(world: World, { nodes, connections }: Settings, topology: Topology | undefined): Link[] {
  if (topology) return nodes.flatMap(({ address }, i) => linksOf([address], 0, topology.nodes[i], connections))
  // Clients with the same list spread over the routers, each with all its sockets on one.
  const first = Math.floor(world.random() * nodes.length)
  return linksOf(
    nodes.map(({ address }) => address),
    first,
    undefined,
    connections,
  )
}

function linksOf(addresses: readonly Address[], at: number, node: ShardNode | undefined, count: number): Link[] {
  return Array.from({ length: count }, () => ({
    addresses,
    at,
    node,
    connection: undefined,
    failures: 0,
    refusals: 0,
    isRefused: false,
    stopPause: () => {},
  }))
}

function reasonOfNoConnection({ calls, settings, links }: State): VacancyCallError {
  if (calls.connectionFailure) return calls.connectionFailure
  const { nodes, connectDeadlineMs } = settings
  const late = `not ready within ${connectDeadlineMs} ms`
  const reason = [...new Set(links.map(({ connection }) => connection?.reasonOf(late) ?? late))].join('; ')
  const address = nodes.map((node) => textOfAddress(node.address)).join(', ')
  return errorOfClient('connection_failed', { command: undefined, inDoubt: false }, { address, reason })
}

function fill(state: State, link: Link): void {
  const { calls } = state
  const { topology } = calls
  link.connection = openConnection(state.world, connectionSettings(state, link), {
    opened(connection) {
      link.isRefused = false
      link.refusals = 0
      calls.connections.add(connection)
      if (topology && link.node) nodeOpened(topology, link.node, connection)
      state.rateFeatures = connection.codecs?.names ?? []
      state.started()
      takeTurnSoon(calls)
    },
    drained: () => takeTurnSoon(calls),
    answered: (call: Call, payload, sent) => callAnswered(calls, call, payload, sent),
    lost: (call: Call, error) => callLost(calls, call, error),
    closed(connection, error) {
      calls.connections.delete(connection)
      if (topology && link.node) nodeClosed(topology, link.node, connection)
      link.connection = undefined
      if (!state.isClosed) refill(state, link, connection, error)
    },
  })
}

function refill(state: State, link: Link, lost: Connection, error: VacancyCallError): void {
  const { world, calls } = state
  const count = link.addresses.length
  calls.connectionFailure = error
  link.refusals = error instanceof VacancyRetryError ? 0 : link.refusals + 1
  link.isRefused = !state.settings.retry || link.refusals >= count
  // Another node of the shard may accept what this one refuses.
  const isHopeless = state.settings.isShard ? state.links.every((other) => other.isRefused) : link.isRefused
  if (isHopeless && calls.connections.size === 0) {
    state.started(error)
    failWaiting(calls, error)
  }
  const wasGood = lost.openedMs > 0 && world.clock.monotonicMs() - lost.openedMs >= GOOD_CONNECTION_MS
  link.failures = wasGood ? 0 : link.failures
  link.at = (link.at + 1) % count
  // The next router is tried at once, and the first one again after a pause.
  const rounds = Math.floor(link.failures++ / count)
  const isRoundOver = link.failures % count === 0
  const pauseMs = isRoundOver ? reconnectDelayMs(rounds, world.random()) : 0
  link.stopPause = world.after(pauseMs, () => fill(state, link))
}

function connectionSettings({ settings }: State, { addresses, at }: Link): ConnectionSettings {
  return {
    address: addresses[at] as Address,
    tls: settings.tls,
    token: settings.token,
    isRouter: settings.isRouter,
    handshakeMs: settings.connectDeadlineMs,
    silenceMs: Math.ceil(settings.deadlineMs * SILENCE_SHARE),
  }
}

/** Checked when a deadline passes, so a little less silence is enough. */
const SILENCE_SHARE = 3 / 4

function face(state: State): VacancyClient {
  const ask = <Name extends CommandName>(command: Name, fields: RequestFields<Name>, options?: CallOptions) =>
    call(state, command, fields, options, whole<Name>)
  const pick = <Name extends CommandName, Picked>(command: Name, of: (result: Result<Name>) => Picked) => {
    return (fields: RequestFields<Name>, options?: CallOptions) => call(state, command, fields, options, of)
  }
  return {
    get rateFeatures() {
      return state.rateFeatures
    },
    status: () => statusOf(state),

    listRateFeatures: (options) => call(state, 'GETCODECS', {}, options, ({ rateFeatures }) => rateFeatures),
    listSegments: (options) => call(state, 'GETSEGMENTS', {}, options, ({ segments }) => segments),

    setProperty: pick('SETPROP', nothing),
    ...searchesOf(state, ask),
    propertyExists: pick('PROPEXIST', ({ exists }) => exists),
    deleteProperty: pick('DELPROP', nothing),
    deleteSegment: pick('DELSEGMENT', nothing),

    setPackage: pick('SETROOMPKG', nothing),
    getPackage: pick('GETPROPROOMDAY', whole<'GETPROPROOMDAY'>),
    deletePackage: pick('DELROOMDAY', nothing),
    deletePropertyDay: pick('DELPROPDAY', nothing),

    setAvailability: pick('SETROOMAVL', ({ availability }) => availability),
    increaseAvailability: pick('INCROOMAVL', ({ availability }) => availability),
    decreaseAvailability: pick('DECROOMAVL', ({ availability }) => availability),

    roomTypeExists: pick('PROPROOMEXIST', ({ exists }) => exists),
    listRoomTypes: pick('PROPROOMLIST', ({ roomTypes }) => roomTypes),
    listDates: pick('PROPROOMDATELIST', ({ dates }) => dates),
    deleteRoomType: pick('DELPROPROOM', nothing),

    bookStay: ({ reinstate, ...rest }, options) =>
      ask('BOOKSTAY', { ...rest, ...(reinstate && { reinstate: 1 }) }, options),
    holdStay: ({ reinstate, ...rest }, options) =>
      ask('HOLDSTAY', { ...rest, ...(reinstate && { reinstate: 1 }) }, options),
    confirmStay: (stayId, { retake, ...rest } = {}, options) =>
      ask('CONFIRMSTAY', { stayId, ...(retake && { retake: 1 }), ...rest }, options),
    releaseStay: (stayId, { void: isVoid, unrecorded, ...rest } = {}, options) => {
      const flags = { ...(isVoid && { void: 1 }), ...(unrecorded && { unrecorded: 1 }) }
      return ask('RELEASESTAY', { stayId, ...flags, ...rest }, options)
    },
    stay: (stayId, options) => ask('GETSTAY', { stayId }, options),
    stays: (fields, options) => ask('LISTSTAYS', fields, options),

    send: ask,
    close: () => close(state),
  }
}

type Searches =
  | 'searchProperties'
  | 'searchAvailability'
  | 'priceCalendar'
  | 'searchFlexible'
  | `search${'' | 'Property'}Page${'' | 's'}`

/** The types of the methods promise what the fields of a search say about its results, which is beyond these types. */
function searchesOf(state: State, ask: VacancyClient['send']): Pick<VacancyClient, Searches> {
  const asking = (options?: CallOptions) => (command: SearchCommand, fields: object) =>
    ask(command, fields as never, options) as Promise<never>
  const plain =
    <Name extends Exclude<SearchCommand, 'SEARCHFLEX'>>(command: Name, picked: (result: Result<Name>) => unknown) =>
    (fields: object, options?: CallOptions) => {
      let sent: RequestFields<Name>
      try {
        sent = plainSearch(command, fields)
      } catch (error) {
        return Promise.reject(error)
      }
      return call(state, command, sent, options, picked)
    }
  const searches = {
    searchProperties: plain('SEARCHPROP', ({ propertyIds }) => propertyIds),
    searchAvailability: plain('SEARCHAVAIL', ({ properties }) => properties),
    searchPage: (fields: object, options?: CallOptions) => searchPage('SEARCHAVAIL', fields, asking(options)),
    searchPages: (fields: object, options?: CallOptions) => searchPages('SEARCHAVAIL', fields, asking(options)),
    priceCalendar: plain('PRICECAL', ({ days }) => days),
    searchFlexible: (fields: object, options?: CallOptions) => searchPage('SEARCHFLEX', fields, asking(options)),
    searchPropertyPage: (fields: object, options?: CallOptions) => searchPage('SEARCHPROP', fields, asking(options)),
    searchPropertyPages: (fields: object, options?: CallOptions) => searchPages('SEARCHPROP', fields, asking(options)),
  }
  return searches as unknown as Pick<VacancyClient, Searches>
}

function statusOf({ calls: { topology, connections, unsettled } }: State): ClientStatus {
  const status = {
    connections: connections.size,
    unsettled: unsettled.size,
    inFlight: [...connections].reduce((sum, { onTheirWay }) => sum + onTheirWay.size, 0),
  }
  if (!topology) return status
  const nodes = topology.nodes.map((node) => ({
    address: textOfAddress(node.address),
    connections: node.connections.size,
    role: node.role,
  }))
  return { ...status, nodes }
}

const CALL_OPTIONS: readonly (keyof CallOptions)[] = [
  ...([
    'deadlineMs',
    'signal',
    'watch',
    'segment',
    'maxStalenessMs',
    'minIndex',
    'linearizable',
    'traceparent',
  ] as const),
]

const NO_OPTIONS: CallOptions = {}

function whole<Name extends CommandName>(result: Result<Name>): Result<Name> {
  return result
}

function nothing(): void {}

/** One promise from the caller to the reply: each further one costs about as much as the rest of a call. */
function call<Name extends CommandName, Picked>(
  state: State,
  command: Name,
  fields: RequestFields<Name>,
  options: CallOptions = NO_OPTIONS,
  pick: (result: Result<Name>) => Picked,
): Promise<Picked> {
  return new Promise((resolve, reject) => {
    refuseWrongCall(state, command, fields, options)
    const { settings, calls, lastIndexes } = state
    const envelope = settings.isRouter ? envelopeOf(command, fields, options) : undefined
    const place = envelope?.segment ?? ''
    const ask = (lastIndex: number | bigint, deadlineMs: number, failed: (error: unknown) => void) =>
      makeCall(calls, {
        command,
        fields: withTrace(
          withModes(settings, command, fields, options, lastIndex),
          options,
        ) as RequestFields<CommandName>,
        envelope,
        deadlineMs,
        signal: options.signal,
        watch: options.watch,
        resolve(result) {
          if (settings.readYourWrites) noteIndex(lastIndexes, place, result)
          resolve(pick(result as Result<Name>))
        },
        reject: failed,
      })
    const deadlineMs = options.deadlineMs ?? settings.deadlineMs
    const known = lastIndexes.get(place) ?? 0
    if (known === 0 || options.minIndex !== undefined || 'minIndex' in fields) return ask(known, deadlineMs, reject)
    const endMs = state.world.clock.monotonicMs() + deadlineMs
    ask(known, deadlineMs, (error) => {
      if ((error as VacancyCallError).code !== 'UNKNOWN_INDEX') return reject(error)
      // The data are of another life, from before a restore, or of another shard: what this client knew says nothing.
      if (lastIndexes.get(place) === known) lastIndexes.delete(place)
      try {
        ask(lastIndexes.get(place) ?? 0, Math.max(1, Math.ceil(endMs - state.world.clock.monotonicMs())), reject)
      } catch (refused) {
        reject(refused)
      }
    })
  })
}

/** @throws VacancyRequestError, or that the client is closed */
function refuseWrongCall(state: State, command: CommandName, fields: object, options: CallOptions): void {
  if (!Object.hasOwn(COMMANDS, command) || command === 'LOGIN') throw badArgument(undefined, `no command ${command}`)
  if (typeof fields !== 'object' || fields === null) throw badArgument(command, `${command} takes an object of fields`)
  if (state.closing) throw errorOfClient('client_closed', { command, inDoubt: false }, {})
  if (options === NO_OPTIONS) return
  const fault = optionFault(options, CALL_OPTIONS)
  if (fault !== '') throw badArgument(command, fault)
  if (options.deadlineMs !== undefined) wholeNumber('deadlineMs', options.deadlineMs, DEADLINE_MS_MAX)
}

function noteIndex(lastIndexes: State['lastIndexes'], place: string, result: Result): void {
  const index = 'appliedIndex' in result ? result.appliedIndex : 'index' in result ? result.index : undefined
  if (index !== undefined && index > (lastIndexes.get(place) ?? 0)) lastIndexes.set(place, index)
}

/** The fields, with those that the options of the call and of the client add. */
function withModes(
  { readYourWrites }: Settings,
  command: CommandName,
  fields: object,
  options: CallOptions,
  lastIndex: number | bigint,
): object {
  const { maxStalenessMs, minIndex, linearizable } = options
  const hasReadOptions = maxStalenessMs !== undefined || minIndex !== undefined || linearizable !== undefined
  if (COMMANDS[command].access !== 'read') {
    if (hasReadOptions) throw badArgument(command, `${command} is not a read and takes no read options`)
    return readYourWrites ? { ...fields, wantIndex: 1 } : fields
  }
  const leastIndex = minIndex ?? (readYourWrites && !('minIndex' in fields) ? lastIndex : 0)
  if (!hasReadOptions && leastIndex === 0) return fields
  return {
    ...fields,
    ...(maxStalenessMs === undefined ? {} : { maxStalenessMs }),
    ...(leastIndex === 0 ? {} : { minIndex: leastIndex }),
    ...(linearizable === undefined ? {} : { linearizable: linearizable ? 1 : 0 }),
  }
}

/** The fields with the trace of the caller. */
function withTrace(fields: object, { traceparent }: CallOptions): object {
  const context = traceparent === undefined ? undefined : parseTraceparent(traceparent)
  return context === undefined ? fields : { ...fields, trace: traceparentOf(context) }
}

function envelopeOf(command: CommandName, fields: object, options: CallOptions): Envelope {
  const write = COMMANDS[command].access === 'write'
  if (command === 'GETCODECS') return { segment: CODECS_SEGMENT, write }
  if (command === 'GETSEGMENTS') return { segment: SEGMENTS_SEGMENT, write }
  const segment = options.segment ?? ('segment' in fields ? fields.segment : undefined)
  if (typeof segment === 'string') return { segment, write }
  throw badArgument(command, `${command} has no segment, which a router requires: set { segment } in the call options`)
}

function close(state: State): Promise<void> {
  state.closing ??= new Promise<void>((resolve) => {
    state.calls.whenIdle = resolve
    if (state.calls.unsettled.size === 0) resolve()
  }).then(() => hangUpAll(state))
  return state.closing
}

async function hangUpAll(state: State): Promise<void> {
  state.isClosed = true
  if (state.discovery) stopDiscovery(state.discovery)
  if (state.calls.topology) stopTopology(state.calls.topology)
  stopCalls(state.calls)
  for (const link of state.links) link.stopPause()
  await Promise.all(state.links.map(({ connection }) => connection && hangUp(connection)))
}
