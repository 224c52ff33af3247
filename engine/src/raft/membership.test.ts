import { AssertionError } from '@vacancy/shared'
import { expect, test } from 'vitest'
import { configurationOf, incarnationOf } from '../testing/raft-fixture.ts'
import {
  assertConfiguration,
  type Change,
  type ChangeFault,
  decodeConfiguration,
  encodeConfiguration,
  isJoint,
  isVoter,
  MEMBER_LIMITS,
  resultOf,
  type Step,
  votersOnly,
} from './membership.ts'
import type { Configuration } from './messages.ts'
import { jointTally, majorityValue, type Tally, tally } from './quorum.ts'

const NEW = 1_042
const newcomer = { node: 'new', incarnation: incarnationOf(77) }
const add = (type: 'addLearner' | 'addVoter'): Step => ({ type, ...newcomer })
const move = (type: 'promote' | 'demote' | 'remove', id: number): Step => ({ type, id })
const places = ({ voters, outgoing, learners, staged, autoLeave }: Configuration) => ({
  voters,
  outgoing,
  learners,
  staged,
  autoLeave,
})
const BEFORE = configurationOf({ voters: [1, 2, 3], learners: [4, 5] })

test('a change of at most one voter takes one step', () => {
  const cases: [Step[], Partial<Configuration>][] = [
    [[add('addLearner')], { learners: [4, 5, NEW] }],
    [[add('addVoter')], { voters: [1, 2, 3, NEW] }],
    [[move('promote', 4)], { voters: [1, 2, 3, 4], learners: [5] }],
    [[move('demote', 2)], { voters: [1, 3], learners: [2, 4, 5] }],
    [[move('remove', 3)], { voters: [1, 2] }],
    [[move('remove', 4), move('remove', 5)], { learners: [] }],
    [[move('remove', 2), add('addLearner')], { voters: [1, 3], learners: [4, 5, NEW] }],
  ]
  for (const [steps, after] of cases) {
    const result = resultOf(BEFORE, { steps }, NEW)
    expect(places(result as Configuration), JSON.stringify(steps)).toEqual({ ...places(BEFORE), ...after })
  }
})

test('an added member gets its id from the entry that adds it', () => {
  const after = resultOf(BEFORE, { steps: [add('addLearner')] }, NEW) as Configuration
  expect(after.members.at(-1)).toEqual({ id: NEW, ...newcomer })
})

test('binding a member sets its incarnation and moves no member', () => {
  const before = configurationOf({ voters: [1, 2], unbound: [2] })
  const steps: Step[] = [{ type: 'bind', id: 2, incarnation: incarnationOf(2) }]

  const after = resultOf(before, { steps }, NEW) as Configuration

  expect(places(after)).toEqual(places(before))
  expect(after.members[1]).toEqual({ id: 2, node: 'n2', incarnation: incarnationOf(2) })
})

test('several voters change through a joint phase: the old half stays, its demoted voters are staged', () => {
  const steps = [move('promote', 4), move('demote', 1), move('remove', 2)]

  const joint = resultOf(BEFORE, { steps }, NEW) as Configuration

  expect(places(joint)).toEqual({ voters: [3, 4], outgoing: [1, 2, 3], learners: [5], staged: [1], autoLeave: true })
  expect(joint.members.map(({ id }) => id)).toEqual([1, 2, 3, 4, 5])
  expect([isJoint(joint), isVoter(joint, 2), isVoter(joint, 5)]).toEqual([true, true, false])
  const after = resultOf(joint, 'leave', NEW) as Configuration
  expect(places(after)).toEqual({ voters: [3, 4], outgoing: [], learners: [1, 5], staged: [], autoLeave: false })
  expect(after.members.map(({ id }) => id)).toEqual([1, 3, 4, 5])
})

test('a joint phase is entered on request, and left manually if requested', () => {
  const change: Change = { steps: [move('promote', 4)], phase: 'joint', autoLeave: false }
  expect(places(resultOf(BEFORE, change, NEW) as Configuration)).toMatchObject({
    outgoing: [1, 2, 3],
    autoLeave: false,
  })
})

test('changes without a valid configuration are refused with a named reason', () => {
  const joint = configurationOf({ voters: [1, 2], outgoing: [1], autoLeave: true })
  const full = configurationOf({ voters: [1, 2, 3, 4, 5, 6, 7], learners: [8] })
  const known = { type: 'addLearner', node: 'n4', incarnation: incarnationOf(4) } as const
  const cases: [Configuration, Change, ChangeFault][] = [
    [joint, { steps: [move('remove', 1)] }, 'is-joint'],
    [BEFORE, 'leave', 'not-joint'],
    [BEFORE, { steps: [move('promote', 4), move('promote', 5)], phase: 'single' }, 'several-voters'],
    [BEFORE, { steps: [add('addLearner'), add('addVoter')] }, 'several-additions'],
    [BEFORE, { steps: [1, 2, 3].map((id) => move('remove', id)) }, 'no-voter'],
    [BEFORE, { steps: [move('promote', 9)] }, 'unknown-member'],
    [BEFORE, { steps: [known] }, 'known-member'],
    [full, { steps: [move('promote', 8)] }, 'too-many-members'],
    [BEFORE, { steps: [] }, 'no-effect'],
    [BEFORE, { steps: [move('promote', 1)] }, 'no-effect'],
    [BEFORE, { steps: [move('demote', 4)] }, 'no-effect'],
  ]
  for (const [before, change, fault] of cases) expect(resultOf(before, change, NEW), fault).toBe(fault)
})

test('configurations satisfy M1', () => {
  const broken: Partial<Configuration>[] = [
    { voters: [] },
    { voters: [2, 1, 3] },
    { voters: [1, 2, 2] },
    { learners: [3, 4, 5] },
    { outgoing: [4] },
    { staged: [1] },
    { outgoing: [1, 2], staged: [1] },
    { autoLeave: true },
    { members: BEFORE.members.slice(1) },
    { learners: [4] },
  ]
  expect(() => assertConfiguration(BEFORE)).not.toThrow()
  for (const part of broken)
    expect(() => assertConfiguration({ ...BEFORE, ...part }), JSON.stringify(part)).toThrow(AssertionError)
})

test('a configuration round-trips through its bytes', () => {
  const cases = [
    BEFORE,
    votersOnly([{ id: 1, node: '', incarnation: '' }]),
    configurationOf({ voters: [1, 2], outgoing: [2, 3], learners: [9], staged: [3], autoLeave: true, unbound: [9] }),
    { ...BEFORE, members: BEFORE.members.map((member) => ({ ...member, node: `Zürich ${member.id}` })) },
  ]
  for (const configuration of cases)
    expect(decodeConfiguration(encodeConfiguration(configuration))).toEqual(configuration)
})

test('the largest configuration stays within its size limit', () => {
  const ids = Array.from({ length: 30 }, (_, at) => at + 1)
  const largest = {
    members: ids.map((id) => ({ id, node: 'n'.repeat(MEMBER_LIMITS.nodeBytes), incarnation: incarnationOf(id) })),
    voters: ids.slice(0, 7),
    outgoing: ids.slice(7, 14),
    learners: ids.slice(14),
    staged: ids.slice(7, 14),
    autoLeave: true,
  }
  expect(encodeConfiguration(largest).length).toBeLessThan(12 * 1024)
})

test('bytes that do not encode a configuration are rejected', () => {
  const bytes = encodeConfiguration(BEFORE)
  expect(() => decodeConfiguration(Uint8Array.of(9, ...bytes.subarray(1)))).toThrow('version')
  expect(() => decodeConfiguration(Uint8Array.of(...bytes, 0))).toThrow('fills its bytes')
})

test('a shard has up to 7 voters and 16 learners', () => {
  const learnersOf = (count: number) => Array.from({ length: count }, (_, at) => at + 10)
  const full = configurationOf({ voters: [1, 2, 3, 4, 5, 6, 7], learners: learnersOf(15) })
  const sixteen = resultOf(full, { steps: [add('addLearner')] }, NEW) as Configuration
  expect(sixteen.learners).toHaveLength(16)
  expect(resultOf(sixteen, { steps: [{ ...newcomer, node: 'more', type: 'addLearner' }] }, NEW + 1)).toBe(
    'too-many-members',
  )
  expect(resultOf(full, { steps: [add('addVoter')] }, NEW)).toBe('too-many-members')
  const six = configurationOf({ voters: [1, 2, 3, 4, 5, 6] })
  expect((resultOf(six, { steps: [add('addVoter')] }, NEW) as Configuration).voters).toHaveLength(7)
})

test('the bytes of a configuration are the same in every release', () => {
  const configuration: Configuration = {
    members: [
      { id: 1, node: 'a', incarnation: '00ff10fe'.padEnd(32, '9') },
      { id: 258, node: 'é', incarnation: '' },
    ],
    ...{ voters: [1], outgoing: [1, 258], learners: [], staged: [258], autoLeave: true },
  }
  const u64 = (low: number, high = 0) => [low, high, 0, 0, 0, 0, 0, 0]
  const bytes = [
    ...[1, 1, 2],
    ...[...u64(1), 1, 97, 1, 0x00, 0xff, 0x10, 0xfe, ...Array<number>(12).fill(0x99)],
    ...[...u64(2, 1), 2, 0xc3, 0xa9, 0],
    ...[1, ...u64(1)],
    ...[2, ...u64(1), ...u64(2, 1)],
    0,
    ...[1, ...u64(2, 1)],
  ]
  expect([...encodeConfiguration(configuration)]).toEqual(bytes)
  expect(decodeConfiguration(Uint8Array.from(bytes))).toEqual(configuration)
})

test('names and incarnations have their sizes', () => {
  const one = (node: string, incarnation: string) => votersOnly([{ id: 1, node, incarnation }])
  expect(decodeConfiguration(encodeConfiguration(one('n'.repeat(255), ''))).members[0]?.node).toHaveLength(255)
  expect(() => encodeConfiguration(one('n'.repeat(256), ''))).toThrow('at most 255 bytes')
  expect(() => encodeConfiguration(one('n', 'a'.repeat(31)))).toThrow('an incarnation has 128 bits')
})

test('the value a majority reaches, for every number of voters', () => {
  const cases: [number[], number][] = [
    [[], Number.POSITIVE_INFINITY],
    [[4], 4],
    [[4, 9], 4],
    [[9, 4, 6], 6],
    [[1, 9, 4, 6], 4],
    [[1, 9, 4, 6, 5], 5],
    [[0, 0, 0, 7, 7, 7, 7], 7],
    [[0, 0, 0, 0, 7, 7, 7], 0],
    [[3, 3, 3], 3],
  ]
  for (const [values, reached] of cases) expect(majorityValue([...values]), String(values)).toBe(reached)
})

test('it equals a count: the greatest value that more than half have reached', () => {
  for (let voters = 1; voters <= 5; voters++) {
    for (let code = 0; code < 4 ** voters; code++) {
      const values = Array.from({ length: voters }, (_, at) => Math.floor(code / 4 ** at) % 4)
      const counted = Math.max(...values.filter((value) => values.filter((v) => v >= value).length * 2 > voters))
      expect(majorityValue([...values])).toBe(counted)
    }
  }
})

test('an election is won by a majority and lost when one is out of reach', () => {
  const yes = (...ids: number[]) => ids.map((id): [number, boolean] => [id, true])
  const no = (...ids: number[]) => ids.map((id): [number, boolean] => [id, false])
  const cases: [number[], [number, boolean][], Tally][] = [
    [[], [], 'won'],
    [[1], [], 'pending'],
    [[1], yes(1), 'won'],
    [[1], no(1), 'lost'],
    [[1, 2], yes(1), 'pending'],
    [[1, 2], [...yes(1), ...no(2)], 'lost'],
    [[1, 2, 3], yes(1, 3), 'won'],
    [[1, 2, 3], [...yes(1), ...no(2)], 'pending'],
    [[1, 2, 3], no(2, 3), 'lost'],
    [[1, 2, 3], yes(4, 5, 6), 'pending'],
    [[1, 2, 3, 4], [...yes(1, 2), ...no(3)], 'pending'],
    [[1, 2, 3, 4], [...yes(1, 2), ...no(3, 4)], 'lost'],
  ]
  for (const [voters, votes, result] of cases) expect(tally(voters, new Map(votes))).toBe(result)
})

test('both halves must be won; one that is lost decides', () => {
  const cases: [Tally, Tally, Tally][] = [
    ['won', 'won', 'won'],
    ['won', 'pending', 'pending'],
    ['pending', 'won', 'pending'],
    ['lost', 'won', 'lost'],
    ['pending', 'lost', 'lost'],
  ]
  for (const [one, other, result] of cases) expect(jointTally(one, other)).toBe(result)
})
