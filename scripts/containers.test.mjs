// deploy/Containerfile and deploy/compose.yaml name what the programs have.
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { ENGINE_SCHEMA } from '../engine/src/config.ts'
import { commandOf, connectionsOf, leavesMemory, parseLine, rowsOf, stopMsOf, valuesOf } from './command-lines.mjs'
import { ROOT } from './pinned-node.mjs'
import { readCompose, readContainerfile, secretsOf } from './testing/containers.mjs'

const { version } = JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8'))
const compose = readCompose()
const image = readContainerfile()
const [PROGRAM] = JSON.parse(image.ENTRYPOINT[0])
const programs = Object.entries(compose.services)
  .filter(([, service]) => service.image.startsWith('vacancy:'))
  .map(([name, service]) => ({ name, service, command: commandOf(service.command) }))
/** The first of these that the program has. */
const settingOf = ({ service }, ...names) => {
  const values = valuesOf(service.command, service.environment)
  return values[names.find((name) => name in values)]
}
const portOf = (program) => Number(settingOf(program, 'api-port', 'listen-port', 'http-port', 'port'))
const asksFor = (words) => {
  expect(words.shift()).toBe(PROGRAM)
  return new URL(`http://${valuesOf(words).address}`)
}
const secondsOf = (text) => Number(/^(\d+)s$/.exec(text)?.[1])

test('the image runs the program, as a user by number, and asks a node for its health', () => {
  const check = JSON.parse(/ CMD (.*)$/.exec(image.HEALTHCHECK[0])?.[1] ?? '')

  expect(asksFor(check).port).toBe(String(ENGINE_SCHEMA.api_port.default))
  expect(image.USER).toEqual([expect.stringMatching(/^\d+:0$/)])
  expect([image.WORKDIR, image.VOLUME]).toEqual([['/data'], ['/data']])
  expect(image.STOPSIGNAL).toEqual(['SIGTERM'])
  expect(image.ARG).toContain(`VERSION=${version}`)
  const ports = ['tcp_port', 'api_port', 'quic_port'].map((key) => ENGINE_SCHEMA[key].default)
  expect(image.EXPOSE).toEqual([ports.join(' ')])
})

test.each(programs)('$name starts a program with flags and variables that it has', ({ service }) => {
  expect(service.image).toBe(`vacancy:${version}`)
  expect(parseLine(service.command, service.environment)).toEqual({ warnings: [], operands: [], faults: [] })
})

test.each(programs)('$name is asked for its health where it listens', (program) => {
  const [kind, ...words] = program.service.healthcheck.test

  expect(kind).toBe('CMD')
  const { hostname, port } = asksFor(words)
  expect([hostname, Number(port)]).toEqual(['127.0.0.1', portOf(program)])
  const hosts = ['api-listen-addr', 'listen-host', 'addr', 'host']
  expect(settingOf(program, ...hosts)).toBe('0.0.0.0')
})

test.each(programs)('$name publishes a port that it listens on', ({ service, command }) => {
  const defaults = Object.entries(rowsOf(command)).filter(([key]) => /(?:^|-)port$/.test(key))
  for (const published of service.ports ?? []) {
    const [, inside] = /^127\.0\.0\.1:\d+:(\d+)$/.exec(published) ?? []
    expect(defaults.map(([, row]) => row.default)).toContain(Number(inside))
  }
})

test.each(programs)('$name may write its volume alone, and is killed only after it had its time', (program) => {
  const { service, command, name } = program
  expect(service).toMatchObject({
    ...{ read_only: true, cap_drop: ['ALL'], security_opt: ['no-new-privileges:true'], tmpfs: ['/tmp'] },
    user: expect.stringMatching(/^[1-9]\d*:[1-9]\d*$/),
  })
  expect(secondsOf(service.stop_grace_period) * 1_000).toBeGreaterThan(stopMsOf(command))
  if (service.ulimits) expect(service.ulimits.nofile).toBeGreaterThan(connectionsOf(command) + 1_000)
  else expect(connectionsOf(command)).toBeLessThan(1_000)
  const state = ['data-dir', 'state-file'].filter((key) => rowsOf(command)[key])
  if (state.length > 0) expect(settingOf(program, ...state)).toMatch(/^\/data(?:\/|$)/)
  expect(service.volumes ?? []).toEqual(state.length > 0 ? [`${name}:/data`] : [])
})

test('the memory of a node leaves its data as much as without a limit', () => {
  const nodes = programs.filter(({ command }) => command.settings === ENGINE_SCHEMA)
  expect(nodes).toHaveLength(3)
  for (const { service } of nodes)
    expect(leavesMemory(Number(/^(\d+)g$/.exec(service.mem_limit)?.[1]) * 1024 ** 3)).toBe(true)
})

test('every file that a service reads is a secret of its own, and no secret is in the file', () => {
  for (const [name, service] of Object.entries(compose.services)) {
    const secrets = secretsOf(service)
    const texts = [...(service.command ?? []), ...Object.values(service.environment ?? {})]
    const used = texts.flatMap((text) => [...text.matchAll(/\/run\/secrets\/([\w.]+)/g)].map(([, file]) => file))
    expect(used.sort(), name).toEqual(Object.keys(secrets).sort())
    for (const secret of Object.values(secrets)) expect(compose.secrets, name).toHaveProperty([secret])
  }
  for (const [name, { file }] of Object.entries(compose.secrets)) expect(file).toBe(`./secrets/${name}`)
})

test('services name each other by their names, and wait for what they need', () => {
  for (const { name, service } of programs) {
    const named = service.command.flatMap((arg) => [...arg.matchAll(/http:\/\/([\w-]+):(\d+)/g)])
    for (const [, host, port] of named.filter(([, host]) => host !== 'localhost')) {
      const other = programs.find((each) => each.name === host)
      expect(portOf(other), `${name} → ${host}`).toBe(Number(port))
    }
    for (const needed of Object.keys(service.depends_on ?? {}))
      expect(compose.services[needed]).toHaveProperty('healthcheck')
  }
  const voters = programs.flatMap(({ command, service }) => (command.flags['initial-voters'] ? [service] : []))
  for (const { command, environment } of voters) {
    expect(command).toContain('--initial-voters=n1,n2,n3')
    expect(compose.services).toHaveProperty(environment.VACANCY_RUN_CLUSTERED_NODE_ID)
  }
})
