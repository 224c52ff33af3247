// The chart as Helm renders it: every object by the types of Kubernetes, and what is in it by the tables of the programs.
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { loadEngineConfig, memoryBytes } from '../engine/src/config.ts'
import { parseTable } from '../fabric/src/resolver.ts'
import { variableOf } from '../shared/src/node/cli.ts'
import { alertFiles } from './alerts.mjs'
import { commandNamed, commandOf, parseLine, rowsOf } from './command-lines.mjs'
import { CHART, SECTIONS } from './helm.mjs'
import { ROOT } from './pinned-node.mjs'
import { hostOf, NAMESPACE, ofKind, PLATFORM, render, renderWith, SHARD } from './rendered.mjs'
import { JOBS, tokenOf } from './scrape.mjs'
import { KILL_AFTER_SECS, portsOf, UNITS } from './units.mjs'

const PEER = { ipBlock: { cidr: '10.0.0.0/8' } }
const EVERYWHERE = {
  image: { repository: 'registry.example/vacancy', tag: '1.2.3', pullPolicy: 'Always', pullSecrets: ['pull'] },
  listenAddress: '::',
  runAsUser: null,
  spread: 'preferred',
  nodeSelector: { disk: 'fast' },
  tolerations: [{ key: 'hotels', operator: 'Exists' }],
  priorityClassName: 'high',
  networkPolicy: { enabled: true, clients: [PEER], monitoring: [PEER] },
  monitoring: { enabled: true, labels: { release: 'prometheus' } },
}
/** Name of a case → release and values. */
const CASES = {
  'a shard': ['s1', SHARD],
  'a shard with every value': [
    's2',
    {
      ...SHARD,
      ...EVERYWHERE,
      certificates: { secret: 's2-certificates', shared: true },
      node: {
        ...{ voters: 5, learners: 2, cpu: 4, memory: '3Gi', disk: '100Gi', storageClass: 'fast' },
        settings: { 'tcp-require-login': true, 'tcp-max-connections': 200_000, 'log-level': 'debug' },
      },
      bridge: { replicas: 3, storageClass: 'fast', settings: { reads: 'any', 'hedge-after-ms': 50 } },
    },
  ],
  'a shard without bridges and network policy': [
    's3',
    { ...SHARD, bridge: { replicas: 0 }, networkPolicy: { enabled: false } },
  ],
  'a platform': ['vacancy', PLATFORM],
  'a platform with every value': [
    'hotels',
    {
      ...PLATFORM,
      ...EVERYWHERE,
      zones: ['z1', 'z2'],
      registry: {
        replicas: 2,
        settings: { storage: 'etcd', 'etcd-endpoints': ['http://etcd-0:2379', 'http://etcd-1:2379'] },
      },
      edgeRouter: { login: true, service: { type: 'LoadBalancer', annotations: { 'example.com/internal': 'true' } } },
      proxy: {
        login: true,
        tlsSecret: 'proxy-tls',
        settings: { workers: 2, 'cors-origin': ['https://a.example', 'https://b.example'] },
      },
      queue: { replicas: 1, postgres: true },
      controlPlane: {
        postgres: true,
        url: 'https://console.example',
        settings: { environment: 'EU', 'oidc-issuer': 'https://login.example', 'oidc-roles': ['ops=operator'] },
      },
    },
  ],
}
/** Unit of systemd of the same program, by the section of the values. */
const UNIT_OF = {
  ...{ node: 'vacancy-member', zoneRouter: 'vacancy-router@', edgeRouter: 'vacancy-router@' },
  controlPlane: 'vacancy-control-plane',
}
const unitOf = (section) => UNITS[UNIT_OF[section] ?? `vacancy-${section}`]
const values = parse(readFileSync(path.join(ROOT, CHART, 'values.yaml'), 'utf8'))
const docs = readFileSync(path.join(ROOT, 'docs/kubernetes.md'), 'utf8')

const componentOf = ({ metadata }) => metadata.labels['app.kubernetes.io/component']
const sectionOf = (object) => componentOf(object).replace(/-(\w)/g, (_, letter) => letter.toUpperCase())
const containerOf = (set) => set.spec.template.spec.containers[0]
const flagsOf = ({ args }) => Object.fromEntries(args.map((arg) => /^--([\w-]+)=(.*)$/s.exec(arg).slice(1)))
const matches = (labels, selector) => Object.entries(selector).every(([key, value]) => labels[key] === value)

let rendered
beforeAll(() => {
  rendered = Object.fromEntries(Object.entries(CASES).map(([name, args]) => [name, render(...args)]))
})

test('every object is one that Kubernetes has, with its fields, and those that it requires', () => {
  // In the repository, so that the compiler finds the types.
  mkdirSync(path.join(ROOT, '.vacancy'), { recursive: true })
  const folder = mkdtempSync(path.join(ROOT, '.vacancy/chart-'))
  try {
    const objects = Object.values(rendered).flat()
    const lines = objects.map(
      (object, n) => `export const _${n}: ${typeOf(object)} = ${JSON.stringify(object, undefined, 1)}\n`,
    )
    writeFileSync(path.join(folder, 'objects.ts'), [OPERATOR_TYPES, ...lines].join(''))
    const options = ['--noEmit', '--strict', '--skipLibCheck', '--ignoreConfig', '--module', 'esnext']
    options.push('--moduleResolution', 'bundler', '--types', '')
    const tsc = path.join(ROOT, 'node_modules/typescript/bin/tsc')
    const { status, stdout } = spawnSync(process.execPath, [tsc, ...options, 'objects.ts'], {
      cwd: folder,
      encoding: 'utf8',
    })

    expect({ status, stdout }).toEqual({ status: 0, stdout: '' })
    expect(objects.length).toBeGreaterThan(50)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})

describe.each(Object.keys(CASES))('%s', (name) => {
  const sets = () => ofKind(rendered[name], 'StatefulSet')

  test('starts programs with flags, values and variables that they have', () => {
    expect(sets().length).toBeGreaterThan(0)
    for (const set of sets()) {
      const { command, args, env } = containerOf(set)
      expect(command[0]).toBe('vacancy')
      const line = [...command.slice(1), ...args.map((arg) => arg.replaceAll('$(POD_NAME)', `${set.metadata.name}-0`))]
      const own = Object.fromEntries(
        env.filter((each) => each.name.startsWith('VACANCY_')).map((each) => [each.name, each.value]),
      )
      expect(parseLine(line, own), set.metadata.name).toEqual({ warnings: [], operands: [], faults: [] })
      // Each flag once: settings override none of the chart.
      expect(new Set(args.map((arg) => arg.split('=')[0])).size).toBe(args.length)
      const { component } = commandOf(line)
      for (const [variable, value] of Object.entries(own)) {
        const [, row] = Object.entries(rowsOf(commandOf(line))).find(
          ([flag]) => variableOf(component, flag) === variable,
        )
        expect({ variable, secret: row.secret, value }).toMatchObject({
          secret: true,
          value: expect.stringMatching(/^file:\//),
        })
      }
    }
  })

  test('has the ports of the programs, and probes on paths that they have', () => {
    const paths = commandNamed('vacancy health').flags.path.choices
    for (const set of sets()) {
      const { ports, startupProbe, livenessProbe, readinessProbe } = containerOf(set)
      const known = portsOf(unitOf(sectionOf(set))).map(({ port }) => port)
      for (const { containerPort, name: portName } of ports) {
        expect(known, `${set.metadata.name}: ${portName}`).toContain(containerPort)
        expect(portName).toMatch(/^[a-z0-9-]{1,15}$/)
      }
      for (const { httpGet } of [startupProbe, livenessProbe, readinessProbe]) {
        expect(paths).toContain(httpGet.path)
        expect(httpGet.port).toBe('http')
      }
      expect([livenessProbe.httpGet.path, readinessProbe.httpGet.path]).toEqual(['/health', '/ready'])
      expect(ports.map((each) => each.name)).toContain('http')
    }
  })

  test('stops a program only after the time that it has, and hands leadership over before', () => {
    for (const set of sets()) {
      const { stopSecs } = unitOf(sectionOf(set))
      const { preStop } = containerOf(set).lifecycle
      const grace = set.spec.template.spec.terminationGracePeriodSeconds
      expect(grace, set.metadata.name).toBe(15 + stopSecs + KILL_AFTER_SECS)
      if (componentOf(set) !== 'node') {
        expect(preStop).toEqual({ sleep: { seconds: 5 } })
        continue
      }
      const [program, ...line] = preStop.exec.command
      expect(program).toBe('vacancy')
      expect(commandOf(line).name).toBe('vacancy cluster step-down')
      expect(parseLine(line)).toEqual({ warnings: [], operands: [], faults: [] })
      const http = containerOf(set).ports.find((each) => each.name === 'http')
      expect(line).toContain(`--node=127.0.0.1:${http.containerPort}`)
    }
  })

  test('mounts all files that a program is told of, and only those keys of the secret', () => {
    for (const set of sets()) {
      const { args, env, volumeMounts, lifecycle } = containerOf(set)
      const { volumes } = set.spec.template.spec
      const claims = (set.spec.volumeClaimTemplates ?? []).map(({ metadata }) => metadata.name)
      expect(volumeMounts.map((each) => each.name).sort()).toEqual(
        [...volumes.map((each) => each.name), ...claims].sort(),
      )
      const words = [...args, ...env.map(({ value }) => value ?? ''), ...(lifecycle.preStop.exec?.command ?? [])]
      const paths = words.flatMap((word) => /(?:=|^|:)(\/[a-z][\w./$()-]*)$/.exec(word)?.[1] ?? [])
      for (const file of paths)
        expect(
          volumeMounts.some(({ mountPath }) => file.startsWith(mountPath)),
          file,
        ).toBe(true)
      const keys = (volumes.find((each) => each.name === 'secret')?.secret.items ?? []).map(({ key }) => key)
      const named = paths.filter((file) => file.startsWith('/etc/vacancy/secret/')).map((file) => path.basename(file))
      expect([...new Set(keys)].sort()).toEqual([...new Set(named)].sort())
      for (const key of keys) expect(docs, set.metadata.name).toContain(`\`${key}\``)
      const files = volumes.find((each) => each.name === 'files')
      if (files) {
        const { data } = ofKind(rendered[name], 'ConfigMap').find(
          ({ metadata }) => metadata.name === files.configMap.name,
        )
        expect(paths).toContain(`/etc/vacancy/files/${Object.keys(data)[0]}`)
      }
    }
  })

  test('runs as any user without rights, writes to mounted folders only, and one pod of a kind on a machine', () => {
    for (const set of sets()) {
      const {
        securityContext: pod,
        affinity,
        automountServiceAccountToken,
        topologySpreadConstraints,
      } = set.spec.template.spec
      expect(pod).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } })
      expect(automountServiceAccountToken).toBe(false)
      expect(containerOf(set).securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      })
      const { requests, limits } = containerOf(set).resources
      expect(limits.memory).toBe(requests.memory)
      const [term] =
        affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution ??
        affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution.map((each) => each.podAffinityTerm)
      const { labels } = set.spec.template.metadata
      for (const { matchLabels } of [set.spec.selector, term.labelSelector, topologySpreadConstraints[0].labelSelector])
        expect(matches(labels, matchLabels)).toBe(true)
      expect(term.topologyKey).toBe('kubernetes.io/hostname')
    }
  })

  test('each program has a service, a budget of disruptions and, if wanted, a policy and a monitor', () => {
    const { networkPolicy, monitoring } = {
      networkPolicy: { enabled: true },
      monitoring: { enabled: false },
      ...CASES[name][1],
    }
    for (const set of sets()) {
      const { labels } = set.spec.template.metadata
      const only = (kind, selectorOf) => {
        const found = ofKind(rendered[name], kind).filter((each) => each.metadata.name === set.metadata.name)
        expect(found, `${kind} ${set.metadata.name}`).toHaveLength(1)
        const others = sets().filter((each) => matches(each.spec.template.metadata.labels, selectorOf(found[0])))
        expect(others).toEqual([set])
        return found[0]
      }
      const ports = containerOf(set).ports.map((each) => ({
        name: each.name,
        port: each.containerPort,
        targetPort: each.name,
      }))
      expect(only('Service', ({ spec }) => spec.selector).spec.ports).toEqual(ports)
      expect(only('PodDisruptionBudget', ({ spec }) => spec.selector.matchLabels).spec.maxUnavailable).toBe(1)
      if (networkPolicy.enabled) {
        const { ingress } = only('NetworkPolicy', ({ spec }) => spec.podSelector.matchLabels).spec
        expect(ingress.flatMap((rule) => rule.ports.map(({ port }) => port)).sort()).toEqual(
          ports.map((each) => each.name).sort(),
        )
        // An empty list would admit all.
        for (const { from } of ingress) expect(from.length).toBeGreaterThan(0)
      }
      if (monitoring.enabled) {
        const { spec } = only('ServiceMonitor', ({ spec: { selector } }) => selector.matchLabels)
        const [{ port, path: page, authorization, relabelings }] = spec.endpoints
        expect([port, page]).toEqual(['http', '/metrics'])
        const job = relabelings.find(({ targetLabel }) => targetLabel === 'job').replacement
        expect(JOBS[job]?.[0]).toBe(ports.find((each) => each.name === 'http').port)
        expect(authorization.credentials.key).toBe(`${tokenOf(job).replace('vacancy-', '')}.token`)
        expect(docs).toContain(`\`${authorization.credentials.key}\``)
      }
      expect(matches(labels, { 'app.kubernetes.io/name': 'vacancy' })).toBe(true)
    }
  })
})

test('members, bridges and routers have the hosts that the resolver of the platform gives', () => {
  const platform = rendered['a platform']
  const files = ofKind(platform, 'ConfigMap').find(({ data }) => 'resolver.yml' in data)
  const { patterns } = parseTable(files.data['resolver.yml'], 'resolver.yml')
  const kinds = {
    node: ['nodes', 'node-id'],
    bridge: ['bridges', 'bridge-id'],
    'zone-router': ['routers', 'router-id'],
  }
  const sets = [...rendered['a shard'], ...platform].filter((each) => each.kind === 'StatefulSet')
  const pods = ofKind(platform, 'Service').find(({ spec }) => spec.clusterIP === 'None')
  for (const set of sets) {
    expect(set.spec.serviceName).toBe(pods.metadata.name)
    expect(matches(set.spec.template.metadata.labels, pods.spec.selector)).toBe(true)
    const [kind, flag] = kinds[componentOf(set)] ?? []
    if (kind === undefined) continue
    expect(flagsOf(containerOf(set))[flag]).toBe('$(POD_NAME)')
    expect(patterns[kind].replace('{id}', `${set.metadata.name}-1`)).toBe(hostOf(set, 1))
  }
  expect(pods.spec.publishNotReadyAddresses).toBe(true)
})

test('programs find each other at services of the platform', () => {
  const services = ofKind(rendered['a platform'], 'Service')
  const sets = [...rendered['a shard'], ...rendered['a platform']].filter((each) => each.kind === 'StatefulSet')
  for (const set of sets) {
    for (const [flag, value] of Object.entries(flagsOf(containerOf(set)))) {
      if (!['registry-addr', 'resolver-addr', 'registry', 'resolver'].includes(flag)) continue
      const { hostname, port } = new URL(value)
      const { spec } = services.find(({ metadata }) => metadata.name === hostname)
      expect(
        spec.ports.map((each) => String(each.port)),
        flag,
      ).toContain(port)
    }
  }
  const proxy = sets.find((set) => componentOf(set) === 'proxy')
  expect(services.map(({ metadata }) => metadata.name)).toContain(flagsOf(containerOf(proxy))['upstream-addr'])
})

test('the first pods of a shard vote, and all of them start at once', () => {
  const [set] = ofKind(rendered['a shard with every value'], 'StatefulSet').filter(
    (each) => componentOf(each) === 'node',
  )
  expect(flagsOf(containerOf(set))['initial-voters']).toBe('s2-node-0,s2-node-1,s2-node-2,s2-node-3,s2-node-4')
  expect(set.spec).toMatchObject({
    replicas: 7,
    podManagementPolicy: 'Parallel',
    updateStrategy: { type: 'RollingUpdate' },
  })
})

test('policies admit components that exist, and clients and monitors as given', () => {
  const policies = Object.values(rendered).flatMap((objects) => ofKind(objects, 'NetworkPolicy'))
  const components = new Set(
    Object.values(rendered).flatMap((objects) => ofKind(objects, 'StatefulSet').map(componentOf)),
  )
  for (const { spec } of policies)
    for (const { from } of spec.ingress)
      for (const { podSelector } of from) {
        if (podSelector) expect([...components]).toContain(podSelector.matchLabels['app.kubernetes.io/component'])
      }
  const [nodes] = ofKind(rendered['a shard with every value'], 'NetworkPolicy').filter(
    (each) => componentOf(each) === 'node',
  )
  const from = Object.fromEntries(nodes.spec.ingress.map((rule) => [rule.ports[0].port, rule.from]))
  expect([from.tcp, from.http].map((peers) => peers.some((peer) => peer.ipBlock))).toEqual([true, true])
  // Only members of the same shard.
  expect(from.peers).toEqual([
    {
      podSelector: {
        matchLabels: {
          'app.kubernetes.io/name': 'vacancy',
          'app.kubernetes.io/component': 'node',
          'app.kubernetes.io/instance': 's2',
        },
      },
    },
  ])
})

test('with a certificate, clients reach the proxy by HTTPS alone', () => {
  const of = (kind, name) => ofKind(rendered[name], kind).find((each) => componentOf(each) === 'proxy')
  const peersOf = (name) =>
    Object.fromEntries(of('NetworkPolicy', name).spec.ingress.map(({ ports, from }) => [ports[0].port, from]))
  const isClient = ({ ipBlock }) => ipBlock !== undefined
  const { http, https } = peersOf('a platform with every value')

  // Monitors are peers of that kind, too, and read metrics there.
  expect([http.filter(isClient).length, https.filter(isClient).length]).toEqual([1, 1])
  expect(Object.keys(peersOf('a platform'))).toEqual(['http'])
  const { volumes } = of('StatefulSet', 'a platform with every value').spec.template.spec
  expect(volumes.find((each) => each.name === 'tls').secret.secretName).toBe('proxy-tls')
})

test('the rules are those of deploy/observability', () => {
  const [rule] = ofKind(rendered['a platform with every value'], 'PrometheusRule')
  expect(rule.spec).toEqual(parse(alertFiles()['deploy/observability/alerts.yml']))
  expect(rule.metadata.labels.release).toBe('prometheus')
})

test('memory is that of the units of systemd, and leaves the data of a node as much as without a limit', () => {
  const { values: settings } = loadEngineConfig({ file: undefined, given: new Map() })
  for (const section of Object.keys(SECTIONS))
    expect(values[section].memory, section).toBe(`${unitOf(section).memory}i`)
  const limit = Number(/^(\d+)Gi$/.exec(values.node.memory)[1]) * 1024 ** 3
  expect(memoryBytes(settings, limit)).toBe(memoryBytes(settings, Number.POSITIVE_INFINITY))
})

test('chart and product have one version', () => {
  const { version } = JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8'))
  const chart = parse(readFileSync(path.join(ROOT, CHART, 'Chart.yaml'), 'utf8'))
  expect([chart.version, chart.appVersion]).toEqual([version, version])
  const image = containerOf(ofKind(rendered['a shard'], 'StatefulSet')[0]).image
  expect(image).toBe(`vacancy:${version}`)
})

test.each([
  ['no values', {}, /secret/],
  ['a shard without certificates', { ...SHARD, certificates: {} }, /certificates.*secret/s],
  ['a shard without a zone', { ...SHARD, zone: '' }, /zone/],
  ['a platform without codecs', { ...PLATFORM, codecs: [] }, /codecs/],
  ['an unknown key', { ...SHARD, replicas: 3 }, /replicas/],
  ['an unknown key of a program', { ...SHARD, node: { replicas: 3 } }, /replicas/],
  ['an unknown setting', { ...SHARD, node: { settings: { 'tcp-max-connection': 5 } } }, /tcp-max-connection/],
  ['a setting out of its range', { ...SHARD, node: { settings: { 'serving-threads': 65 } } }, /serving-threads/],
  ['a setting with another word', { ...PLATFORM, proxy: { settings: { 'log-level': 'loud' } } }, /log-level/],
  ['a setting that the chart makes', { ...SHARD, node: { settings: { 'memory-max-bytes': 1 } } }, /memory-max-bytes/],
  [
    'a secret as a setting',
    { ...PLATFORM, controlPlane: { settings: { 'node-admin-token': 'x' } } },
    /node-admin-token/,
  ],
  ['an even number of voters', { ...SHARD, node: { voters: 4 } }, /voters/],
  ['two control planes', { ...PLATFORM, controlPlane: { replicas: 2 } }, /replicas/],
])('%s is refused by its name', (_, given, pattern) => {
  const { code, errors } = renderWith('s1', given)
  expect({ code, errors }).toEqual({ code: 1, errors: expect.stringMatching(pattern) })
})

test('the page for operators has values that render, and commands that exist', () => {
  const blocks = (language) =>
    [...docs.matchAll(new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\``, 'gms'))].map(([, text]) => text)
  const files = new Map(blocks('yaml').map((text) => [/^# (\S+)/.exec(text)[1], parse(text)]))
  const lines = blocks('sh').flatMap((text) => text.split('\n'))
  const releases = lines.flatMap((line) => {
    const [, release, chart, namespace, file] =
      /^helm (?:install|upgrade) (\S+) (\S+) --namespace (\S+) --values (\S+)$/.exec(line) ?? []
    return release === undefined ? [] : [{ release, chart, namespace, objects: render(release, files.get(file)) }]
  })
  expect(releases.map(({ release }) => release)).toEqual(['vacancy', 's1', 's1'])
  for (const { chart, namespace } of releases) expect([chart, namespace]).toEqual([CHART, NAMESPACE])
  const names = releases.flatMap(({ objects }) => objects.map(({ metadata }) => metadata.name))
  const services = releases.flatMap(({ objects }) => ofKind(objects, 'Service'))
  for (const [, name, port] of docs.matchAll(/`(vacancy-[\w-]+):(\d+)`/g)) {
    const { spec } = services.find(({ metadata }) => metadata.name === name)
    expect(
      spec.ports.map((each) => String(each.port)),
      name,
    ).toContain(port)
  }
  const commands = lines.flatMap((line) => /(?:^|-- |do )vacancy (.*?)(?:; done)?$/.exec(line)?.[1] ?? [])
  expect(commands.length).toBe(3)
  for (const line of commands)
    expect(parseLine(line.replaceAll('$n', '0').split(' ')), line).toEqual({ warnings: [], operands: [], faults: [] })
  for (const [, name] of lines
    .join('\n')
    .matchAll(/kubectl [^\n]*?\b(?:statefulset\/)?((?:s1-node|vacancy-control-plane)(?:-\d)?)\b/g))
    expect(names).toContain(name.replace(/-\d$/, ''))
})

/** What the operator of Prometheus has of these kinds, as far as the chart uses it. */
const OPERATOR_TYPES = `
type Metadata = { name: string; labels: Record<string, string> }
type Relabeling = { sourceLabels?: string[]; targetLabel: string; replacement?: string }
type Endpoint = {
  port: string
  path: string
  interval: string
  authorization: { credentials: { name: string; key: string } }
  relabelings: Relabeling[]
}
export type ServiceMonitor = {
  apiVersion: 'monitoring.coreos.com/v1'
  kind: 'ServiceMonitor'
  metadata: Metadata
  spec: { selector: { matchLabels: Record<string, string> }; endpoints: Endpoint[] }
}
type Rule = { alert: string; expr: string; for?: string; labels: Record<string, string>; annotations: Record<string, string> }
export type PrometheusRule = {
  apiVersion: 'monitoring.coreos.com/v1'
  kind: 'PrometheusRule'
  metadata: Metadata
  spec: { groups: { name: string; rules: Rule[] }[] }
}
`

/** The type of an object. */
function typeOf({ apiVersion, kind }) {
  const [group, version] = apiVersion.includes('/') ? apiVersion.split('/') : ['core', apiVersion]
  if (group === 'monitoring.coreos.com') return kind
  return `import('kubernetes-types/${group.replace(/\.k8s\.io$/, '')}/${version}').${kind}`
}
