import { createRandom, type Random, tries } from '@vacancy/testkit/random'
import { expect, test } from 'vitest'
import {
  call,
  checkHistory,
  complete,
  createHistory,
  MISSING,
  OPERATION_KINDS,
  type Operation,
  type OperationKind,
  type Outcome,
  stateAfter,
} from './history.ts'

const SEED = Number(process.env['VACANCY_SEED'] ?? Date.now() % 1_000_000)

/** `a set 5` calls, `a done 5` returns: a history as a list of lines, one time step each. */
function read(lines: readonly string[]): Operation[] {
  const history = createHistory()
  const open = new Map<string, Operation>()
  for (const line of lines) {
    const [name = '', word = '', number = '0'] = line.split(' ')
    const kind = OPERATION_KINDS.find((known) => known === word)
    if (kind) open.set(name, call(history, 0, 0, kind, Number(number)))
    else complete(history, open.get(name) as Operation, word as Outcome, Number(number))
  }
  return history.operations
}

const verdictOf = (operations: readonly Operation[], initial = MISSING): string =>
  checkHistory(operations, { initial }).verdict

const POSSIBLE: readonly (readonly string[])[] = [
  [],
  ['a read', 'a missing'],
  ['a set 5', 'a done 5', 'b read', 'b done 5'],
  ['a set 5', 'b read', 'b missing', 'a done 5'],
  ['a set 5', 'b read', 'b done 5', 'a done 5'],
  ['a set 5', 'a done 5', 'b set 7', 'c read', 'c done 5', 'd read', 'd done 7', 'b done 7'],
  ['a set 5', 'a done 5', 'b set 7', 'c read', 'c done 5', 'd read', 'd done 5', 'b done 7'],
  // Whether the second set took effect is unknown: both interpretations are valid.
  ['a set 5', 'a done 5', 'b set 7', 'b unknown', 'c read', 'c done 7'],
  ['a set 5', 'a done 5', 'b set 7', 'b unknown', 'c read', 'c done 5'],
  ['a set 5', 'a done 5', 'b set 7', 'b unknown', 'c read', 'c done 5', 'd read', 'd done 7', 'e read', 'e done 7'],
  ['a set 5', 'a done 5', 'b set 7', 'b none', 'c read', 'c done 5'],
  ['a set 1', 'a done 1', 'b decrease 1', 'c decrease 1', 'b done 0', 'c refused 0'],
  ['a set 1', 'a done 1', 'b decrease 1', 'c decrease 1', 'c done 0', 'b refused 0'],
  ['a set 1', 'a done 1', 'b decrease 1', 'b unknown', 'c decrease 1', 'c refused 0'],
  ['a set 250', 'a done 250', 'b increase 6', 'b refused 250', 'c increase 5', 'c done 255'],
  ['a increase 1', 'a missing', 'b decrease 1', 'b missing', 'c delete', 'c missing'],
  ['a set 3', 'a done 3', 'b delete', 'b done 0', 'c read', 'c missing'],
  ['a set 3', 'a done 3', 'b delete', 'c read', 'c done 3', 'b done 0', 'd increase 1', 'd missing'],
  // Three concurrent operations, explained only by the order c, a, b.
  ['z set 10', 'z done 10', 'a decrease 4', 'b increase 1', 'c set 6', 'a done 2', 'b done 3', 'c done 6'],
]

const IMPOSSIBLE: readonly (readonly string[])[] = [
  ['a read', 'a done 5'],
  ['a set 5', 'a done 5', 'b read', 'b missing'],
  ['a set 5', 'a done 5', 'b read', 'b done 6'],
  // A value cannot disappear after it was read.
  ['a set 5', 'a done 5', 'b set 7', 'c read', 'c done 7', 'd read', 'd done 5', 'b done 7'],
  ['a set 5', 'a done 5', 'b set 7', 'b unknown', 'c read', 'c done 7', 'd read', 'd done 5'],
  // The value of an operation without effect is not read.
  ['a set 5', 'a done 5', 'b set 7', 'b none', 'c read', 'c done 7'],
  // The last room was sold twice.
  ['a set 1', 'a done 1', 'b decrease 1', 'c decrease 1', 'b done 0', 'c done 0'],
  ['a set 2', 'a done 2', 'b decrease 1', 'c decrease 1', 'b done 1', 'c done 1'],
  // An unknown decrement counts at most once.
  ['a set 3', 'a done 3', 'b decrease 1', 'b unknown', 'c read', 'c done 1'],
  ['a set 1', 'a done 1', 'b decrease 1', 'b refused 1'],
  ['a set 250', 'a done 250', 'b increase 6', 'b done 256'],
  ['a set 3', 'a done 3', 'b delete', 'b done 0', 'c read', 'c done 3'],
  ['a set 3', 'a done 3', 'b increase 1', 'b missing'],
  // A lost write.
  ['a set 3', 'a done 3', 'b set 4', 'b done 4', 'c read', 'c done 3'],
  ['a set 3', 'a done 3', 'b increase 1', 'b done 4', 'c increase 1', 'c done 4'],
  ['z set 10', 'z done 10', 'a decrease 4', 'b increase 1', 'c set 6', 'a done 2', 'b done 4', 'c done 6'],
]

test('histories that one order explains are linearizable', () => {
  for (const lines of POSSIBLE) expect(verdictOf(read(lines)), lines.join('; ')).toBe('linearizable')
})

test('histories that no order explains are not', () => {
  for (const lines of IMPOSSIBLE) expect(verdictOf(read(lines)), lines.join('; ')).toBe('impossible')
})

/** A history whose operations took effect one by one, between their calls and returns. */
function generate(
  random: Random,
  count: number,
  width: number,
  unknownOneIn = 6,
  order = new Map<Operation, number>(),
): Operation[] {
  const history = createHistory()
  const open: { operation: Operation; isDone: boolean; outcome: Outcome; value: number }[] = []
  let state = MISSING
  let started = 0
  while (started < count || open.length > 0) {
    const choice = random.below(3)
    if (choice === 0 && started < count && open.length < width) {
      const kind = OPERATION_KINDS[random.below(OPERATION_KINDS.length)] as OperationKind
      const operation = call(history, open.length, 0, kind, random.below(4))
      open.push({ operation, isDone: false, outcome: 'unknown', value: 0 })
      started++
    } else if (choice === 1 && open.length > 0) {
      const one = open[random.below(open.length)] as (typeof open)[number]
      if (one.isDone) continue
      one.isDone = true
      order.set(one.operation, order.size)
      for (const outcome of ['done', 'refused', 'missing'] as const) {
        const tried = { ...one.operation, outcome, value: 0 }
        // The model determines the outcome; its value is found by trying.
        for (let value = 0; value < 256; value++) {
          const next = stateAfter(state, { ...tried, value })
          if (next === undefined) continue
          Object.assign(one, { outcome, value: outcome === 'missing' ? 0 : value })
          state = next
          break
        }
        if (one.outcome !== 'unknown') break
      }
    } else if (choice === 2 && open.length > 0) {
      const at = random.below(open.length)
      const one = open[at] as (typeof open)[number]
      const isUnknown = random.below(unknownOneIn) === 0
      if (!one.isDone && !isUnknown) continue
      open.splice(at, 1)
      complete(history, one.operation, isUnknown ? 'unknown' : one.outcome, isUnknown ? 0 : one.value)
    }
  }
  return history.operations
}

/** Reference implementation: tries every order. */
function isExplained(operations: readonly Operation[], state = MISSING): boolean {
  const left = operations.filter(({ outcome }) => outcome !== 'none')
  if (left.every(({ outcome }) => outcome === 'unknown')) return true
  const firstReturn = Math.min(...left.map(({ returnedAt }) => returnedAt))
  return left.some((operation) => {
    if (operation.calledAt > firstReturn) return false
    const next = stateAfter(state, operation)
    return (
      next !== undefined &&
      isExplained(
        left.filter((other) => other !== operation),
        next,
      )
    )
  })
}

test('sequential effects are linearizable with any number of concurrent operations', () => {
  for (let i = 0; i < tries(300); i++) {
    const random = createRandom(SEED + i)
    const operations = generate(random, 5 + random.below(120), 1 + random.below(8))
    expect(verdictOf(operations), `seed ${SEED + i}`).toBe('linearizable')
  }
})

test('a history with many unknown outcomes is decided, either way', () => {
  for (let i = 0; i < tries(40); i++) {
    const random = createRandom(SEED + i)
    const operations = generate(random, 200, 8, 4)
    const last = Math.max(...operations.flatMap(({ returnedAt }) => (Number.isFinite(returnedAt) ? [returnedAt] : [])))
    expect(verdictOf(operations), `seed ${SEED + i}`).toBe('linearizable')
    // No combination of the operations leads to this value.
    const read = { id: 200, process: 0, key: 0, kind: 'read', amount: 0, outcome: 'done', value: 255 } as const
    const wrong = [...operations.slice(0, 15), { ...read, calledAt: last + 1, returnedAt: last + 2 }]
    expect(verdictOf(wrong), `seed ${SEED + i}`).toBe('impossible')
  }
})

test('a value that needs many writes of unknown outcome is explained, and larger ones are not', () => {
  const history = createHistory()
  const ask = (kind: OperationKind, amount: number) => call(history, 0, 0, kind, amount)
  complete(history, ask('set', 20), 'done', 20)
  const unknown: readonly (readonly [kind: OperationKind, amount: number, times: number])[] = [
    ['increase', 3, 9],
    ['increase', 2, 4],
    ['decrease', 1, 3],
    ['delete', 0, 2],
    ...Array.from({ length: 20 }, (_, amount) => ['set', amount, 1] as const),
  ]
  for (const [kind, amount, times] of unknown) for (let i = 0; i < times; i++) ask(kind, amount)
  // All thirteen increases, then one of the sets, then a deletion.
  complete(history, ask('read', 0), 'done', 55)
  complete(history, ask('increase', 1), 'done', 17)
  complete(history, ask('read', 0), 'missing')
  expect(verdictOf(history.operations)).toBe('linearizable')

  const last = history.operations.at(-2) as Operation
  const changed = (value: number) => history.operations.map((each) => (each === last ? { ...each, value } : each))
  expect(verdictOf(changed(20))).toBe('linearizable')
  expect(verdictOf(changed(22))).toBe('impossible')
})

test('every single change of a small history is judged like the reference implementation', () => {
  let changed = 0
  let impossible = 0
  for (let i = 0; i < 120; i++) {
    const random = createRandom(SEED + i)
    const operations = generate(random, 2 + random.below(5), 1 + random.below(3))
    for (const [n, operation] of operations.entries()) {
      const others: Partial<Operation>[] = [
        { value: operation.value + 1 },
        { value: operation.value - 1 },
        { outcome: 'done' },
        { outcome: 'refused' },
        { outcome: 'missing', value: 0 },
        { outcome: 'unknown', returnedAt: Number.POSITIVE_INFINITY },
        { outcome: 'none' },
        { kind: 'read' },
      ]
      for (const other of others) {
        const one = { ...operation, ...other }
        if (one.outcome !== 'unknown' && !Number.isFinite(one.returnedAt)) one.returnedAt = 1_000 + n
        const changedHistory = operations.with(n, one)
        const expected = isExplained(changedHistory) ? 'linearizable' : 'impossible'
        expect(verdictOf(changedHistory), `seed ${SEED + i}: ${JSON.stringify(changedHistory)}`).toBe(expected)
        changed++
        if (expected === 'impossible') impossible++
      }
    }
  }
  expect(changed).toBeGreaterThan(1_000)
  expect(impossible).toBeGreaterThan(changed / 10)
})

test('the order of a log explains a history without a search, with any number of unknown outcomes', () => {
  for (let i = 0; i < 100; i++) {
    const random = createRandom(SEED + i)
    const order = new Map<Operation, number>()
    const operations = generate(random, 300, 8, 2, order)
    const judged = operations.filter(({ kind, outcome }) => kind !== 'read' || outcome !== 'unknown')
    const expected = { verdict: 'linearizable', steps: judged.length }
    expect(checkHistory(operations, { order, stepsMax: 0 }), `seed ${SEED + i}`).toEqual(expected)
  }
})

test('a given order cannot make an invalid history valid', () => {
  let wrong = 0
  for (const lines of IMPOSSIBLE) {
    const operations = read(lines)
    for (const order of ordersOf(operations)) {
      expect(checkHistory(operations, { order }).verdict, lines.join('; ')).toBe('impossible')
      wrong++
    }
  }
  expect(wrong).toBeGreaterThan(100)
  for (const lines of POSSIBLE) {
    const operations = read(lines)
    for (const order of ordersOf(operations)) {
      expect(checkHistory(operations, { order }).verdict, lines.join('; ')).toBe('linearizable')
    }
  }
  for (let i = 0; i < tries(200); i++) {
    const random = createRandom(SEED + i)
    const operations = generate(random, 2 + random.below(6), 1 + random.below(3))
    const one = operations[random.below(operations.length)] as Operation
    if (one.outcome !== 'unknown') one.value += 1 + random.below(3)
    const expected = verdictOf(operations)
    for (const order of ordersOf(operations))
      expect(checkHistory(operations, { order }).verdict, `seed ${SEED + i}`).toBe(expected)
  }
})

/** All orders of up to four operations, some of more, and each without its last operation. */
function ordersOf(operations: readonly Operation[]): Map<Operation, number>[] {
  const all: Operation[][] = [[]]
  for (const operation of operations) {
    const longer = all
      .splice(0)
      .flatMap((order) => Array.from({ length: order.length + 1 }, (_, at) => order.toSpliced(at, 0, operation)))
    all.push(...longer.filter((_, n) => n % Math.ceil(longer.length / 40) === 0))
  }
  return [...all, ...all.map((order) => order.slice(0, -1))].map(
    (order) => new Map(order.map((operation, place) => [operation, place])),
  )
}

test('equivalent writes of unknown outcome are grouped, regardless of their payload', () => {
  const history = createHistory()
  const ask = (kind: OperationKind, amount: number) => call(history, 0, 0, kind, amount)
  const UNKNOWN = 60
  for (let i = 0; i < UNKNOWN; i++) ask('delete', i % 6)
  // Each set must be followed by one of these deletes.
  for (let i = 0; i < UNKNOWN; i++) {
    complete(history, ask('set', i % 7), 'done', i % 7)
    complete(history, ask('read', 0), 'missing')
  }
  const stepsMax = 5_000
  expect(checkHistory(history.operations, { stepsMax }).verdict).toBe('linearizable')
  complete(history, ask('set', 1), 'done', 1)
  complete(history, ask('read', 0), 'missing')
  expect(checkHistory(history.operations, { stepsMax }).verdict).toBe('impossible')
})

test('keys are independent: each has its own state', () => {
  const history = createHistory()
  complete(history, call(history, 0, 1, 'set', 4), 'done', 4)
  complete(history, call(history, 0, 2, 'read'), 'missing')
  complete(history, call(history, 0, 1, 'read'), 'done', 4)
  expect(verdictOf(history.operations)).toBe('linearizable')

  complete(history, call(history, 0, 2, 'read'), 'done', 4)
  expect(checkHistory(history.operations)).toMatchObject({ verdict: 'impossible', key: 2 })
})

test('a search that passes its budget is undecided, not a success', () => {
  const operations = read(['a set 1', 'b set 2', 'c set 3', 'a done 1', 'b done 2', 'c done 3'])
  expect(checkHistory(operations, { stepsMax: 2 })).toMatchObject({ verdict: 'undecided', key: 0 })
})
