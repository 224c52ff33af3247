import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { VacancyError } from '../errors.ts'
import {
  type ConfigSchema,
  type ConfigSources,
  camelCase,
  configTable,
  configView,
  type Given,
  loadConfig,
} from './config.ts'
import { readYamlKeys } from './yaml.ts'

const SCHEMA = {
  tcp_port: { type: 'integer', default: 7777, min: 0, max: 65_535, summary: 'Port of the binary protocol.' },
  api_port: { type: 'integer', default: 8080, min: 0, max: 65_535, summary: 'Port of the HTTP API.' },
  raft_tick_ms: {
    type: 'integer',
    default: 30,
    min: 5,
    max: 1_000,
    unit: 'ms',
    summary: 'A tick.',
    appliesTo: 'clustered',
  },
  registry_heartbeat_secs: { type: 'integer', default: 10, min: 1, max: 3_600, unit: 's', summary: 'Heartbeat.' },
  cpu_watch: { type: 'boolean', default: true, summary: 'Stops when the number of cores changes.' },
  data_dir: { type: 'text', default: './data', summary: 'Folder of all data.' },
  log_level: { type: 'choice', default: 'info', choices: ['debug', 'info', 'warn'], summary: 'Least level logged.' },
  password: { type: 'text', default: '', summary: 'A secret.', secret: true },
} as const satisfies ConfigSchema

let folder: string

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'vacancy-config-'))
})

afterEach(() => rmSync(folder, { recursive: true, force: true }))

function file(text: string): string {
  const name = path.join(folder, 'vacancy.yml')
  writeFileSync(name, text)
  return name
}

function load(text: string, more: Partial<ConfigSources<typeof SCHEMA>> = {}) {
  return loadConfig({ schema: SCHEMA, file: file(text), ...more })
}

/** The error lines, without the folder. */
function faults(run: () => unknown): string[] {
  try {
    run()
  } catch (error) {
    expect(error).toBeInstanceOf(VacancyError)
    expect((error as VacancyError).code).toBe('invalid_config')
    return (error as VacancyError).message.replaceAll(`${folder}/`, '').split('\n')
  }
  throw new Error('no fault was found')
}

const given = (key: string, text: string, from: 'env' | 'flag', at: string) =>
  [key, { text, from, at }] as const satisfies [string, Given]

test('without any source every value is its default, with that origin', () => {
  const config = loadConfig({ schema: SCHEMA })

  expect(config.values).toEqual({
    tcpPort: 7777,
    apiPort: 8080,
    raftTickMs: 30,
    registryHeartbeatSecs: 10,
    cpuWatch: true,
    dataDir: './data',
    logLevel: 'info',
    password: '',
  })
  expect(config.origins.tcp_port).toEqual({ from: 'default', at: '' })
  expect(config.file).toBe('')
})

test('a flag wins over a variable, a variable over the file, the file over the default', () => {
  const config = load('tcp_port: 1\napi_port: 2\ndata_dir: /file\ncpu_watch: false\n', {
    given: new Map([
      given('api_port', '3', 'env', 'VACANCY_NODE_API_PORT'),
      given('data_dir', '/flag', 'flag', '--data-dir'),
      given('log_level', 'warn', 'flag', '--log-level'),
    ]),
  })

  expect(config.values).toMatchObject({ tcpPort: 1, apiPort: 3, dataDir: '/flag', cpuWatch: false, logLevel: 'warn' })
  expect(config.origins.tcp_port).toEqual({ from: 'file', at: `${folder}/vacancy.yml:1` })
  expect(config.origins.api_port).toEqual({ from: 'env', at: 'VACANCY_NODE_API_PORT' })
  expect(config.origins.data_dir).toEqual({ from: 'flag', at: '--data-dir' })
})

test('the values cannot be changed', () => {
  const { values } = load('tcp_port: 1')

  expect(() => Object.assign(values, { tcpPort: 2 })).toThrow(TypeError)
})

test('all errors are reported at once, each with file, line, key, value and range', () => {
  const text = [
    'tcp_port: 70000',
    'api_port: "8080"',
    'cpu_watch: yes please',
    'data_dir: 12',
    'log_level: loud',
    'raft_tick_ms: 30.5',
    'tcp_prot: 7777',
    'registry_heartbeat_secs:',
    'password: [1, 2]',
  ].join('\n')

  expect(faults(() => load(text))).toEqual([
    'vacancy.yml:1: tcp_port: 70000 is not a whole number from 0 to 65535',
    'vacancy.yml:2: api_port: "8080" is not a whole number from 0 to 65535',
    'vacancy.yml:3: cpu_watch: "yes please" is not true or false',
    'vacancy.yml:4: data_dir: 12 is not text; put it in quotes',
    'vacancy.yml:5: log_level: "loud" is not one of debug, info, warn',
    'vacancy.yml:6: raft_tick_ms: 30.5 is not a whole number from 5 to 1000 (ms)',
    'vacancy.yml:7: tcp_prot: is not a known key; did you mean tcp_port?',
    'vacancy.yml:8: registry_heartbeat_secs: nothing is not a whole number from 1 to 3600 (s)',
    'vacancy.yml:9: password: ******** is not text; put it in quotes',
  ])
})

test.each([
  ['7e3', 7_000],
  ['0', 0],
  ['65535', 65_535],
])('%s is the whole number %d', (text, value) => {
  expect(load(`tcp_port: ${text}`).values.tcpPort).toBe(value)
})

test.each(['abc', '', '7777x', '1e3', '-1', '65536', '99999999999999999999'])(
  'the flag value "%s" is no port',
  (text) => {
    const lines = faults(() =>
      loadConfig({ schema: SCHEMA, given: new Map([given('tcp_port', text, 'flag', '--tcp-port')]) }),
    )

    expect(lines).toEqual([expect.stringMatching(/^--tcp-port: tcp_port: .* is not a whole number from 0 to 65535$/)])
  },
)

test.each([
  ['tcp_port: 1\ntcp_port: 2', /^vacancy.yml:2:1: Map keys must be unique/],
  ['tcp_port: [1', /^vacancy.yml:1:\d+: /],
  ['- tcp_port', /^vacancy.yml:1: must be a mapping of keys to values$/],
  ['just words', /^vacancy.yml:1: must be a mapping of keys to values$/],
  ['1: 2', /^vacancy.yml:1: a key must be text$/],
  ['a: 1\n---\nb: 2', /^vacancy.yml:2:1: Source contains multiple documents/],
  [
    `a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [${'*a,'.repeat(20)}]\nc: [${'*b,'.repeat(20)}]`,
    /vacancy.yml:3: Excessive alias count/,
  ],
])('a file that is not a mapping is refused with its position: %j', (text, line) => {
  expect(faults(() => load(text)).join('\n')).toMatch(new RegExp(line, 'm'))
})

test('an error quotes sixty characters of a value', () => {
  // The quotes count.
  const [whole, cut] = ['x'.repeat(58), 'x'.repeat(59)]

  expect(faults(() => load(`log_level: ${whole}\n`))[0]).toContain(`log_level: "${whole}" `)
  expect(faults(() => load(`log_level: ${cut}\n`))[0]).toContain(`log_level: "${cut}… `)
})

test('an empty file and one with only comments give the defaults', () => {
  expect(load('').values.tcpPort).toBe(7777)
  expect(load('# nothing yet\n').values.tcpPort).toBe(7777)
})

test('a named file must exist; of the searched files the first existing one is read', () => {
  const here = file('tcp_port: 5')
  const missing = path.join(folder, 'missing.yml')

  expect(faults(() => loadConfig({ schema: SCHEMA, file: missing }))[0]).toMatch(/^missing.yml: cannot be read: ENOENT/)
  expect(loadConfig({ schema: SCHEMA, searched: [missing, here] })).toMatchObject({
    file: here,
    values: { tcpPort: 5 },
  })
  expect(loadConfig({ schema: SCHEMA, searched: [missing] }).file).toBe('')
  expect(faults(() => loadConfig({ schema: SCHEMA, searched: [folder, here] }))[0]).toMatch(/cannot be read: EISDIR/)
})

test('an alias sets its key, unless the key is set as well', () => {
  const alias = (key: string) => (/^[a-z]+_heartbeat_secs$/.test(key) ? 'registry_heartbeat_secs' : undefined)

  expect(load('brand_heartbeat_secs: 30', { alias }).values.registryHeartbeatSecs).toBe(30)
  expect(faults(() => load('brand_heartbeat_secs: 30\nregistry_heartbeat_secs: 20', { alias }))).toEqual([
    'vacancy.yml:2: registry_heartbeat_secs: is already set in line 1',
  ])
})

test('an old form has its own hint', () => {
  const hint = (key: string, value: unknown) =>
    key === 'tcp'
      ? `tcp: is the older nested form; write ${Object.keys(value as object).map((name) => `tcp_${name}`)}`
      : undefined

  expect(faults(() => load('tcp:\n  port: 1\nother: 2', { hint }))).toEqual([
    'vacancy.yml:1: tcp: is the older nested form; write tcp_port',
    expect.stringContaining('vacancy.yml:3: other: is not a known key'),
  ])
})

test('checks across keys run only when each key is valid', () => {
  const check = (values: { tcpPort: number; apiPort: number }) =>
    values.tcpPort === values.apiPort ? ['tcp_port and api_port must differ'] : []

  expect(faults(() => load('tcp_port: 8080', { check }))).toEqual(['tcp_port and api_port must differ'])
  expect(faults(() => load('tcp_port: 8080\ncpu_watch: 1', { check }))).toHaveLength(1)
})

test('the view shows values and origins, and hides secrets', () => {
  const config = load('password: hunter2\ntcp_port: 1')

  const view = configView(SCHEMA, config)

  expect(view['tcp_port']).toEqual({ value: 1, origin: 'file', at: `${folder}/vacancy.yml:2` })
  expect(view['api_port']).toEqual({ value: 8080, origin: 'default', at: '' })
  expect(JSON.stringify(view)).not.toContain('hunter2')
  expect(configView(SCHEMA, load(''))['password']?.value).toBe('')
})

test('a key named like an Object member is an unknown key', () => {
  expect(faults(() => load('__proto__: 1\nconstructor: 2\ntoString: 3'))).toHaveLength(3)
})

test('the reference table has one row per key', () => {
  expect(configTable(SCHEMA).split('\n').slice(2)).toEqual(
    expect.arrayContaining(['| `raft_tick_ms` | `30` | 5 to 1000 (ms) | A tick. (clustered) |']),
  )
})

test('names become camelCase', () => {
  expect(['tcp_port', 'tcp-port', 'sys_cores_count', 'a_1_b'].map(camelCase)).toEqual([
    'tcpPort',
    'tcpPort',
    'sysCoresCount',
    'a1B',
  ])
})

test('the type of a value follows from its key', () => {
  const { values } = loadConfig({ schema: SCHEMA })
  const port: number = values.tcpPort
  const level: 'debug' | 'info' | 'warn' = values.logLevel
  // @ts-expect-error: a boolean is not text.
  const watch: string = values.cpuWatch

  expect([port, level, watch]).toEqual([7777, 'info', true])
})

test('a list is a YAML sequence, comma-separated in a variable, and shown as one text', () => {
  const schema = { nodes: { type: 'list', default: [], summary: 'Nodes.' } } as const satisfies ConfigSchema
  const given = new Map([['nodes', { text: 'a, b', at: 'VACANCY_NODES', from: 'env' as const }]])
  const file = path.join(mkdtempSync(path.join(tmpdir(), 'vacancy-list-')), 'x.yml')

  expect(loadConfig({ schema }).values.nodes).toEqual([])
  const config = loadConfig({ schema, given })
  expect(config.values.nodes).toEqual(['a', 'b'])
  expect(configView(schema, config)['nodes']?.value).toBe('a, b')
  writeFileSync(file, 'nodes:\n  - a\n  - b\n')
  expect(loadConfig({ schema, file }).values.nodes).toEqual(['a', 'b'])
  writeFileSync(file, 'nodes: a\n')
  expect(() => loadConfig({ schema, file })).toThrow('nodes: "a" is not a list of texts')
  expect(configTable(schema)).toContain('| `nodes` | empty | list | Nodes. |')
})

function keysOf(text: string) {
  const faults: string[] = []
  return { keys: readYamlKeys(text, 'a.yml', faults), faults }
}

test('a file of 4 MiB is read, and one byte more is refused', () => {
  // "é" has two bytes.
  const text = `a: é${'x'.repeat(4 * 1024 * 1024 - 5)}`

  expect(keysOf(text).faults).toEqual([])
  expect(keysOf(`${text}x`)).toEqual({ keys: [], faults: ['a.yml: is larger than 4194304 bytes'] })
})

test('a value may be used 100 times by its aliases, where it stands included', () => {
  const expand = (aliases: number) => keysOf(`base: &b [1]\nmany: [${Array(aliases).fill('*b').join()}]\n`)

  expect(expand(99).faults).toEqual([])
  expect(expand(99).keys[1]?.value).toHaveLength(99)
  expect(expand(100)).toMatchObject({
    keys: [{ key: 'base' }, { key: 'many', value: undefined }],
    faults: [expect.stringMatching(/^a\.yml:2: Excessive alias count/)],
  })
})
