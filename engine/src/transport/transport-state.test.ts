import type { X509Certificate } from 'node:crypto'
import { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import { expect, test } from 'vitest'
import { createSimulation } from '../testing/simulation.ts'
import { STREAMS } from './transport.ts'
import {
  describe,
  failureOf,
  isGoodForAny,
  isGoodForNode,
  isUsable,
  type Link,
  linksOf,
  nowOf,
  type Peer,
  type Slot,
  type State,
  sealed,
  slotsOf,
  TRANSPORT_LIMITS,
  warn,
  warnUnnamed,
} from './transport-state.ts'

function createState(options: object = {}) {
  const simulation = createSimulation()
  const state = {
    options: { env: simulation.env, ...options },
    ...{ limits: TRANSPORT_LIMITS, warnings: new Map(), peers: new Map(), isUnnamedWarned: false },
  } as unknown as State
  return {
    simulation,
    state,
    warnings: () => simulation.lines.map(({ level, fields, message }) => [level, fields, message]),
  }
}

const failed = (code: string) => Object.assign(new Error('text'), { code })

test('an error is described by its code, and else by its text', () => {
  expect([failed('ECONNREFUSED'), new Error('no route'), 'refused', undefined, 7].map(describe)).toEqual([
    ...['ECONNREFUSED', 'no route', 'refused', '', '7'],
  ])
})

test.each([
  ['ECONNREFUSED', 'refused'],
  ['CERT_HAS_EXPIRED', 'certificate'],
  ['ERR_SSL_TLSV1_ALERT_UNKNOWN_CA', 'certificate'],
  ['ERR_SSL_TLSV1_ALERT_ACCESS_DENIED', 'certificate'],
  ['ERR_SSL_WRONG_VERSION_NUMBER', 'tls'],
  ['ERR_TLS_HANDSHAKE_TIMEOUT', 'tls'],
  ['ECONNRESET', 'network'],
])('the reason of a failure with %s is %s', (code, reason) => {
  expect(failureOf(new Socket(), failed(code))).toBe(reason)
})

test('an error without a code is one of the network, unless the certificate was refused', () => {
  expect(failureOf(new Socket(), new Error('SSL'))).toBe('network')
  const socket = new TLSSocket(new Socket())
  expect(failureOf(socket, failed('ECONNRESET'))).toBe('network')
  socket.authorizationError = new Error('self-signed')
  expect(failureOf(socket, failed('ECONNRESET'))).toBe('certificate')
  expect(failureOf(socket, failed('ECONNREFUSED'))).toBe('refused')
  socket.destroy()
})

/** A certificate for these addresses and names. */
const certificateFor = (...hosts: string[]) =>
  ({
    checkHost: (host: string) => (hosts.includes(host) ? host : undefined),
    checkIP: (host: string) => (hosts.includes(host) ? host : undefined),
  }) as unknown as X509Certificate

test('a certificate is good for any of its hosts', () => {
  const certificate = certificateFor('n1.test', '192.0.2.1')
  expect(isGoodForAny(certificate, ['n2.test', 'n1.test'])).toBe(true)
  expect(isGoodForAny(certificate, [undefined, '192.0.2.1'])).toBe(true)
  expect(isGoodForAny(certificate, ['n2.test', undefined])).toBe(false)
  expect(isGoodForAny(certificate, [])).toBe(false)
  expect(isGoodForAny(undefined, ['n1.test'])).toBe(false)
})

test('a node is found at a host or an address that its certificate names', async () => {
  const certificate = certificateFor('192.0.2.1', 'n1.test')
  const at = (host: string) => createState({ addressOf: async () => ({ host, port: 1 }) }).state
  expect(await isGoodForNode(at('192.0.2.1'), certificate, 'n1')).toBe(true)
  expect(await isGoodForNode(at('n1.test'), certificate, 'n1')).toBe(true)
  expect(await isGoodForNode(at('192.0.2.2'), certificate, 'n1')).toBe(false)
  const unknown = createState({ addressOf: async () => Promise.reject(new Error('no address')) }).state
  expect(await isGoodForNode(unknown, certificate, 'n1')).toBe(false)
})

test('a slot is usable with a connection in either direction', () => {
  const link = {} as Link
  const slot = (outgoing?: Link, incoming?: Link) => ({ outgoing, incoming }) as Slot
  expect([slot(), slot(link), slot(undefined, link), slot(link, link)].map(isUsable)).toEqual([false, true, true, true])
})

test('the links of all peers are listed, outgoing ones first', () => {
  const { state } = createState()
  const link = (name: string) => ({ name }) as unknown as Link
  const peerOf = (node: string) =>
    ({
      node,
      slots: Object.fromEntries(
        STREAMS.map((stream) => [stream, { outgoing: link(`${node} ${stream} out`), incoming: undefined }]),
      ),
    }) as unknown as Peer
  const [a, b] = [peerOf('a'), peerOf('b')]
  const [slot] = slotsOf(b)
  if (slot) slot.incoming = link('b in')
  state.peers.set('a', a).set('b', b)
  expect(slotsOf(a)).toEqual(STREAMS.map((stream) => a.slots[stream]))
  const names = linksOf(state).map((each) => (each as unknown as { name: string }).name)
  const [first, ...rest] = STREAMS
  expect(names).toEqual([
    ...STREAMS.map((stream) => `a ${stream} out`),
    ...[`b ${first} out`, 'b in'],
    ...rest.map((stream) => `b ${stream} out`),
  ])
})

test('a warning about the same subject is logged once in its interval, with how many were not', () => {
  const { state, simulation, warnings } = createState()
  expect(nowOf(state)).toBe(0)
  warn(state, 'lost n1', { peer: 'n1' }, 'lost')
  warn(state, 'lost n2', { peer: 'n2' }, 'lost')
  simulation.advance(TRANSPORT_LIMITS.warnMs - 1)
  for (let n = 0; n < 3; n++) warn(state, 'lost n1', { peer: 'n1', n }, 'lost')
  expect(warnings()).toEqual([
    ['warn', { peer: 'n1' }, 'lost'],
    ['warn', { peer: 'n2' }, 'lost'],
  ])
  simulation.advance(1)
  warn(state, 'lost n1', { peer: 'n1', n: 3 }, 'lost')
  warn(state, 'lost n1', { peer: 'n1', n: 4 }, 'lost')
  simulation.advance(TRANSPORT_LIMITS.warnMs)
  warn(state, 'lost n2', { peer: 'n2' }, 'lost')
  warn(state, 'lost n1', { peer: 'n1' }, 'lost')
  expect(warnings().slice(2)).toEqual([
    ['warn', { peer: 'n1', n: 3, suppressed: 3 }, 'lost'],
    ['warn', { peer: 'n2' }, 'lost'],
    ['warn', { peer: 'n1', suppressed: 1 }, 'lost'],
  ])
})

test('of a thousand subjects the oldest is forgotten for another one', () => {
  const { state, warnings } = createState()
  for (let n = 0; n < 1_000; n++) warn(state, `subject ${n}`, {}, 'lost')
  expect([warnings().length, state.warnings.size]).toEqual([1_000, 1_000])
  warn(state, 'subject 0', {}, 'lost')
  expect(warnings()).toHaveLength(1_000)
  warn(state, 'another', {}, 'lost')
  expect([warnings().length, state.warnings.size]).toEqual([1_001, 1_000])
  warn(state, 'subject 1', {}, 'lost')
  expect(warnings()).toHaveLength(1_001)
  warn(state, 'subject 0', {}, 'lost')
  expect(warnings()).toHaveLength(1_002)
})

test('certificates that name no node are warned about once', () => {
  const { state, warnings } = createState()
  warnUnnamed(state, 'n1')
  warnUnnamed(state, 'n2')
  expect(warnings().map(([level, fields]) => [level, fields])).toEqual([['warn', { node: 'n1' }]])
})

test('a handshake message is one frame', () => {
  const frame = sealed(Uint8Array.of(1, 2, 3))
  expect([...frame.subarray(-3)]).toEqual([1, 2, 3])
  expect(() => sealed(new Uint8Array(1 << 20))).toThrow('a handshake message is one write')
})
