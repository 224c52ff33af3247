/** Rules of docs/design/consensus.md#request-keys, docs/design/consensus.md#apply and docs/design/stays.md that the store breaks. */
import { type Defect, inFolder, simulated } from './defect.ts'

const by = (profile = 'crash') => simulated('driver', profile)
/** Only threads that read beside the writer meet them: the simulation is sequential. */
const READER_TESTS = { tests: 'engine/src/store/structure.long.test.ts' }

export const STORE_DEFECTS: readonly Defect[] = inFolder('engine/src/store', [
  {
    // A request is identified by its number alone, regardless of its session.
    name: 'sessions/key-without-session',
    edits: [
      ['apply.ts', 'lookUpRequest(store, bytes, key, number', 'lookUpRequest(store, new Uint8Array(16), 0, number'],
      ['apply.ts', 'found : sessionOf(store, bytes, key)', 'found : sessionOf(store, new Uint8Array(16), 0)'],
    ],
    foundBy: by(),
  },
  {
    // The retry of a refused request is executed again.
    name: 'sessions/failed-not-kept',
    edits: [
      [
        'apply.ts',
        '  storeResult(store, session, number, applied.code,',
        '  if (applied.code !== OUTCOME.done) return settleSession(store, session)\n  storeResult(store, session, number, applied.code,',
      ],
    ],
    foundBy: by(),
  },
  {
    // The session to evict is chosen by the order of a map of this process instead of by the log.
    name: 'sessions/evicted-by-map',
    edits: [
      [
        'sessions.ts',
        '    removeSession(store, state(memory, STATE.sessionHead))\n  }\n}\n\n/** Removes all',
        '    const [first = state(memory, STATE.sessionHead)] = store.writer.sessions.values()\n    removeSession(store, first)\n  }\n}\n\n/** Removes all',
      ],
    ],
    foundBy: by('snapshot'),
  },
  {
    // Sessions of a snapshot are loaded into memory but not indexed.
    name: 'sessions/lost-at-load',
    edits: [
      [
        'sessions.ts',
        '    addSessionDigest(store, session, 1)\n  }\n}\n',
        '    addSessionDigest(store, session, 1)\n  }\n  store.writer.sessions.clear()\n}\n',
      ],
    ],
    foundBy: by('snapshot'),
  },
  {
    // The digest covers sessions, but not their results.
    name: 'sessions/results-not-in-digest',
    edits: [
      [
        'sessions.ts',
        '  if (featureLevel(memory) < 1) return\n  const { u32, u8 } = memory\n',
        '  return\n  const { u32, u8 } = memory\n',
      ],
    ],
    foundBy: by('snapshot'),
  },
  {
    // A refusal for lack of memory is stored, so that its retry is refused even if memory is available by then.
    name: 'sessions/refused-stored',
    edits: [['apply.ts', '  if (isRetryable) {\n', '  if (false) {\n']],
    foundBy: by(),
  },
  {
    // Whether a command fits is decided by the memory that this replica has allocated.
    name: 'apply/own-memory-decides',
    edits: [
      ['apply-context.ts', 'import { fitsBudget, growthLeft }', 'import { fitsBudget, growthLeft, memoryBudget }'],
      [
        'apply-context.ts',
        '  if (fitsBudget(store, growth, largest)) return false\n  store.writer.lackingAt',
        '  const { records, planes, gap } = store.writer\n  const budget = memoryBudget(store.memory)\n  const own = 3 * (planes.origin - records.origin - gap.high + gap.low) + growth <= budget\n  if (budget > 0 ? own : fitsBudget(store, growth, largest)) return false\n  store.writer.lackingAt',
      ],
    ],
    foundBy: by('snapshot'),
  },
  {
    // A replica whose memory has no free block ends as for an internal error.
    name: 'memory/exhausted-as-fault',
    edits: [
      [
        'store.ts',
        "  throw new VacancyError('memory_exhausted',",
        "  assert(false, 'there is room for every write that is not refused')\n  throw new VacancyError('memory_exhausted',",
      ],
    ],
    foundBy: by('disk'),
  },
  {
    // A page changes while a snapshot is written, and the snapshot gets the new content.
    name: 'cow/pages-not-copied',
    edits: [
      [
        'cow.ts',
        'export function touch(store: Store, address: number, bytes: number): void {\n',
        'export function touch(store: Store, address: number, bytes: number): void {\n  return\n',
      ],
    ],
    foundBy: by('snapshot'),
  },
  {
    // A decrement is not checked against the rooms left.
    name: 'apply/decrement-unchecked',
    edits: [
      [
        'apply-packages.ts',
        '  if (reader.kind === KIND.decreaseAvailability && left < amount) return fail(context, OUTCOME.underflow, left)\n',
        '',
      ],
      ['apply-packages.ts', 'next = left - amount\n', 'next = (left - amount) & 0xff\n'],
    ],
    foundBy: by(),
  },
  {
    // Whether a hold has expired is decided by the clock of this node, which the simulation adds to its store.
    name: 'stays/expiry-by-local-clock',
    edits: [
      [
        'apply-stays.ts',
        '  const { ledger } = store.writer\n  const { timeMs } = reader\n',
        '  const { ledger } = store.writer\n  const timeMs = store.writer.localTimeMs?.() ?? reader.timeMs\n',
      ],
    ],
    foundBy: by(),
  },
  {
    // A release returns the rooms of a stay that has none.
    name: 'stays/release-unchecked',
    edits: [['apply-stays.ts', '  if (!isTaken(reached)) return\n  beginPlan', '  beginPlan']],
    foundBy: by(),
  },
  {
    // Rooms that are missing for holds are forgotten.
    name: 'stays/debt-forgotten',
    edits: [
      [
        'nights.ts',
        '  const found = findNight(store, stayProperty, roomType, day)\n  if (found === 0 && held === 0 && debt === 0) return\n',
        '  const found = findNight(store, stayProperty, roomType, day)\n  debt = 0\n  if (found === 0 && held === 0 && debt === 0) return\n',
      ],
    ],
    foundBy: by(),
  },
  {
    // A late absolute value puts rooms back on sale that were sold since.
    name: 'stays/as-of-ignored',
    edits: [
      [
        'as-of.ts',
        '  const property = findStayProperty(store, memory.u8, id)\n  let base = value\n',
        '  return value\n  const property = findStayProperty(store, memory.u8, id)\n  let base = value\n',
      ],
    ],
    foundBy: by(),
  },
  {
    // A property inherits the holds of a deleted one with its id.
    name: 'stays/generation-ignored',
    edits: [
      [
        'stays.ts',
        'export function nextGeneration(store: Store, property: number): void {\n',
        'export function nextGeneration(store: Store, property: number): void {\n  return\n',
      ],
    ],
    foundBy: by('calm'),
  },
  {
    // One of the tables of a stay changes without a version change.
    name: 'stays/table-unmarked',
    edits: [
      [
        'stay-plan.ts',
        '  for (const table of tables) mark(store, table)\n',
        '  for (const table of tables.slice(1)) mark(store, table)\n',
      ],
      [
        'stay-plan.ts',
        '  for (const table of tables) unmark(store, table)\n',
        '  for (const table of tables.slice(1)) unmark(store, table)\n',
      ],
    ],
    foundBy: { tests: 'engine/src/store/stays-readers.test.ts' },
  },
  {
    // A refused stay has taken the nights before the one that is sold out.
    name: 'stays/partly-taken',
    edits: [
      [
        'apply-stays.ts',
        '      if (!takeRooms(night, line.rooms, isHold)) {\n',
        '      if (!takeRooms(night, line.rooms, isHold)) {\n        commit(context, plan)\n',
      ],
    ],
    foundBy: by(),
  },
  {
    // Stays are not part of the state digest.
    name: 'stays/not-in-digest',
    edits: [
      [
        'stays.ts',
        'function addStayDigest(store: Store, stay: number, sign: 1 | -1): void {\n',
        'function addStayDigest(store: Store, stay: number, sign: 1 | -1): void {\n  return\n',
      ],
    ],
    foundBy: by(),
  },
  {
    // How much of the ledger is kept is read from the configuration of this node, which the simulation adds to its store.
    name: 'stays/settings-from-file',
    edits: [
      [
        'apply-stays.ts',
        "  const limit = staySetting(memory, 'stays_bytes')\n",
        "  const limit = writer.localStaysBytes ?? staySetting(memory, 'stays_bytes')\n",
      ],
    ],
    foundBy: by('mixed'),
  },
  {
    // Tables change without a version change that readers could detect.
    name: 'version/unmarked',
    edits: [
      ['version.ts', '  if (depth === 0) {\n    Atomics.exchange(', '  if (false) {\n    Atomics.exchange('],
      ['version.ts', '  marks.delete(table)\n', '  marks.delete(table)\n  return\n'],
    ],
    foundBy: READER_TESTS,
  },
  {
    // Memory that a reader may still access is reused.
    name: 'version/reclaims-early',
    edits: [['version.ts', 'const epoch = Atomics.load(i32, readerCell(reader))\n', 'const epoch = 0\n']],
    foundBy: READER_TESTS,
  },
])
