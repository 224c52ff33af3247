import { COMMANDS, type CommandName } from '@vacancy/shared/wire'
import { expect, test } from 'vitest'
import { attachCells, createCells, publishCells, ROLE, type RoleCode } from '../cluster/shared-status.ts'
import { CONTROL } from '../store/layout.ts'
import { createNodeInMemory, raiseFeatureLevel } from '../testing/node-in-memory.ts'
import { refusalOf, updateRole } from './admission.ts'
import { type Connection, LIMITS_OF_THREAD } from './connection-state.ts'

const young = createNodeInMemory(20_000, 96 << 20)
const node = createNodeInMemory(20_000, 96 << 20)
raiseFeatureLevel(node)

type Given = {
  readonly role?: Connection['role']
  readonly draining?: boolean
  readonly leaderReads?: boolean
  readonly requests?: number
  readonly writes?: number
  readonly isYoung?: boolean
  readonly shard?: { readonly role: RoleCode; readonly isLeaderKnown: boolean } | undefined
}

function connectionOf(given: Given): Connection {
  const { draining = false, leaderReads = true, requests = 0, writes = 0, isYoung = false, shard } = given
  const cells = attachCells(createCells(), 0)
  if (shard) publishCells(cells, { ...shard, applied: 0, freshMs: 0 })
  const thread = {
    ...{ draining, leaderReads, requestsThisTick: requests, waiting: { size: writes } },
    ...{ memory: (isYoung ? young : node).store.memory, cells: shard && cells },
  }
  const role = 'role' in given ? given.role : 'client'
  return { thread, role, roleFault: 'login required' } as unknown as Connection
}

const refusal = (command: CommandName, given: Given = {}) => refusalOf(connectionOf(given), COMMANDS[command])

test('commands need a login, and a role that may run them', () => {
  for (const command of ['PROPEXIST', 'SETPROP'] as const) {
    expect(refusal(command, { role: undefined })).toBe('AUTH_ERROR: login required')
    expect(refusal(command, { role: 'monitoring' })).toBe('FORBIDDEN: the role monitoring may not run commands')
    for (const role of ['client', 'admin'] as const) expect(refusal(command, { role })).toBe('')
  }
})

test('an open connection has what the auth file gives its token, and is refused by date after its end', () => {
  const connection = connectionOf({})
  const endsMs = Date.UTC(2027, 0, 31)
  const token = { hash: new Uint8Array(32), role: 'client', name: 'booking', expiresMs: endsMs } as const
  const after = (entry: typeof token | undefined, nowMs: number) => {
    updateRole(connection, entry, nowMs)
    return refusalOf(connection, COMMANDS.PROPEXIST)
  }

  expect(after(token, endsMs - 1)).toBe('')
  expect(after(token, endsMs)).toBe('AUTH_ERROR: the token ended on 2027-01-31 at 00.00.00 UTC')
  expect(after({ ...token, expiresMs: endsMs + 1 }, endsMs), 'the file gives it more time').toBe('')
  expect(after(undefined, endsMs), 'the file has it no longer').toBe('AUTH_ERROR: login required')
  expect(after(token, endsMs - 1), 'and has it again').toBe('')
})

test('a node that stops refuses commands, and reports a missing login first', () => {
  expect(refusal('PROPEXIST', { draining: true })).toBe('503')
  expect(refusal('SETPROP', { draining: true })).toBe('503')
  expect(refusal('SETPROP', { draining: true, role: undefined })).toContain('AUTH_ERROR')
})

test('a turn has so many requests, and each one counts', () => {
  const most = LIMITS_OF_THREAD.requestsPerTick
  const connection = connectionOf({ requests: most - 1 })
  expect([refusalOf(connection, COMMANDS.PROPEXIST), refusalOf(connection, COMMANDS.PROPEXIST)]).toEqual(['', '429'])
  expect(connection.thread.requestsThisTick).toBe(most + 1)
  const refused = connectionOf({ role: undefined })
  refusalOf(refused, COMMANDS.PROPEXIST)
  expect(refused.thread.requestsThisTick).toBe(0)
})

test('so many writes wait for the replica, while reads continue', () => {
  const most = LIMITS_OF_THREAD.writesInFlight
  expect(refusal('SETROOMAVL', { writes: most - 1 })).toBe('')
  expect(refusal('SETROOMAVL', { writes: most })).toBe('429')
  expect(refusal('PROPEXIST', { writes: most })).toBe('')
})

test('without memory only what may need some is refused', () => {
  const { u32 } = node.store.memory
  Atomics.store(u32, CONTROL.memoryFull, 1)
  const commands = ['SETPROP', 'SETROOMPKG', 'SETROOMAVL', 'DELPROP', 'PROPEXIST'] as const
  expect(commands.map((command) => refusal(command))).toEqual(['503', '503', '', '', ''])
  Atomics.store(u32, CONTROL.memoryFull, 0)
  expect(commands.map((command) => refusal(command))).toEqual(['', '', '', '', ''])
})

test('a standalone node serves reads unless it is not to', () => {
  expect([refusal('PROPEXIST'), refusal('SETPROP')]).toEqual(['', ''])
  expect(refusal('PROPEXIST', { leaderReads: false })).toBe('405')
  expect(refusal('SETPROP', { leaderReads: false })).toBe('')
})

test.each<[keyof typeof ROLE, boolean, read: string, leaderRead: string, write: string]>([
  ['leader', true, '', '405', ''],
  ['leader', false, '', '405', ''],
  ['follower', true, '', '', '308'],
  ['follower', false, '', '', '503'],
  ['learner', true, '', '', '308'],
  ['learner', false, '', '', '503'],
  ['none', true, '', '', '503'],
  ['none', false, '', '', '503'],
  ['unavailable', true, '503', '503', '503'],
  ['unavailable', false, '503', '503', '503'],
])('in a shard: %s, a leader is known: %s', (role, isLeaderKnown, read, withoutLeaderReads, write) => {
  const shard = { role: ROLE[role], isLeaderKnown }
  expect(refusal('PROPEXIST', { shard })).toBe(read)
  expect(refusal('PROPEXIST', { shard, leaderReads: false })).toBe(withoutLeaderReads)
  expect(refusal('SETPROP', { shard })).toBe(write)
})

test.each<[keyof typeof ROLE | undefined, boolean, read: string, write: string]>([
  [undefined, false, '503', '503'],
  ['leader', true, 'VALIDATION_ERROR: unknown command GETSTAY', 'VALIDATION_ERROR: unknown command BOOKSTAY'],
  ['follower', true, '308', '308'],
  ['follower', false, '503', '503'],
  ['none', false, '503', '503'],
])('below the feature level of stays: %s, a leader is known: %s', (role, isLeaderKnown, read, write) => {
  const shard = role && { role: ROLE[role], isLeaderKnown }
  expect([refusal('GETSTAY', { shard, isYoung: true }), refusal('BOOKSTAY', { shard, isYoung: true })]).toEqual([
    read,
    write,
  ])
  expect(refusal('SETPROP', { isYoung: true })).toBe('')
  expect(refusal('BOOKSTAY')).toBe('')
})
