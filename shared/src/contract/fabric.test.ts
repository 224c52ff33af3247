import fc from 'fast-check'
import { expect, test } from 'vitest'
import { compareBytes } from '../codecs.ts'
import { law } from '../testing/law.ts'
import {
  compareText,
  parseAddress,
  REGISTRY_LIMITS,
  readResolverAnswer,
  registerRequest,
  segmentFault,
  segmentsChecksum,
  segmentsRequest,
  sortedSegments,
} from './fabric.ts'

test.each([
  [['segment_1', 'segment_2', 'segment_3', 'segment_4'], 'd9342b8f9e70e800113c2f7a803565ae'],
  [['münchen', 'paris'], '05dd3c9a2775c95f4ec8a2f208d92edd'],
  [[], 'e3b0c44298fc1c149afbf4c8996fb924'],
])('the checksum of %j matches the contract', (names, checksum) => {
  expect(segmentsChecksum(sortedSegments([...names].reverse()))).toBe(checksum)
})

test('texts are ordered by their UTF-8 bytes', () => {
  const encoder = new TextEncoder()
  law([fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' })], (a, b) => {
    expect(Math.sign(compareText(a, b))).toBe(Math.sign(compareBytes(encoder.encode(a), encoder.encode(b))))
  })
  expect(sortedSegments(['\u{1f600}', '\uffee', 'b', 'a', 'b'])).toEqual(['a', 'b', '\uffee', '\u{1f600}'])
})

test.each([
  ['paris', ''],
  ['é'.repeat(127), ''],
  ['é'.repeat(128), 'must be 1 to 255 bytes'],
  ['', 'must be 1 to 255 bytes'],
  ['a\nb', 'must not hold control characters'],
  ['\ud800', 'is not valid Unicode'],
  ['GETSEGMENTS', 'is reserved'],
  ['__keepalive__', 'is reserved'],
])('a segment %j: %s', (name, fault) => {
  expect(segmentFault(name).startsWith(fault)).toBe(true)
  expect(segmentFault(name) === '').toBe(fault === '')
})

test('a registration is valid as existing components send it, and with all extensions', () => {
  const plain = { kind: 'router', id: 'r1', zone: 'z1', shard: null }
  expect(registerRequest.parse(plain)).toEqual(plain)
  const full = {
    kind: 'node',
    id: 'n1',
    zone: 'z1',
    shard: 's1',
    instance: 'a',
    version: '0.1.0',
    role: 'leader',
    term: 3,
    leader_id: 'n1',
    health: 'active_leader',
    started_at: '2026-11-20T08:00:00Z',
    api_url: 'http://127.0.0.1:8080',
    segment_counts: { paris: 4 },
  }
  expect(registerRequest.parse({ ...full, later: 1 })).toEqual(full)
})

test.each([
  [{ id: '' }, 'id'],
  [{ id: '..' }, 'id'],
  [{ zone: 'a/b' }, 'zone'],
  [{ shard: 'x'.repeat(129) }, 'shard'],
  [{ term: -1 }, 'term'],
  [{ segment_counts: Object.fromEntries(Array.from({ length: 1_001 }, (_, i) => [`s${i}`, 1])) }, 'segment_counts'],
])('a registration with %j is refused, naming its field', (change, path) => {
  const { error } = registerRequest.safeParse({ kind: 'node', id: 'n1', zone: 'z1', shard: 's1', ...change })

  expect(error?.issues[0]?.path).toEqual([path])
})

test('a segment list is bounded, and every name is validated', () => {
  const names = Array.from({ length: REGISTRY_LIMITS.segmentsPerPushMax + 1 }, (_, i) => `s${i}`)

  expect(segmentsRequest.safeParse({ zone: 'z1', segments: names.slice(1) }).success).toBe(true)
  expect(segmentsRequest.safeParse({ zone: 'z1', segments: names }).error?.issues[0]?.path).toEqual(['segments'])
  expect(segmentsRequest.safeParse({ zone: 'z1', segments: ['a', ''] }).error?.issues[0]?.path).toEqual(['segments', 1])
})

test.each<[string, object, object]>([
  ['an instance of 128 characters', { instance: 'x'.repeat(128) }, { instance: 'x'.repeat(129) }],
  ['a version of 64', { version: 'x'.repeat(64) }, { version: 'x'.repeat(65) }],
  ['a health of 64', { health: 'x'.repeat(64) }, { health: 'x'.repeat(65) }],
  ['a start of 64', { started_at: 'x'.repeat(64) }, { started_at: 'x'.repeat(65) }],
  ['an address of 512', { api_url: 'x'.repeat(512) }, { api_url: 'x'.repeat(513) }],
  ['an id of 128', { id: 'x'.repeat(128) }, { id: 'x'.repeat(129) }],
  [
    'a segment of 255 in the counts',
    { segment_counts: { ['x'.repeat(255)]: 0 } },
    { segment_counts: { ['x'.repeat(256)]: 0 } },
  ],
  ['1,000 segments in the counts', { segment_counts: countsOf(1_000) }, { segment_counts: countsOf(1_001) }],
  ['term 0', { term: 0 }, { term: -1 }],
  ['a learner', { role: 'learner' }, { role: 'candidate' }],
])('a registration with %s is valid, and one beyond is not', (_, valid, invalid) => {
  const base = { kind: 'node', id: 'n1', zone: 'z1' }

  expect(registerRequest.parse({ ...base, ...valid })).toEqual({ ...base, ...valid })
  expect(registerRequest.safeParse({ ...base, ...invalid }).success).toBe(false)
})

function countsOf(segments: number): object {
  return Object.fromEntries(Array.from({ length: segments }, (_, i) => [`s${i}`, 1]))
}

test.each([
  ['text/plain', 'node1\n', { host: 'node1' }],
  ['', ' 127.0.0.1:9000 \nsecond line', { host: '127.0.0.1', port: 9000 }],
  ['', '[::1]:9000', { host: '::1', port: 9000 }],
  ['', '::1', { host: '::1' }],
  ['application/json', '{"hostname":"a","host":"b"}', { host: 'a' }],
  ['', '{"addr":"a","tcp_port":1,"api_port":2}', { host: 'a', port: 1, apiPort: 2 }],
  ['', '{"address":"a:5","port":6}', { host: 'a', port: 6 }],
  ['', '{"host":"a","quic_port":3}', { host: 'a', quicPort: 3 }],
  ['application/json', '"a:7"', { host: 'a', port: 7 }],
  ['application/json; charset=utf-8', '"a"', { host: 'a' }],
  ['APPLICATION/JSON', '"a"', { host: 'a' }],
  ['', '"a"', { host: 'a' }],
  ['', '\n{"host":"a"}', { host: 'a' }],
  ['', 'a:1', { host: 'a', port: 1 }],
  ['', 'a:65535', { host: 'a', port: 65_535 }],
  [
    '',
    '{"host":"a","port":65535,"api_port":1,"quic_port":65535}',
    { host: 'a', port: 65_535, apiPort: 1, quicPort: 65_535 },
  ],
  ['', '{"host":"a:5"}', { host: 'a', port: 5 }],
  ['', '{"host":"[::1]:5","port":6}', { host: '::1', port: 6 }],
  ['', '{"hostname":null,"host":"b"}', { host: 'b' }],
  ['', '{"port":1,"tcp_port":2,"host":"a"}', { host: 'a', port: 1 }],
  ['', 'a'.repeat(253), { host: 'a'.repeat(253) }],
  ['', 'aa::', { host: 'aa::' }],
  ['', 'a'.padEnd(4_096), { host: 'a' }],
])('a reply of type %j with %j is parsed', (type, body, address) => {
  expect(readResolverAnswer(type, body)).toEqual(address)
})

test.each([
  ['', ''],
  ['', 'two words'],
  ['', 'a'.padEnd(4_097)],
  ['', 'a:'],
  ['', 'a:000080'],
  ['', '[::1]:65536'],
  ['', '[::1]:0'],
  ['', '[::1]x'],
  ['', ':::x'],
  ['', `${'0:'.repeat(23)}`],
  ['', '{"port":1}'],
  ['', '{"host":"a","port":0}'],
  ['', '{"host":"a","port":65536}'],
  ['', '{"host":"a","port":1.5}'],
  ['', '{"host":"a","api_port":65536}'],
  ['', '{"host":"two words"}'],
  ['application/json', 'null'],
  ['application/json', '7'],
  ['', 'host:0'],
  ['', 'host:65536'],
  ['', 'host:x'],
  ['', '[node]:1'],
  ['', 'a'.repeat(254)],
  ['', `${'a'.repeat(10)}\n${'b'.repeat(5_000)}`],
  ['', '{"hostname":5}'],
  ['', '{"hostname":"a","port":"80"}'],
  ['', '{"hostname":"a","quic_port":0}'],
  ['', '{'],
  ['application/json', 'plain'],
  ['application/json', '[1]'],
])('a reply of type %j with %j has no host', (type, body) => {
  expect(readResolverAnswer(type, body)).toBeUndefined()
})

test('any resolver reply parses to an address or to undefined', () => {
  law([fc.string(), fc.string()], (type, body) => {
    const address = readResolverAnswer(type, body)
    if (address) expect(parseAddress(address.host.includes(':') ? `[${address.host}]` : address.host)).toBeDefined()
  })
})
