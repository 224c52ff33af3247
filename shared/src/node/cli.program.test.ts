import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { VacancyError } from '../errors.ts'
import { type CommandSpec, type Flags, helpOf, parseCommand } from './cli.ts'
import { loadConfig } from './config.ts'

const COMMAND = {
  name: 'vacancy run',
  component: 'node',
  summary: 'Starts a standalone node.',
  flags: {
    'shard-id': { type: 'text', summary: 'Name of the shard.', required: true },
    codecs: { type: 'text', summary: 'The codec list.', value: 'FILE' },
    threads: { type: 'integer', summary: 'Threads.', min: 1, max: 64, default: 2 },
    progress: { type: 'choice', summary: 'How progress is shown.', choices: ['auto', 'json', 'none'], default: 'auto' },
    overwrite: { type: 'boolean', summary: 'Replaces what is there.' },
    voters: { type: 'list', summary: 'Ids of voters.' },
  },
  settings: {
    tcp_port: { type: 'integer', default: 7777, min: 0, max: 65_535, summary: 'Port.' },
    cpu_watch: { type: 'boolean', default: true, summary: 'Watches the cores.' },
    data_dir: { type: 'text', default: './data', summary: 'Folder of all data.' },
  },
  operands: { name: 'DIR', min: 0, max: 1, summary: 'A folder.' },
} as const satisfies CommandSpec<Flags>

const NEEDED = ['--shard-id', 's1']

function parse(args: string[], env = {}) {
  return parseCommand(COMMAND, [...NEEDED, ...args], env)
}

function fault(args: string[], env = {}): string {
  try {
    parseCommand(COMMAND, args, env)
  } catch (error) {
    expect((error as VacancyError).code).toBe('usage_error')
    return (error as Error).message
  }
  throw new Error('no fault was found')
}

test('a flag takes its value after a blank or an equals sign', () => {
  const { flags } = parse(['--codecs', 'c.yml', '--threads=3', '--progress=json', '--overwrite', '--voters', 'a, b,c'])

  expect(flags).toEqual({
    shardId: 's1',
    codecs: 'c.yml',
    threads: 3,
    progress: 'json',
    overwrite: true,
    voters: ['a', 'b', 'c'],
  })
})

test('the view has each flag with its value and source, and no password of a URL', () => {
  const { view } = parse(['--threads=3', '--voters', 'http://me:secret@a:1,b'], { VACANCY_NODE_PROGRESS: 'none' })

  expect(view).toEqual({
    'shard-id': { value: 's1', origin: 'flag', at: '--shard-id' },
    codecs: { value: '', origin: 'default', at: '' },
    threads: { value: 3, origin: 'flag', at: '--threads' },
    progress: { value: 'none', origin: 'env', at: 'VACANCY_NODE_PROGRESS' },
    overwrite: { value: false, origin: 'default', at: '' },
    voters: { value: 'http://********@a:1, b', origin: 'flag', at: '--voters' },
  })
})

test('the words of a repeated list add up, and replace those of its variable', () => {
  const { flags } = parse(['--voters', 'a', '--voters=b,c'], { VACANCY_NODE_VOTERS: 'd' })

  expect(flags.voters).toEqual(['a', 'b', 'c'])
})

test('an omitted flag has its default, false, or undefined', () => {
  expect(parse([]).flags).toEqual({
    shardId: 's1',
    codecs: undefined,
    threads: 2,
    progress: 'auto',
    overwrite: false,
    voters: undefined,
  })
})

test('each flag is also a variable, and the flag wins', () => {
  const env = {
    VACANCY_NODE_THREADS: '5',
    VACANCY_NODE_SHARD_ID: 's2',
    VACANCY_NODE_OVERWRITE: 'true',
    VACANCY_NODE_CODECS: '',
  }

  expect(parseCommand(COMMAND, [], env).flags).toMatchObject({
    threads: 5,
    shardId: 's2',
    overwrite: true,
    codecs: undefined,
  })
  expect(parseCommand(COMMAND, ['--threads=6'], env).flags.threads).toBe(6)
})

test('configuration keys are flags and variables too, and reach the configuration with their origin', () => {
  const { given } = parse(['--tcp-port', '0', '--cpu-watch=false'], { VACANCY_NODE_DATA_DIR: '/env' })

  const config = loadConfig({ schema: COMMAND.settings, given })

  expect(config.values).toEqual({ tcpPort: 0, cpuWatch: false, dataDir: '/env' })
  expect(config.origins).toEqual({
    tcp_port: { from: 'flag', at: '--tcp-port' },
    cpu_watch: { from: 'flag', at: '--cpu-watch' },
    data_dir: { from: 'env', at: 'VACANCY_NODE_DATA_DIR' },
  })
})

test.each([
  [['--shrad-id', 's1'], 'unknown flag --shrad-id; did you mean --shard-id?; --shard-id is required (see --help)'],
  [[...NEEDED, '--tcp-prot=1'], 'unknown flag --tcp-prot; did you mean --tcp-port? (see --help)'],
  [[...NEEDED, '-t', '3'], expect.stringMatching(/^unknown flag -t.*; unexpected argument|^unknown flag -t/)],
  [[], '--shard-id is required (see --help)'],
  [['--shard-id'], expect.stringContaining('--shard-id needs a value')],
  [['--shard-id', '--overwrite'], expect.stringContaining('--shard-id needs a value')],
  [[...NEEDED, '--threads', 'many'], '--threads: "many" is not a whole number from 1 to 64 (see --help)'],
  [[...NEEDED, '--threads=65'], '--threads: 65 is not a whole number from 1 to 64 (see --help)'],
  [[...NEEDED, '--threads', '-1'], '--threads: -1 is not a whole number from 1 to 64 (see --help)'],
  [[...NEEDED, '--progress=loud'], '--progress: "loud" is not one of auto, json, none (see --help)'],
  [[...NEEDED, '--overwrite=perhaps'], '--overwrite: "perhaps" is not true or false (see --help)'],
  [[...NEEDED, '--voters=a,,b'], '--voters: "a,,b" is not a list of words separated by commas (see --help)'],
  [[...NEEDED, 'one', 'two'], 'unexpected argument "two" (see --help)'],
])('%j is refused in one line', (args, line) => {
  expect(fault(args)).toEqual(line)
})

test('an invalid variable is named in the error', () => {
  expect(fault(NEEDED, { VACANCY_NODE_THREADS: 'x' })).toContain('VACANCY_NODE_THREADS: "x" is not a whole number')
})

test.each([
  [{ VACANCY_NODE_TREADS: '3' }, ['VACANCY_NODE_TREADS', '; did you mean VACANCY_NODE_THREADS?']],
  // The prefix of no program.
  [{ VACANCY_NODES_THREADS: '3' }, ['VACANCY_NODES_THREADS', '; did you mean VACANCY_NODE_THREADS?']],
  [{ VACANCY_COLOUR: 'red' }, ['VACANCY_COLOUR', '']],
])('%j is a warning, not an error', (env, [variable, suggestion]) => {
  expect(parse([], env).warnings).toEqual([`${variable} is set but unknown: VACANCY_NODE_… is read${suggestion}`])
})

test('variables of other programs, of development and of applications are no concern of a program', () => {
  const others = {
    VACANCY_PROXY_HTTP_PORT: '1',
    VACANCY_RUN_CLUSTERED_TCP_PORT: '1',
    VACANCY_SEED: '1',
    VACANCY_TOKEN: 't',
  }

  expect(parse([], others).warnings).toEqual([])
  expect(parseCommand({ ...COMMAND, component: 'RUN' }, NEEDED, others).warnings).toEqual([])
  const sibling = { ...COMMAND, flags: { url: { type: 'text', summary: 'Where.' } } } as const
  expect(parseCommand(COMMAND, NEEDED, { VACANCY_NODE_URL: 'u' }, [sibling]).warnings).toEqual([])
})

test('variables that a platform makes from the name of a service are ignored with a word', () => {
  const ofService = {
    VACANCY_NODE_TCP_PORT: 'tcp://10.0.0.1:7777',
    VACANCY_NODE_SERVICE_HOST: '10.0.0.1',
    VACANCY_NODE_SERVICE_PORT_DATA: '7777',
    VACANCY_NODE_PORT_7777_TCP_ADDR: '10.0.0.1',
    VACANCY_PROXY_PORT: 'tcp://10.0.0.2:8777',
  }

  const { given, warnings } = parse([], ofService)

  expect(given.size).toBe(0)
  expect(warnings).toEqual([
    'ignored as variables of a service of the platform: VACANCY_NODE_TCP_PORT, VACANCY_NODE_SERVICE_HOST, VACANCY_NODE_SERVICE_PORT_DATA, VACANCY_NODE_PORT_7777_TCP_ADDR',
  ])
})

test('operands come after the flags, also after --', () => {
  expect(parse(['folder']).operands).toEqual(['folder'])
  expect(parse(['--', '--odd']).operands).toEqual(['--odd'])
})

test('help names every flag and key with range and default', () => {
  const help = helpOf(COMMAND)

  expect(help).toMatch(/^usage: vacancy run \[flags\] \[DIR\]$/m)
  expect(help).toMatch(/^ {2}--shard-id TEXT +Name of the shard\. \(required\)$/m)
  expect(help).toMatch(/^ {2}--threads N +Threads\. \(a whole number from 1 to 64; default 2\)$/m)
  expect(help).toMatch(/^ {2}--codecs FILE +The codec list\.$/m)
  expect(help).toMatch(/^ {2}--tcp-port N +Port\. \(a whole number from 0 to 65535; default 7777\)$/m)
  expect(help).toContain('VACANCY_NODE_SHARD_ID')
})

// A real process: streams and exit codes exist nowhere else.
let folder: string

beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'vacancy-cli-'))
  writeFileSync(
    path.join(folder, 'program.ts'),
    `import { defineCommand, runCommands } from ${JSON.stringify(path.join(import.meta.dirname, 'index.ts'))}
     import { assert, VacancyError } from ${JSON.stringify(path.join(import.meta.dirname, '../index.ts'))}
     const flags = { ending: { type: 'text', summary: 'How it ends.', required: true } } as const
     const run = defineCommand({
       name: 'vacancy run', component: 'node', summary: 'Ends as configured.', flags,
       async run({ flags }) {
         setInterval(() => {}, 1000) // keeps the process alive, as a server would
         if (flags.ending === 'data') throw new VacancyError('data_conflict', { reason: 'first line\\nsecond line' })
         if (flags.ending === 'bug') assert(1 > 2, 'one is more than two')
         if (flags.ending === 'other') throw new Error('something else')
         process.exit(0)
       },
     })
     const count = defineCommand({ name: 'vacancy count', component: 'node', summary: 'Returns an exit code.', flags: {}, run: async () => 3 })
     await runCommands([run, count], process.argv.slice(2))`,
  )
})

afterAll(() => rmSync(folder, { recursive: true, force: true }))

function program(...args: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [path.join(folder, 'program.ts'), ...args], {
    encoding: 'utf8',
  })
  return { status, stdout, stderr }
}

test.each([
  [['run', '--ending=data'], 65, 'vacancy run: first line\nvacancy run: second line\n'],
  [['run', '--ending=bug'], 72, expect.stringContaining('one is more than two')],
  [['run', '--ending=other'], 1, expect.stringContaining('something else')],
  [
    ['run', '--endign=data'],
    64,
    expect.stringMatching(/^vacancy run: unknown flag --endign; did you mean --ending\?.*\n$/),
  ],
  [['rnu'], 64, 'vacancy: unknown command rnu; available: vacancy run, vacancy count\n'],
  [['count'], 3, ''],
])('%j ends with exit code %d and its reason on stderr', (args, code, words) => {
  expect(program(...args)).toEqual({ status: code, stdout: '', stderr: words })
})

test('--help and --version answer on stdout and exit 0, whatever else is missing', () => {
  expect(program('run', '--help')).toMatchObject({ status: 0, stdout: expect.stringContaining('--ending TEXT') })
  expect(program('--help')).toMatchObject({
    status: 0,
    stdout: expect.stringMatching(/^ {2}count {2}Returns an exit code\.$/m),
  })
  expect(program('run', '--version')).toMatchObject({ status: 0, stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) })
})
