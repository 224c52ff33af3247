/** The command line of each process of a platform, and changes to them by `--set`. Pure. */

import { suggestion, VacancyError } from '@vacancy/shared'
import type { PlatformFiles } from './files.ts'
import { type Address, type Component, KINDS, type Kind, nodesOf, ofKind, type Plan, SHARD } from './plan.ts'

/** The person that the link of the console signs in. */
const CONSOLE_PERSON = 'admin'
const STANDALONE_ID = 'quickstart-1'

/** `component.flag=value`; a component is a kind, `router` for both kinds of routers, or the name of a process. */
export type Setting = { readonly component: string; readonly flag: string; readonly value: string }

export type Launch = { readonly plan: Plan; readonly files: PlatformFiles; readonly settings: readonly Setting[] }

/**
 * The arguments of `vacancy` that start a component.
 *
 * @param today YYYY-MM-DD: the sample may be unused for long, its past days can be dropped
 */
export function argumentsOf(component: Component, launch: Launch, today: string): string[] {
  return [...ownArguments(component, launch, today), ...settingsOf(component, launch.settings)]
}

function ownArguments(component: Component, { plan, files }: Omit<Launch, 'settings'>, today: string): string[] {
  const { name, kind, main, api, zone = '', shard = '' } = component
  const { etcdEndpoints } = plan.spec
  const registries = ofKind(plan, 'registry').map((each) => urlOf(each.main))
  const [resolver = ''] = ofKind(plan, 'resolver').map((each) => urlOf(each.main))
  const found = ['--registry-addr', registries.join(','), '--resolver-addr', resolver]
  const listening = (portFlag: string) => [
    ...['--listen-host', main.host, portFlag, String(main.port)],
    ...['--api-host', api.host, '--api-port', String(api.port)],
    // For the console, which learns from the registry where to poll.
    ...['--api-url', urlOf(api), '--cache-dir', files.cacheOf(name)],
  ]
  switch (kind) {
    case 'registry':
      return [
        ...['registry', '--addr', main.host, '--port', String(main.port)],
        ...['--codecs-path', files.codecs],
        ...(etcdEndpoints.length > 0
          ? ['--storage', 'etcd', '--etcd-endpoints', etcdEndpoints.join(',')]
          : ['--state-file', files.registryState]),
      ]
    case 'resolver':
      return [
        ...['resolver', '--host', main.host, '--port', String(main.port), '--file', files.table],
        ...['--format', plan.hasPorts ? 'json' : 'text'],
      ]
    case 'node':
      return nodeArguments(component, { plan, files }, [...found, '--accept-date', today])
    case 'standalone':
      return [
        ...['run', '--shard-id', SHARD, '--node-id', STANDALONE_ID, '--config', files.config, '--codecs', files.codecs],
        ...['--data-dir', files.dataOf(name), '--tcp-port', String(main.port), '--api-port', String(api.port)],
        ...['--accept-date', today],
      ]
    case 'bridge':
      return [
        ...['bridge', '--zone-id', zone, '--shard-id', shard, '--bridge-id', name],
        ...[...found, ...listening('--listen-port')],
      ]
    case 'zone-router':
      return [
        ...['router', '--mode', 'zone', '--zone-id', zone, '--router-id', name],
        ...[...found, ...listening('--tcp-port')],
      ]
    case 'edge-router':
      return ['router', '--mode', 'edge', ...found, ...listening('--tcp-port')]
    case 'proxy':
      return proxyArguments(component, plan)
    case 'control-plane':
      return [
        ...['control-plane', '--listen-host', main.host, '--listen-port', String(main.port)],
        ...['--data-dir', files.control, '--registry', registries.join(','), '--resolver', resolver],
        ...['--node-admin-token', `file:${files.tokenOf('admin')}`, '--queue-auth-file', files.queueAuth],
        ...['--sign-in', CONSOLE_PERSON],
        ...polled(plan).flatMap((url) => ['--fabric', url]),
      ]
    case 'queue-sample':
      return ['quickstart', 'sample-jobs', urlOf(main), files.tokenOf('producer'), files.tokenOf('consumer')]
  }
}

/** The registry does not list them. */
function polled(plan: Plan): string[] {
  return [
    ...ofKind(plan, 'edge-router').map(({ api }) => urlOf(api)),
    ...ofKind(plan, 'proxy').map(({ main }) => urlOf(main)),
  ]
}

function nodeArguments(
  { name, zone = '', shard = '', main, api, quic = main }: Component,
  { plan, files }: Pick<Launch, 'plan' | 'files'>,
  found: readonly string[],
): string[] {
  const voters = nodesOf(plan, shard).flatMap((each) => (each.isLearner ? [] : [each.name]))
  const { host } = main
  return [
    ...['run-clustered', '--node-id', name, '--shard-id', shard, '--zone-id', zone],
    ...['--initial-voters', voters.join(','), ...found],
    ...['--cert-path', files.certificateOf(name), '--key-path', files.keyOf(name), '--ca-cert-path', files.authority],
    ...['--auth-file', files.auth, '--config', files.config, '--data-dir', files.dataOf(name)],
    ...['--tcp-listen-addr', host, '--api-listen-addr', host, '--quic-listen-addr', host],
    ...['--tcp-port', String(main.port), '--api-port', String(api.port), '--quic-port', String(quic.port)],
  ]
}

/** Proxy n sends to edge n. */
function proxyArguments(component: Component, plan: Plan): string[] {
  const at = ofKind(plan, 'proxy').indexOf(component)
  const edges = ofKind(plan, 'edge-router')
  const edge = (edges[at % edges.length] as Component).main
  const { host, port } = component.main
  return [
    ...['proxy', '--mode', 'router', '--upstream-addr', edge.host, '--upstream-port', String(edge.port)],
    ...['--listening-addr', host, '--http-port', String(port)],
  ]
}

export function one(plan: Plan, kind: Kind): Component {
  const [first] = ofKind(plan, kind)
  if (first === undefined) throw new VacancyError('failure', { reason: `this platform has no ${kind}` })
  return first
}

export function urlOf({ host, port }: Address): string {
  return `http://${host}:${port}`
}

/** A flag without a value is one of those that are on or off. */
function settingsOf({ name, kind }: Component, settings: readonly Setting[]): string[] {
  return settings
    .filter(({ component }) => component === name || kindsNamed(component).includes(kind))
    .map(({ flag, value }) => (value === '' ? `--${flag}` : `--${flag}=${value}`))
}

function kindsNamed(component: string): readonly Kind[] {
  if (component === 'router') return ['zone-router', 'edge-router']
  return [...KINDS, 'control-plane' as const].filter((kind) => kind === component)
}

/**
 * Parses `component.flag=value`.
 *
 * @throws VacancyError usage_error, one line per fault: unknown components, and flags that the quick start sets itself
 */
export function parseSettings(texts: readonly string[], launch: Omit<Launch, 'settings'>): Setting[] {
  const { components } = launch.plan
  const faults: string[] = []
  const known = new Set<string>([...components.map(({ name }) => name), ...KINDS, 'router', 'control-plane'])
  const settings = texts.flatMap((text) => {
    const [, component = '', flag = '', value = ''] = /^([\w-]+)\.([a-z][\w-]*)(?:=(.*))?$/s.exec(text) ?? []
    if (component === '') {
      faults.push(`--set: ${JSON.stringify(text)} is not component.flag=value`)
      return []
    }
    if (!known.has(component)) {
      faults.push(`--set: unknown component ${component}${suggestion(component, known)}`)
      return []
    }
    const setting = { component, flag, value }
    const given = components.find(
      (each) => settingsOf(each, [setting]).length > 0 && ownArguments(each, launch, '').includes(`--${flag}`),
    )
    if (given) faults.push(`--set: vacancy quickstart itself sets --${flag} of ${given.name}`)
    return [setting]
  })
  if (faults.length > 0) throw new VacancyError('usage_error', { reason: faults.join('\n') })
  return settings
}
