import { readFileSync } from 'node:fs'
import { ERRORS, WIRE_CODES } from '@vacancy/shared'
import { COMMAND_LIST } from '@vacancy/shared/wire'
import { expect, test } from 'vitest'
import { type ClientOptions, checkOptions } from './options.ts'

const hosts = (count: number) => Array.from({ length: count }, (_, index) => `h${index}`)

test.each<[string, ClientOptions]>([
  ['one node', { nodes: ['h1'] }],
  ['32 nodes', { nodes: hosts(32) }],
  ['one host with two ports', { nodes: ['h1:1', 'h1:2'] }],
  ['the highest port', { port: 65_535 }],
  ['the longest deadline', { deadlineMs: 2 ** 31 - 1 }],
  ['the longest deadline to connect', { connectDeadlineMs: 2 ** 31 - 1 }],
  ['the most connections', { connections: 1_024 }],
  ['the most requests', { maxInFlight: 1_000_000, maxQueued: 10_000_000 }],
  ['an API with TLS', { nodes: [{ host: 'h1', api: 'https://h1/x' }] }],
])('%s is accepted', (_, options) => {
  expect(() => checkOptions(options)).not.toThrow()
})

test.each<[string, ClientOptions, string]>([
  ['no node', { nodes: [] }, 'nodes must list 1 to 32 addresses'],
  ['33 nodes', { nodes: hosts(33) }, 'nodes must list 1 to 32 addresses'],
  ['a node twice', { nodes: ['h1', 'h1:7777'] }, 'nodes must be different'],
  ['nodes and a host', { nodes: ['h1'], host: 'h2' }, 'give nodes, or host and port'],
  ['nodes behind a router', { nodes: ['h1'], envelope: 'router' }, 'nodes cannot be combined with routers'],
  ['routers and nodes', { routers: ['h1'], nodes: ['h2'] }, 'nodes cannot be combined with routers'],
  ['no router', { routers: [] }, 'routers must list 1 to 32 addresses'],
  ['a router twice', { routers: ['h1', 'h1:9000'] }, 'routers must be different'],
  ['routers and a port', { routers: ['h1'], port: 1 }, 'give routers, or host and port'],
  ['a router as a URL', { routers: ['http://h1'] }, 'routers must be given as host:port, got http://h1'],
  ['a port of 0', { port: 0 }, 'port must be a whole number, 1 to 65535, got 0'],
  ['a port above 65535', { port: 65_536 }, 'port must be a whole number, 1 to 65535, got 65536'],
  ['a deadline that no timer takes', { deadlineMs: 2 ** 31 }, 'deadlineMs must be a whole number'],
  ['half a connection', { connections: 0.5 }, 'connections must be a whole number'],
  ['an empty token', { token: '' }, 'token must be text and not empty'],
  ['a token that is no text', { token: 7 as never }, 'token must be text and not empty'],
  ['a list that is none', { nodes: 'h1' as never }, 'nodes must list 1 to 32 addresses'],
  ['another envelope', { envelope: 'x' as never }, "envelope must be 'router' or absent"],
  ['other reads', { reads: 'x' as never }, 'reads must be one of followers, any, leader'],
  ['1,025 connections', { connections: 1_025 }, 'connections must be a whole number, 1 to 1024, got 1025'],
  ['no connection', { connections: 0 }, 'connections must be a whole number, 1 to 1024, got 0'],
  ['too many requests', { maxInFlight: 1_000_001 }, 'maxInFlight must be a whole number, 1 to 1000000'],
  ['too many queued calls', { maxQueued: 10_000_001 }, 'maxQueued must be a whole number, 1 to 10000000'],
  [
    'a deadline to connect',
    { connectDeadlineMs: 2 ** 31 },
    'connectDeadlineMs must be a whole number, 1 to 2147483647',
  ],
  ['a number as text', { port: '7777' as never }, 'port must be a whole number, 1 to 65535, got 7777'],
  [
    'an API of another protocol',
    { nodes: [{ host: 'h', api: 'ftp://h' }] },
    'api must be the address of an HTTP API, got ftp://h',
  ],
  ['an API that is no URL', { nodes: [{ host: 'h', api: 'x'.repeat(400) }] }, `got ${'x'.repeat(300)}`],
  ['a long name', { nodes: ['x:'.repeat(200)] }, `nodes must be given as host:port, got ${'x:'.repeat(150)}`],
  ['a node without a name', { nodes: [{ host: '' }] }, 'host must be a name or an address'],
  ['a list of hosts', { hosts: ['h1'] } as never, 'the option "hosts" is not known; did you mean host?'],
  ['a misspelt name', { deadlineMS: 5 } as never, 'the option "deadlineMS" is not known; did you mean deadlineMs?'],
  ['a node with its TCP port', { nodes: [{ host: 'h', tcpPort: 1 }] as never }, 'the option "tcpPort" is not known'],
  ['a URL instead of options', 'tcp://127.0.0.1:7777' as never, 'connect takes options, such as { nodes:'],
  ['a host and routers', { routers: ['h1'], host: 'h2' }, 'give routers, or host and port'],
])('%s is refused', (_, options, message) => {
  expect(() => checkOptions(options)).toThrow(message)
})

test('messages show no more than 300 characters', () => {
  for (const options of [{ nodes: ['x:'.repeat(200)] }, { nodes: [{ host: 'h', api: 'x'.repeat(400) }] }])
    expect(() => checkOptions(options)).toThrow(
      expect.objectContaining({ message: expect.stringMatching(/got .{300}$/) }),
    )
})

test('a node is given as a name, an address or with its port', () => {
  const { nodes } = checkOptions({ nodes: ['h1', 'h1:1', '[::1]', '[::1]:2', { host: 'h2', port: 3 }] })

  expect(nodes.map(({ address }) => address)).toEqual([
    { host: 'h1', port: 7777 },
    { host: 'h1', port: 1 },
    { host: '::1', port: 7777 },
    { host: '::1', port: 2 },
    { host: 'h2', port: 3 },
  ])
})

test('a router has its own default port, and envelopes', () => {
  const { nodes, isRouter, isShard } = checkOptions({ routers: ['h1', 'h2:1', { host: 'h3' }] })

  expect(nodes.map(({ address }) => address)).toEqual([
    { host: 'h1', port: 9000 },
    { host: 'h2', port: 1 },
    { host: 'h3', port: 9000 },
  ])
  expect({ isRouter, isShard }).toEqual({ isRouter: true, isShard: false })
  expect(checkOptions({ envelope: 'router' }).nodes[0]?.address).toEqual({ host: '127.0.0.1', port: 9000 })
})

const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8')
const errors = readme.slice(readme.indexOf('## Errors'))
const options = readme.slice(readme.indexOf('## Options'), readme.indexOf('## Errors'))

test('the README names every command but the handshake', () => {
  for (const { name } of COMMAND_LIST.filter(({ name }) => name !== 'LOGIN')) expect(readme).toContain(name)
})

test('the README names every error code, and only existing codes', () => {
  const named = [...errors.matchAll(/`(\d{3}|[A-Z]+_?[A-Z]+|[a-z]+_[a-z]+|cancelled|backpressure)`/g)].map(
    ([, code]) => code,
  )

  expect(named).toEqual(expect.arrayContaining([...WIRE_CODES]))
  for (const code of named) expect([...WIRE_CODES, ...Object.keys(ERRORS)]).toContain(code)
})

test('the README names every option, with its default', () => {
  const { isRouter: _, isShard: __, ...settings } = checkOptions({})

  for (const [name, value] of Object.entries(settings)) {
    expect(options).toContain(`\`${name}\``)
    if (typeof value === 'number') expect(options).toContain(String(value))
  }
  expect(options).toContain('`envelope`')
})
