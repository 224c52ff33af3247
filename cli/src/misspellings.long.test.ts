/**
 * A thousand misspelt names of fields, parameters, flags, variables, keys and columns, over every interface: each is
 * refused, or at least named. None is accepted in silence. The names come from the tables of each interface, or from
 * what the running program says of itself.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { IMPORT_COLUMNS, readImportHeader, spellingOf } from '@vacancy/shared'
import {
  CONTROL_ROUTES,
  NODE_ROUTES,
  type NodeRoute,
  namesOf,
  registerRequest,
  reserveRequest,
  segmentsRequest,
  singleJobBody,
  topicConfig,
} from '@vacancy/shared/contract'
import { takePort } from '@vacancy/testkit/free-port'
import {
  launch,
  type NodeProcess,
  type Running,
  removeFolder,
  runVacancy,
  startNodeProcess,
  temporaryFolder,
} from '@vacancy/testkit/node'
import { createRandom, type Random } from '@vacancy/testkit/random'
import { eventually } from '@vacancy/testkit/until'
import { afterAll, beforeAll, expect, test } from 'vitest'

const TRIES = 1_000
const SEED = Number(process.env['VACANCY_SEED'] ?? Math.floor(Math.random() * 2 ** 31))
const TOKEN = 'the-token-of-everybody'
const folder = temporaryFolder()
const programs: Running[] = []
let node: NodeProcess
let control: Running
const urls = { proxy: '', registry: '', queue: '' }

beforeAll(async () => {
  node = await startNodeProcess({ folder })
  const port = async () => {
    const taken = await takePort()
    taken.close()
    return taken.port
  }
  const [proxy, registry, queue] = [await port(), await port(), await port()]
  const auth = join(folder, 'queue-auth.yml')
  writeFileSync(auth, `tokens:\n  - { token: ${TOKEN}, role: admin }\n  - { token: ${TOKEN}-p, role: producer }\n`)
  const upstream = ['--upstream-addr', '127.0.0.1', '--upstream-port', String(node.tcpPort)]
  control = launch([
    ...[
      'control-plane',
      '--web=false',
      '--listen-port',
      '0',
      '--data-dir',
      join(folder, 'control'),
      '--sign-in',
      'ada',
    ],
  ])
  programs.push(
    control,
    launch(['proxy', '--mode', 'standalone', ...upstream, '--http-port', String(proxy)]),
    launch([
      ...['registry', '--port', String(registry), '--codecs-path', join(folder, 'codecs.yml')],
      ...['--state-file', join(folder, 'state.json')],
    ]),
    launch([
      ...['queue', 'serve', '--listen-port', String(queue), '--data-dir', join(folder, 'queue'), '--auth-file', auth],
    ]),
  )
  await eventually(() => expect(control.output()).toMatch(/^sign-in: .*\n/m), { timeout: 60_000 })
  urls.proxy = `http://127.0.0.1:${proxy}`
  urls.registry = `http://127.0.0.1:${registry}`
  urls.queue = `http://127.0.0.1:${queue}`
  for (const url of Object.values(urls))
    await eventually(async () => expect((await fetch(`${url}/ready`)).status).toBe(200), { timeout: 60_000 })
}, 180_000)

afterAll(async () => {
  for (const { child, ended } of programs) {
    child.kill()
    await ended
  }
  await node?.stop()
  removeFolder(folder)
})

/** One place that takes names: a wrong one must be named in what comes back. */
type Place = {
  readonly what: string
  /** How many of the tries it gets, relative to the others. */
  readonly weight: number
  readonly names: readonly string[]
  /** @returns what the caller is told, and whether it was refused */
  readonly give: (name: string) => Promise<Told>
}
type Told = { readonly refused: boolean; readonly text: string }

async function told(url: string, init: RequestInit = {}): Promise<Told> {
  const response = await fetch(url, init)
  const unknown = response.headers.get('x-unknown-fields') ?? ''
  return { refused: response.status >= 400 && response.status < 500, text: `${await response.text()} ${unknown}` }
}

const sending =
  (url: string, wrap: (body: object) => unknown, method = 'POST', token = '') =>
  (name: string) =>
    told(url, {
      method,
      body: JSON.stringify(wrap({ [name]: 1 })),
      headers: { 'content-type': 'application/json', ...(token !== '' && { authorization: `Bearer ${token}` }) },
    })
const asking = (url: string) => (name: string) => told(`${url}?${name}=1`)

async function proxyPlaces(): Promise<Place[]> {
  const { components } = (await (await fetch(`${urls.proxy}/openapi.json`)).json()) as {
    components: { schemas: { [name: string]: { properties: { body: { properties: object } } } } }
  }
  const url = `${urls.proxy}/api`
  const commands = Object.entries(components.schemas).filter(([name]) => name.endsWith('Request'))
  return [
    ...commands.map(([schema, { properties }]) => {
      const command = schema.replace('Request', '')
      const names = Object.keys(properties.body.properties)
      return { what: command, weight: 3, names, give: sending(url, (body) => ({ command, body })) }
    }),
    {
      what: 'POST /api',
      weight: 3,
      names: ['segment', 'payload'],
      give: sending(url, (top) => ({ command: 'GETCODECS', ...top })),
    },
  ]
}

function nodePlaces(): Place[] {
  const url = `http://127.0.0.1:${node.apiPort}`
  return Object.values<NodeRoute>(NODE_ROUTES)
    .filter(({ mode, probed }) => mode === 'both' && !probed)
    .flatMap(({ method, path, body, query }) => [
      ...(method === 'POST' && path !== '/peers'
        ? [
            {
              what: `${method} ${path}`,
              weight: 2,
              names: orSome(namesOf(body)),
              give: sending(url + path, (sent) => sent),
            },
          ]
        : []),
      ...(method === 'GET'
        ? [{ what: `${method} ${path}?`, weight: 2, names: orSome(namesOf(query)), give: asking(url + path) }]
        : []),
    ])
}

/** Where nothing is known, every name is wrong. */
const orSome = (names: readonly string[]) => (names.length > 0 ? names : ['force', 'confirm'])

function registryPlaces(): Place[] {
  const url = urls.registry
  const own = { kind: 'node', id: 'n1', zone: 'z1', shard: 's1' }
  return [
    {
      what: 'POST /register',
      weight: 4,
      names: Object.keys(registerRequest.shape),
      give: sending(`${url}/register`, (sent) => ({ ...own, ...sent })),
    },
    {
      what: 'POST /shards/s1/segments',
      weight: 4,
      names: Object.keys(segmentsRequest.shape),
      give: sending(`${url}/shards/s1/segments`, (sent) => ({ zone: 'z1', segments: ['a'], ...sent })),
    },
    {
      what: 'PUT /segments/a',
      weight: 2,
      names: Object.keys(reserveRequest.shape),
      give: sending(`${url}/segments/a`, (sent) => sent, 'PUT'),
    },
    { what: 'GET /versions', weight: 3, names: ['since', 'epoch', 'wait_secs'], give: asking(`${url}/versions`) },
    { what: 'GET /topology', weight: 1, names: ['zone'], give: asking(`${url}/topology`) },
  ]
}

function queuePlaces(): Place[] {
  const { queue } = urls
  const job = singleJobBody.shape.job as unknown as {
    readonly in?: { readonly shape: object }
    readonly shape?: object
  }
  return [
    {
      what: 'job',
      weight: 6,
      names: Object.keys(job.shape ?? job.in?.shape ?? {}),
      give: sending(
        `${queue}/producer/jobs`,
        (sent) => ({ topic: 't', jobs: [{ id: 'a', ...sent }] }),
        'POST',
        `${TOKEN}-p`,
      ),
    },
    {
      what: 'topic',
      weight: 4,
      names: Object.keys(topicConfig.shape),
      give: sending(`${queue}/producer/topic`, (sent) => ({ topic: 't', config: sent }), 'POST', TOKEN),
    },
  ]
}

/** All routes of the console, as a person who is signed in. */
async function controlPlaces(): Promise<Place[]> {
  const [, url = '', code = ''] = /^sign-in: (\S+)\/sign-in#code=(\S+)$/m.exec(control.output()) ?? []
  const signedIn = await fetch(`${url}/api/v1/session/link`, {
    ...{ method: 'POST', body: JSON.stringify({ code }) },
    headers: { 'content-type': 'application/json', origin: url },
  })
  const { csrf } = (await signedIn.json()) as { csrf: string }
  const person = { origin: url, cookie: signedIn.headers.get('set-cookie')?.split(';')[0] ?? '', 'x-csrf': csrf }
  return Object.entries(CONTROL_ROUTES).flatMap(([route, row]) => {
    const [method = '', path = ''] = route.split(' ')
    const address = url + path.replaceAll(/\{\w+\}/g, '0'.repeat(64))
    const schemas = row as { readonly [part in 'body' | 'query']?: Parameters<typeof namesOf>[0] }
    const send = (to: string, sent: object | undefined) =>
      told(to, {
        method,
        headers: { ...person, ...(sent && { 'content-type': 'application/json' }) },
        ...(sent && { body: JSON.stringify(sent) }),
      })
    // The few routes with both name a node in the body, which is checked first.
    const whole = schemas.body && Object.fromEntries(namesOf(schemas.body).map((name) => [name, 'n1']))
    const give = {
      body: (name: string) => send(address, { [name]: 1 }),
      query: (name: string) => send(`${address}?${name}=1`, whole),
    }
    return (['body', 'query'] as const).map((part) => ({
      ...{ what: `${part} of ${route}`, weight: 1, names: namesOf(schemas[part]), give: give[part] },
    }))
  })
}

function columnPlaces(): Place[] {
  return (['properties', 'packages'] as const).map((file) => ({
    what: `${file}.csv`,
    weight: 8,
    names: IMPORT_COLUMNS[file].slice(1),
    give: async (name: string) => {
      const cells = [IMPORT_COLUMNS[file][0], name, ...IMPORT_COLUMNS[file].slice(2).toReversed()]
      const header = readImportHeader(file, cells)
      return { refused: header.kind === 'refused', text: JSON.stringify(header) }
    },
  }))
}

const PROGRAMS = [
  'run',
  'run-clustered',
  'build-snapshot',
  'registry',
  'resolver',
  'router',
  'bridge',
  'proxy',
  'backup',
]

async function commandPlaces(): Promise<Place[]> {
  const places: Place[] = []
  for (const program of PROGRAMS) {
    const { stdout } = await runVacancy([program, '--help'])
    const flags = [...stdout.matchAll(/^ {2}--([a-z-]+)/gm)].map(([, flag]) => flag as string)
    const give = async (name: string) => {
      const { code, stderr } = await runVacancy([program, `--${name}=1`])
      return { refused: code === 64, text: stderr }
    }
    places.push({ what: `vacancy ${program}`, weight: 0.3, names: flags.filter((flag) => flag.length > 4), give })
  }
  const file = join(folder, 'wrong.yml')
  places.push({
    what: 'keys of proxy.yml',
    weight: 2,
    names: ['upstream_addr', 'listening_addr', 'auth_enabled', 'timeout_sec'],
    give: async (name) => {
      writeFileSync(file, `mode: standalone\nupstream_addr: a\n${name}: 1\n`)
      const { code, stderr } = await runVacancy(['proxy', '--config', file])
      return { refused: code === 64, text: stderr }
    },
  })
  places.push({
    what: 'variables of vacancy query',
    weight: 2,
    names: ['VACANCY_QUERY_HOST', 'VACANCY_QUERY_TOKEN', 'VACANCY_QUERY_TIMEOUT_MS'],
    give: async (name) => {
      // A variable of another name than ours is nobody's concern, so the beginning stays right.
      const variable = name.startsWith('VACANCY_') ? name : `VACANCY_${name}`
      const { stderr } = await runVacancy(['query', 'commands'], { environment: { [variable]: '1' } })
      return { refused: false, text: stderr.includes(variable) ? `${stderr} ${name}` : stderr }
    },
  })
  return places
}

/** Other names of a field, from which a misspelling may be one letter away. */
const ALIASES = ['rate_feature', 'dates', 'type']
const LETTERS = 'abcdefghijklmnopqrstuvwxyz'

/** Another word with the same beginning: a letter less, more, other, or two in the wrong order. */
function misspell(random: Random, name: string): string {
  const at = 1 + random.below(Math.max(1, name.length - 1))
  const letter = LETTERS[random.below(LETTERS.length)] as string
  const [before, after] = [name.slice(0, at), name.slice(at)]
  return [
    () => before + after.slice(1),
    () => before + letter + after,
    () => before + letter + after.slice(1),
    () => before + (after[1] ?? letter) + (after[0] ?? '') + after.slice(2),
  ][random.below(4)]?.() as string
}

function drawn(random: Random, places: readonly Place[]): Place {
  let left = (random.below(1_000_000) / 1_000_000) * places.reduce((sum, { weight }) => sum + weight, 0)
  for (const place of places) {
    left -= place.weight
    if (left < 0) return place
  }
  return places.at(-1) as Place
}

test('none of a thousand misspelt names is accepted in silence', async () => {
  const random = createRandom(SEED)
  const places = [
    ...(await proxyPlaces()),
    ...nodePlaces(),
    ...registryPlaces(),
    ...queuePlaces(),
    ...(await controlPlaces()),
    ...columnPlaces(),
    ...(await commandPlaces()),
  ].filter(({ names }) => names.length > 0)
  const silent: string[] = []
  for (let n = 0; n < TRIES; n++) {
    const place = drawn(random, places)
    const name = place.names[random.below(place.names.length)] as string
    const wrong = misspell(random, name)
    const isKnown = [...place.names, ...ALIASES].some(
      (each) => spellingOf(each).toLowerCase() === spellingOf(wrong).toLowerCase(),
    )
    if (isKnown || wrong === '') continue
    const { refused, text } = await place.give(wrong)
    if (!text.includes(wrong))
      silent.push(`${place.what}: ${wrong} for ${name}: ${refused ? 'refused' : 'accepted'} with ${text.slice(0, 200)}`)
  }

  expect(silent, `VACANCY_SEED=${SEED}`).toEqual([])
}, 900_000)
