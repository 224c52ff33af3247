/** A compose file of the same platform, for those who run containers: one service per process, the clone mounted. */

import { writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { dayOf, VacancyError } from '@vacancy/shared'
import { makeCertificates, makeTokens } from '../certificates.ts'
import { createProcessGroup } from '../launch.ts'
import { filesOf, markFolder, type PlatformFiles, readRunning, readState, writeState } from './files.ts'
import { type Component, ofKind, type Plan, planOf, type Spec } from './plan.ts'
import { argumentsOf } from './programs.ts'
import { buildSnapshots, writeSample } from './sample.ts'
import { checkState, stateOf } from './start.ts'
import { PLATFORM_CONFIG, sampleOf, writeSampleQueries } from './up.ts'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))
const IMAGE = 'node:26'
const CLONE = '/vacancy'
const DATA = '/platform'
const ALL = '0.0.0.0'
/** Flags whose address is the container's own: it listens on all of its interfaces. */
const LISTEN_FLAGS = [
  ...['--addr', '--host', '--listen-host', '--api-host', '--listening-addr'],
  ...['--tcp-listen-addr', '--api-listen-addr', '--quic-listen-addr'],
]

/** Programs that listen on loopback alone when callers need no token. */
const FOR_ANYONE = ['registry', 'bridge', 'router', 'proxy']

/** Prepares the folder and writes compose.yml. @returns its path */
export async function composeFile({
  dir,
  spec,
  days,
  seed,
}: {
  readonly dir: string
  readonly spec: Spec
  readonly days: number
  readonly seed: number
}): Promise<string> {
  const files = filesOf(dir)
  const other = readRunning(files)
  if (other)
    throw new VacancyError('data_conflict', { reason: `a platform is running in ${dir}, process ${other.pid}` })
  markFolder(files)
  const today = dayOf(Date.now())
  const wanted = stateOf(spec, sampleOf({ spec, days, seed }), today)
  const stored = readState(files)
  if (stored) checkState(files, stored, wanted)
  const plan = planOf(spec)
  const group = createProcessGroup()
  if (!stored) {
    await writeSample(group, files, plan, { state: wanted, today, config: PLATFORM_CONFIG })
    await buildSnapshots(group, files, plan, [today, wanted.lastDay])
  }
  const nodes = ofKind(plan, 'node').map(({ name }) => name)
  await makeCertificates(group, files, nodes, Date.now())
  makeTokens(files)
  if (!stored) writeState(files, wanted)
  await writeSampleQueries(plan, files, today)
  const file = join(dir, 'compose.yml')
  writeFileSync(file, composeText(plan, { clone: ROOT, dir: resolve(dir) }))
  return file
}

/** @param places of the clone and of the platform on this machine */
export function composeText(plan: Plan, places: { readonly clone: string; readonly dir: string }): string {
  const inside = { ...plan, components: plan.components.map(insideContainer) }
  const files = filesOf(DATA)
  const services = inside.components.map((component) => serviceOf(component, inside, files))
  return [
    '# Written by vacancy quickstart compose. The clone needs its dependencies (npm ci) and a build (npm run start:node once).',
    'x-vacancy: &vacancy',
    `  image: ${IMAGE}`,
    '  restart: unless-stopped',
    '  volumes:',
    `    - ${JSON.stringify(`${places.clone}:${CLONE}:ro`)}`,
    `    - ${JSON.stringify(`${places.dir}:${DATA}`)}`,
    '',
    'services:',
    ...services,
    '',
  ].join('\n')
}

/** Containers reach each other by the names of their services. */
function insideContainer(component: Component): Component {
  const { name, main, api, quic, published } = component
  const at = <T extends { readonly host: string }>(address: T): T => ({ ...address, host: name })
  const own = main === api ? { main: at(main), api: at(main) } : { main: at(main), api: at(api) }
  return {
    ...component,
    ...own,
    ...(quic && { quic: at(quic) }),
    published: published.map((each) => ({ ...each, to: at(each.to) })),
  }
}

function serviceOf(component: Component, plan: Plan, files: PlatformFiles): string {
  const { name, api, published } = component
  const ports = published.map(({ port, to }) => JSON.stringify(`127.0.0.1:${port}:${to.port}`))
  const check = `fetch('http://127.0.0.1:${api.port}/ready').then((r)=>process.exit(r.ok?0:1),()=>process.exit(1))`
  return [
    `  ${name}:`,
    '    <<: *vacancy',
    `    command: ${JSON.stringify(['node', `${CLONE}/bin/vacancy.mjs`, ...argumentsInside(component, plan, files)])}`,
    ...(ports.length > 0 ? [`    ports: [${ports.join(', ')}]`] : []),
    '    healthcheck:',
    `      test: ${JSON.stringify(['CMD', 'node', '-e', check])}`,
    '      interval: 5s',
    '      start_period: 60s',
  ].join('\n')
}

function argumentsInside(component: Component, plan: Plan, files: PlatformFiles): string[] {
  const args = argumentsOf(component, { plan, files, settings: [] }, '')
  if (component.kind === 'resolver') {
    // Every id is the name of a service, which is its host name.
    return ['resolver', '--host', ALL, '--port', String(component.main.port), '--echo']
  }
  const inside: string[] = []
  for (let at = 0; at < args.length; at++) {
    const arg = args[at] as string
    if (arg === '--accept-date') at++
    else inside.push(LISTEN_FLAGS.includes(args[at - 1] as string) ? ALL : arg)
  }
  // Only the published ports of the services are reachable from outside their network.
  return FOR_ANYONE.includes(args[0] as string) ? [...inside, '--allow-anonymous'] : inside
}
