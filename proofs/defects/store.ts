/** Rules of docs/design/consensus.md#request-keys, docs/design/consensus.md#apply and docs/design/stays.md that the store breaks. */
import { type Defect, inFolder, simulated } from './defect.ts'

const by = (profile = 'crash') => simulated('driver', profile)
/** Only threads that read beside the writer meet them: the simulation is sequential. */
const READER_TESTS = { tests: 'engine/src/store/structure.long.test.ts' }

const inStore = inFolder('engine/src/store')
const inEngine = inFolder('engine/src')

export const STORE_DEFECTS: readonly Defect[] = [
  ...inStore(by(), {
    // A request is identified by its number alone, regardless of its session.
    'sessions/key-without-session': [
      'apply.ts: , bytes, key, → , new Uint8Array(16), 0,',
      'apply.ts: , bytes, key → , new Uint8Array(16), 0',
    ],
    // The retry of a refused request is executed again.
    'sessions/failed-not-kept':
      'apply.ts: storeResult( → if (applied.code !== OUTCOME.done) return settleSession(store, session)\n  storeResult(',
    // A refusal for lack of memory is stored, so that its retry is refused even if memory is available by then.
    'sessions/refused-stored': 'apply.ts: isRetryable) → false)',
    // A decrement is not checked against the rooms left.
    'apply/decrement-unchecked': [
      'apply-packages.ts:   if (reader.kind === KIND.decreaseAvailability && left < amount) return fail(context, OUTCOME.underflow, left)\n → ',
      'apply-packages.ts: left - amount → (left - amount) & 0xff',
    ],
    // Whether a hold has expired is decided by the clock of this node, which the simulation adds to its store.
    'stays/expiry-by-local-clock':
      'apply-stays.ts: writer\n  const { timeMs } = reader → writer\n  const timeMs = store.writer.localTimeMs?.() ?? reader.timeMs',
    // A release returns the rooms of a stay that has none.
    'stays/release-unchecked': 'apply-stays.ts: if (!isTaken(reached)) return\n   → ',
    // Rooms that are missing for holds are forgotten.
    'stays/debt-forgotten': 'nights.ts: if (found == → debt = 0\n  if (found ==',
    // A late absolute value puts rooms back on sale that were sold since.
    'stays/as-of-ignored': 'as-of.ts: const property → return value\n  const property',
    // A refused stay has taken the nights before the one that is sold out.
    'stays/partly-taken':
      'apply-stays.ts: if (night.wanted > offered) {\n → if (night.wanted > offered) {\n        commit(context, plan)\n',
    // A hold that replaces a stay ends it at once, so that an abandoned change cancels a booking.
    'stays/replaced-by-hold': 'apply-stays.ts: if (isHold && isNew) → if (false)',
    // A change that is not confirmed gives back the rooms of the stay that it was to replace.
    'stays/change-returns-all': 'stays.ts: if (night) night.rooms -= rooms → ',
    // The stay that a change replaces keeps its rooms when the change is confirmed.
    'stays/replaced-stays': 'apply-stays.ts:   if (replaced !== 0) release(store, replaced, index, timeMs)\n → ',
    // A release with lines returns rooms that its id never took.
    'stays/release-untaken': 'apply-stays.ts: isKnown = ( → isKnown = true || (',
    // A booking takes an id that was released, without the flag.
    'stays/reinstated-by-repeat': 'apply-stays.ts: return reinstate === REINSTATE_ANY → return reinstate === 0',
    // A hold is confirmed although its rooms are no longer there.
    'stays/confirmed-without-rooms': 'stay-plan.ts: plan.isHold ? free : Math.max(0, Math.min(free, base)) → free',
    // Rooms on hold without a package are not counted as missing.
    'stays/missing-uncounted': 'nights.ts: < LEDGER_LEVEL ? 0 : heldOn(store.memory, night) → < LEDGER_LEVEL ? 0 : 0',
    // An index of a former life of the data is believed.
    'indexes/former-life': "client-index.ts: return index < firstIndex(memory) ? 'below' : → return",
    // So is one of the future.
    'indexes/of-the-future': "client-index.ts: if (index >= next) return 'above'\n → \n",
    // Data that are restored count on from the indexes of the backup.
    'indexes/count-on': 'client-index.ts: const begin = now > known ? now : → const begin = known > 0 ? known :',
    // After a restore, an index of the life before it is believed, from the first index of the first life on.
    'indexes/of-the-life-before': [
      'client-index.ts: if (featureLevel(store.memory) >= INDEX_LEVEL) setFirstIndex(store, Number.MAX_SAFE_INTEGER) → ',
      'client-index.ts: setFirstIndex(store, begin)\n  return → if (firstIndex(store.memory) === 0) setFirstIndex(store, begin)\n  return',
    ],
    // Which day it is, once its beginning has moved, is decided by the clock of this node.
    'day/begins-by-local-clock':
      'stay-settings.ts: dayAt(store.memory, reader.timeMs) → dayAt(store.memory, store.writer.localTimeMs?.() ?? reader.timeMs)',
    // Stays are not part of the state digest.
    'stays/not-in-digest':
      'stays.ts: function addStayDigest(store: Store, stay: number, sign: 1 | -1): void {\n → function addStayDigest(store: Store, stay: number, sign: 1 | -1): void {\n  return\n',
  }),
  ...inStore(
    { tests: 'engine/src/store/apply.test.ts', named: 'day that begins' },
    {
      // Maintenance does not come again when the day went back.
      'day/no-maintenance-again':
        'stay-settings.ts: if (state(store.memory, STATE.lastMaintenanceDay) > today) → if (false)',
    },
  ),
  ...inStore(by('snapshot'), {
    // The session to evict is chosen by the order of a map of this process instead of by the log.
    'sessions/evicted-by-map':
      'sessions.ts: removeSession(store, state(memory, STATE.sessionHead) → const [first = state(memory, STATE.sessionHead)] = store.writer.sessions.values()\n    removeSession(store, first',
    // Sessions of a snapshot are loaded into memory but not indexed.
    'sessions/lost-at-load': 'sessions.ts: session, 1)\n  }\n → session, 1)\n  }\n  store.writer.sessions.clear()\n',
    // The digest covers sessions, but not their results.
    'sessions/results-not-in-digest': 'sessions.ts: if (featureLevel(memory) < 1)  → ',
    // Whether a command fits is decided by the memory that this replica has allocated.
    'apply/own-memory-decides': [
      'apply-context.ts: growthLeft } → growthLeft, memoryBudget }',
      'apply-context.ts: if (fitsBudget → const { records, planes, gap } = store.writer\n  const budget = memoryBudget(store.memory)\n  const own = 3 * (planes.origin - records.origin - gap.high + gap.low) + growth <= budget\n  if (budget > 0 ? own : fitsBudget',
    ],
    // A page changes while a snapshot is written, and the snapshot gets the new content.
    'cow/pages-not-copied': 'cow.ts: bytes: number): void {\n → bytes: number): void {\n  return\n',
  }),
  ...inStore(by('disk'), {
    // A replica whose memory has no free block ends as for an internal error.
    'memory/exhausted-as-fault':
      "store.ts: throw new VacancyError → assert(false, 'there is room for every write that is not refused')\n  throw new VacancyError",
  }),
  ...inStore(by('calm'), {
    // A property that is deleted and set again has none of the rooms that are on hold.
    'stays/refresh-ends-holds':
      'apply-properties.ts:   if (featureLevel(store.memory) >= LEDGER_LEVEL) return oweNightsOf(store, stayProperty)\n → ',
  }),
  ...inStore(
    { tests: 'engine/src/store/ledger-level.test.ts' },
    {
      // A property inherits stays of a deleted one with its id from before feature level 4.
      'stays/generation-ignored':
        'stays.ts: nextGeneration(store: Store, property: number): void {\n → nextGeneration(store: Store, property: number): void {\n  return\n',
    },
  ),
  ...inStore(
    { tests: 'engine/src/store/stay-changes.test.ts' },
    {
      // A late repeat of a release ends a later booking of the same id.
      'stays/release-of-former-life': 'apply-stays.ts: return bookedAt > 0 && isTaken → return false && isTaken',
      // Nights that have passed are given back, and taken again by the stay that keeps them.
      'stays/past-nights-returned': 'stay-plan.ts: (featureLevel(memory) >= LEDGER_LEVEL && day < today) → false',
      // When bytes run out, bookings go before stays that have ended. A run has too few stays for that.
      'stays/bookings-forgotten-first': 'forget.ts: return hasDeparted && → return true ||',
    },
  ),
  ...inStore(
    { tests: 'engine/src/store/stays-readers.test.ts' },
    {
      // One of the tables of a stay changes without a version change.
      'stays/table-unmarked': [
        'stay-plan.ts: ) mark(store → .slice(1)) mark(store',
        'stay-plan.ts: ) unmark(store → .slice(1)) unmark(store',
      ],
    },
  ),
  ...inStore(by('mixed'), {
    // How much of the ledger is kept is read from the configuration of this node, which the simulation adds to its store.
    'stays/settings-from-file':
      "forget.ts: staySetting(memory, 'stays_bytes')\n → writer.localStaysBytes ?? staySetting(memory, 'stays_bytes')\n",
    // A booking is forgotten 72 h after it was made, not after its last night.
    'stays/forgotten-early': 'stays.ts:   if (reached === STAY_STATE.booked) endMs = departureMs\n → ',
    // A late repeat books a stay that was released, once its record is gone.
    'stays/released-forgotten-early':
      'stays.ts:   if (reached === STAY_STATE.released) endMs = Math.max(timeMs, departureMs)\n → ',
  }),
  ...inStore(READER_TESTS, {
    // Tables change without a version change that readers could detect.
    'version/unmarked': [
      'version.ts: depth === 0) → false)',
      'version.ts: delete(table)\n → delete(table)\n  return\n',
    ],
  }),
  ...inStore(
    { tests: 'engine/src/store/version.test.ts', named: 'waits for the oldest reader' },
    {
      // Memory that a reader may still access is reused.
      'version/reclaims-early': 'version.ts: Atomics.load(i32, readerCell(reader)) → 0',
    },
  ),
  ...inEngine(
    { tests: 'engine/src/search/page.test.ts' },
    {
      // Equal keys are ordered by row. The kernel is compared with its reference, so the node runs the reference only.
      'search/tie-by-row': [
        'testing/search-reference.ts: const candidate = { key, high: view.getBigUint64(id), low: view.getBigUint64(id + 8), row } → const candidate = { key, high: 0n, low: BigInt(row), row }',
        'testing/node-in-memory.ts: [loadKernels(store.memory), → [{ ...referenceKernels(store.memory), put: loadKernels(store.memory).put },',
      ],
      // The next page begins one entry late.
      'search/cursor-off-by-one':
        'search/page.ts: entries + (size - 1) * ENTRY.bytes → entries + (size - 2) * ENTRY.bytes',
      // The number of matches is that of the page.
      'search/count-cut-at-limit': 'search/page.ts: BigInt(progress.matches) → BigInt(progress.size)',
      // A box from 179 to -179 degrees is empty.
      'search/box-without-wrap': 'search/page-query.ts: page.west > page.east ? BOX.across : BOX.within → BOX.within',
      // 180 and -180 degrees are two meridians.
      'search/two-meridians': 'search/page-query.ts: page.east === 180 → page.east === 200',
      // Of equal totals, the room type that was found last is named.
      'search/last-of-equal-rooms': 'search/merge.ts: total >= totals[place] → total > totals[place]',
      // A price that changed after it was read stays in the order of the old one.
      'search/key-not-compared': 'testing/search-reference.ts: if (hasKeyOfTotal &&  → if (false && ',
      // Page 2 may be of an older state than page 1.
      'search/cursor-of-any-age':
        'search/cursor.ts: buffer).getBigUint64(CURSOR.newest, true) → buffer).getBigUint64(CURSOR.newest, true) * 0n',
      // A cursor continues any search.
      'search/cursor-of-any-search': 'search/page-query.ts: found === digestOfSearch(values, genesis) → found >= 0',
    },
  ),
  ...inEngine(
    { tests: 'engine/src/search/facets.test.ts' },
    {
      // Values are counted until the page is full.
      'counts/cut-at-limit': 'search/page.ts: page.count !== 1 && !progress.tally ? → page.count !== 1 ?',
      // A value is counted with the filter of its own facet.
      'counts/own-filter-kept': 'search/facets.ts: return tally ? passOf(tally).without : 0 → return tally ? 0 : 0',
      // The columns of a box across 180 degrees have no width.
      'counts/cells-without-wrap': 'search/facets.ts: (page.box === BOX.across ? 360 : 0) → 0',
    },
  ),
  ...inEngine(
    { tests: 'engine/src/search/calendar.test.ts' },
    {
      // A stay fits without a night that is past the window.
      'calendars/night-outside-window': [
        'testing/calendar-reference.ts: if (plane === 0) break → if (plane === 0 && stays.push({ arrival, nights, total }) > 0) break',
        'testing/node-in-memory.ts: [loadKernels(store.memory), → [{ ...referenceKernels(store.memory), put: loadKernels(store.memory).put },',
      ],
      // The last arrival is a night short.
      'calendars/last-night-missing':
        'search/calendar.ts: for (let night = 0; night < calendar.arrivals + calendar.mostNights - 1; night++) { → for (let night = 0; night < calendar.arrivals + calendar.mostNights - 2; night++) {',
    },
  ),
]
