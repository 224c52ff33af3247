import { runVacancy } from '@vacancy/testkit/node'
import { expect, test } from 'vitest'
import { composeText } from './compose.ts'
import { filesOf } from './files.ts'
import { LEVELS, planOf, type Spec } from './plan.ts'
import { argumentsOf, parseSettings } from './programs.ts'

const SPEC: Spec = {
  level: 'full',
  shards: 2,
  zones: 2,
  nodesPerShard: 3,
  ha: true,
  etcdEndpoints: [],
  network: 77,
  portOffset: 0,
  isOneAddress: false,
}
const plan = planOf(SPEC)
const files = filesOf('/tmp/x')
const launch = { plan, files, settings: [] }
const settings = (...texts: string[]) => parseSettings(texts, { plan, files })

const argsOf = (name: string, given = launch as Parameters<typeof argumentsOf>[1]) => {
  const component = plan.components.find((each) => each.name === name)
  if (component === undefined) throw new Error(`no ${name}`)
  return argumentsOf(component, given, '2026-11-23').join(' ')
}

test('a zone router knows its zone, its name, registry and resolver', () => {
  expect(argsOf('router-zone-1-0')).toBe(
    'router --mode zone --zone-id zone2 --router-id router-zone-1-0 --registry-addr http://127.77.0.1:8080 --resolver-addr http://127.77.0.2:9090 --listen-host 127.79.2.1 --tcp-port 9000 --api-host 127.79.2.1 --api-port 9100 --api-url http://127.79.2.1:9100 --cache-dir /tmp/x/cache/router-zone-1-0',
  )
})

test('a node names the voters of its own shard only', () => {
  expect(argsOf('node-1-0')).toContain('--shard-id shard2 --zone-id zone2 --initial-voters node-1-0,node-1-1,node-1-2')
})

test('the second proxy sends to the second edge', () => {
  expect(argsOf('proxy-1')).toContain('--upstream-addr 127.79.0.2 --upstream-port 9000')
})

test('with etcd the registries keep nothing in files, and each component is given both', () => {
  const spec: Spec = { ...SPEC, etcdEndpoints: ['http://a:2379', 'http://b:2379'] }
  const given = { ...launch, plan: planOf(spec) }
  const argsHere = (name: string) =>
    given.plan.components.filter((each) => each.name === name).map((each) => argumentsOf(each, given, '').join(' '))

  expect(argsHere('registry-1')).toEqual([
    'registry --addr 127.77.0.3 --port 8080 --codecs-path /tmp/x/codecs.yml --storage etcd --etcd-endpoints http://a:2379,http://b:2379',
  ])
  const both = '--registry-addr http://127.77.0.1:8080,http://127.77.0.3:8080'
  for (const name of ['node-0-0', 'bridge-0-0', 'router-zone-0-0', 'router-edge-1'])
    expect(argsHere(name)[0]).toContain(both)
})

test('settings apply to a kind, to both kinds of routers, or to one process', () => {
  const given = { ...launch, settings: settings('bridge.reads=any', 'router.workers=2', 'node-0-1.log-level=debug') }

  expect(argsOf('bridge-1-1', given)).toMatch(/ --reads=any$/)
  expect(argsOf('router-edge-0', given)).toMatch(/ --workers=2$/)
  expect(argsOf('router-zone-0-1', given)).toMatch(/ --workers=2$/)
  expect(argsOf('node-0-1', given)).toMatch(/ --log-level=debug$/)
  expect(argsOf('node-0-0', given)).not.toContain('log-level')
  expect(argsOf('proxy-0', { ...launch, settings: settings('proxy.auth-enabled') })).toMatch(/ --auth-enabled$/)
})

test('faulty settings are all named', () => {
  expect(() => settings('nodes.x=1', 'x', 'bridge.listen-port=1')).toThrow(
    [
      '--set: unknown component nodes; did you mean node?',
      '--set: "x" is not component.flag=value',
      '--set: vacancy quickstart itself sets --listen-port of bridge-0-0',
    ].join('\n'),
  )
})

test('every flag is one of the program that gets it', async () => {
  const started = new Map(plan.components.map((each) => [each.kind, argumentsOf(each, launch, '2026-11-23')]))
  const helps = await Promise.all(
    [...started.values()].map(async ([command = '', ...args]) => {
      const { code, stdout, stderr } = await runVacancy([command, '--help'])
      return { command, code, stderr, stdout, flags: args.filter((arg) => arg.startsWith('--')) }
    }),
  )
  for (const { command, code, stderr, stdout, flags } of helps) {
    expect({ command, code, stderr }).toEqual({ command, code: 0, stderr: '' })
    for (const flag of flags) expect(stdout, command).toContain(`${flag} `)
  }
})

test.each(LEVELS)('the compose file of level %s has a service with a check for each process', (level) => {
  const part = planOf({ ...SPEC, level })
  const text = composeText(part, { clone: '/clone', dir: '/data/platform' })
  const [, below = ''] = text.split('\nservices:\n')
  const services = [...below.matchAll(/^ {2}([a-z0-9-]+):$/gm)].map(([, name]) => name)

  expect(services).toEqual(part.components.map(({ name }) => name))
  expect(text.match(/healthcheck:/g)).toHaveLength(part.components.length)
  // Nothing refers to an address of this machine, apart from published ports and checks inside of a container.
  expect(text.replaceAll(/"127\.0\.0\.1:\d+:\d+"|http:\/\/127\.0\.0\.1:\d+\/ready/g, '')).not.toContain('127.')
  expect(text).not.toContain('accept-date')
})
