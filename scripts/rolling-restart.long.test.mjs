// The chart's releases as processes on this machine, each pod at an address of its own that changes with each start, found by
// its name; and the rolling restart of a shard as its StatefulSet makes it.
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { startSteady } from '../bench/src/failover.ts'
import { longestPause } from '../bench/src/pauses.ts'
import { connect } from '../client/src/index.ts'
import { dateIn, launch } from '../testkit/src/node.ts'
import { certs, takeBlock } from '../testkit/src/shard.ts'
import { happens, until } from '../testkit/src/until.ts'
import './pod-names.mjs'
import { hostOf, ofKind, PLATFORM, render, SHARD } from './rendered.mjs'

const NAMES_MODULE = new URL('./pod-names.mjs', import.meta.url).href
const TOKENS = { admin: 'of-an-admin', client: 'of-a-client', registry: 'of-a-component', monitoring: 'of-a-monitor' }
/** Small beside others on one machine. */
const SMALL = { 'serving-threads': 1, 'wal-file-bytes': 4 << 20, 'cpu-watch': false }
const MEMORY_BYTES = 256 << 20
/** Restarts of the shard at most. */
const RESTARTS_MAX = 3
/** After each step, for its pause to show. */
const SETTLE_MS = 500
/** A write and a read this often. */
const EVERY_MS = 20
const EVERY_ROUTED_MS = 100
const SEGMENT = { segment: 'alpine' }

let folder
let block
let nextHost = 1
/** Host → address, as DNS has it now. */
const names = new Map()
const pods = new Map()
let shard

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'vacancy-chart-'))
  process.env.VACANCY_TEST_NAMES = path.join(folder, 'names.json')
  saveNames()
  block = await takeBlock()
  shard = await startReleases()
})
afterAll(async () => {
  for (const { running } of pods.values()) running.child.kill('SIGKILL')
  await Promise.all([...pods.values()].map(({ running }) => running.ended))
  block?.guard.close()
  rmSync(folder, { recursive: true, force: true })
})

const passes = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

function saveNames() {
  // Whole at any moment, for those who read it.
  writeFileSync(path.join(folder, 'names.new'), JSON.stringify(Object.fromEntries(names)))
  renameSync(path.join(folder, 'names.new'), path.join(folder, 'names.json'))
}

/** Secrets, certificates and files of a release as Kubernetes would mount them. */
async function mountsOf(release, objects) {
  const root = path.join(folder, release)
  const write = (place, text) => {
    mkdirSync(path.dirname(path.join(root, place)), { recursive: true })
    writeFileSync(path.join(root, place), text)
  }
  const roles = { admin: 'admin', client: 'client', monitoring: 'monitoring' }
  const rows = (of) => Object.entries(of).map(([name, role]) => `  - { token: ${TOKENS[name]}, role: ${role} }\n`)
  write('secret/nodes.yml', `tokens:\n${rows(roles).join('')}`)
  write('secret/registry.yml', `tokens:\n${rows({ ...roles, registry: 'component' }).join('')}`)
  for (const [name, token] of Object.entries(TOKENS)) write(`secret/${name}.token`, `${token}\n`)
  for (const { metadata, data } of ofKind(objects, 'ConfigMap'))
    for (const [file, text] of Object.entries(data)) write(`files-${metadata.name}/${file}`, text)
  return root
}

const portOf = ({ ports }, name) => ports.find((each) => each.name === name).containerPort
const containerOf = (set) => set.spec.template.spec.containers[0]

/** Starts a pod at a new address, with the command of its container. */
function startPod(set, ordinal, root) {
  const name = `${set.metadata.name}-${ordinal}`
  const address = `${block.prefix}.${nextHost++}`
  const container = containerOf(set)
  const inPod = (text) =>
    text
      .replaceAll('$(POD_NAME)', name)
      .replaceAll('0.0.0.0', address)
      .replaceAll('127.0.0.1', address)
      .replaceAll('/etc/vacancy/files', path.join(root, `files-${set.metadata.name}`))
      .replaceAll('/etc/vacancy', root)
      .replace(/(?<==)\/data/, path.join(root, 'data', name))
  const environment = {
    NODE_OPTIONS: `--import=${NAMES_MODULE}`,
    // What the limit of a container would leave.
    ...(set.metadata.name.endsWith('-node') && { VACANCY_RUN_CLUSTERED_MEMORY_MAX_BYTES: String(MEMORY_BYTES) }),
  }
  const run = (words) => launch(words.slice(1).map(inPod), { environment })
  const running = run([...container.command, ...container.args])
  names.set(hostOf(set, ordinal), address)
  // Of services with one pod: those of others are not used here.
  names.set(set.metadata.name, address)
  saveNames()
  const pod = { name, address, running, run, set, ordinal, root, output: running.output }
  pods.set(name, pod)
  return pod
}

/** Waits until the readiness probe of a pod succeeds. */
async function ready(pod) {
  const container = containerOf(pod.set)
  const { path: page, port } = container.readinessProbe.httpGet
  await happens(`${pod.name} is ready`, [pod], async () => {
    if (pod.running.child.exitCode !== null) return false
    return (await fetch(`http://${pod.address}:${portOf(container, port)}${page}`)).status === 200
  })
}

/** Runs the hook of a pod before its end. @returns what it prints: whether it handed leadership over */
async function preStop(pod) {
  const hook = pod.run(containerOf(pod.set).lifecycle.preStop.exec.command)
  expect(await hook.ended, hook.output()).toMatchObject({ code: 0 })
  return hook.printed.stdout.trim()
}

/** Ends a pod as the kubelet does: preStop, SIGTERM, and SIGKILL after the time that both have. */
async function stopPod(pod) {
  const { terminationGracePeriodSeconds } = pod.set.spec.template.spec
  const timer = setTimeout(() => pod.running.child.kill('SIGKILL'), terminationGracePeriodSeconds * 1_000)
  const handedOver = await preStop(pod)
  pod.running.child.kill('SIGTERM')
  const end = await pod.running.ended
  clearTimeout(timer)
  expect(end, pod.running.output()).toEqual({ code: 0, signal: null })
  return handedOver
}

async function startReleases() {
  const platform = render('vacancy', PLATFORM)
  const own = render('s1', { ...SHARD, node: { settings: SMALL } })
  const setOf = (objects, end) => ofKind(objects, 'StatefulSet').find(({ metadata }) => metadata.name.endsWith(end))
  const roots = [await mountsOf('vacancy', platform), await mountsOf('s1', own)]
  const nodes = setOf(own, '-node')
  const certificates = path.join(roots[1], 'certificates')
  await certs(['init', '--out', certificates])
  const ordinals = [...Array(nodes.spec.replicas).keys()]
  for (const ordinal of ordinals)
    await certs(['node', '--ca', certificates, '--node-id', `${nodes.metadata.name}-${ordinal}`, '--out', certificates])
  for (const end of ['-registry', '-resolver']) startPod(setOf(platform, end), 0, roots[0])
  for (const ordinal of ordinals) startPod(nodes, ordinal, roots[1])
  startPod(setOf(own, '-bridge'), 0, roots[1])
  for (const end of ['-zone-router-z1', '-edge-router']) startPod(setOf(platform, end), 0, roots[0])
  for (const pod of pods.values()) await ready(pod)
  return { nodes, root: roots[1], ordinals }
}

/** Without a leader that hands over, followers wait this long before they elect another one (docs/config.md). */
const ELECTION_MS = 1_800

test('a rolling restart fails no read and no write, and leaves no election to wait for', async () => {
  const { nodes, root, ordinals } = shard
  const hosts = ordinals.map((ordinal) => hostOf(nodes, ordinal))
  const port = portOf(containerOf(nodes), 'tcp')
  const client = await connect({ nodes: hosts.map((host) => ({ host, port })), token: TOKENS.client })
  const edge = hostOf(pods.get('vacancy-edge-router-0').set, 0)
  const routed = await connect({ routers: [`${edge}:9000`], token: TOKENS.client })
  onTestFinished(() => Promise.all([client.close(), routed.close()]))
  const night = { propertyId: 'hotel_1', roomType: 'double', date: dateIn(10) }
  await until('the shard and its routers have the night', async () => {
    await client.setProperty({
      ...{ propertyId: 'hotel_1', ...SEGMENT, area: 'valley', propertyType: 'hotel', category: 'standard', stars: 3 },
      ...{ latitude: 47, longitude: 11, amenities: ['wifi'] },
    })
    await client.setPackage({ ...night, availability: 0, finalPrice: 100, rateFeatures: [] })
    return await routed.getPackage(night, SEGMENT)
  })
  const streamOf = (each, everyMs) =>
    startSteady(each, {
      ...{ writeEveryMs: everyMs, readEveryMs: everyMs },
      write: (_, place) => each.setAvailability({ ...night, amount: place % 200 }, SEGMENT),
      read: () => each.getPackage(night, SEGMENT),
    })
  const steady = streamOf(client, EVERY_MS)
  const throughRouters = streamOf(routed, EVERY_ROUTED_MS)
  onTestFinished(() => {
    for (const { stop } of [steady, throughRouters]) stop()
  })
  const podOf = (ordinal) => pods.get(`${nodes.metadata.name}-${ordinal}`)
  /** @returns how long writes paused meanwhile, and what it did */
  const during = async (act) => {
    const fromMs = performance.now()
    const done = await act()
    await passes(SETTLE_MS)
    return { pauseMs: longestPause(steady.writes, { fromMs, toMs: performance.now() }).lengthMs, done }
  }

  const restart = async () => {
    const stops = []
    const starts = []
    for (const ordinal of ordinals.toReversed()) {
      const before = podOf(ordinal)
      stops.push(await during(() => stopPod(before)))
      starts.push(
        await during(async () => {
          const pod = startPod(nodes, ordinal, root)
          expect(pod.address).not.toBe(before.address)
          await ready(pod)
          await passes(nodes.spec.minReadySeconds * 1_000)
        }),
      )
    }
    const texts = [stops, starts].map((each) => each.map(({ pauseMs }) => Math.round(pauseMs)).join(' '))
    console.log(
      `pauses of writes, ms: stops ${texts[0]}, starts ${texts[1]}; ${stops.map(({ done }) => done).join('; ')}`,
    )
    return stops
  }
  const stops = []
  let isWithin = false
  // A busy machine only adds to a pause: one restart without that is enough.
  for (let turn = 0; turn < RESTARTS_MAX && !isWithin; turn++) {
    const those = await restart()
    stops.push(...those)
    isWithin = those.every(({ pauseMs }) => pauseMs < ELECTION_MS)
  }

  for (const each of [steady, throughRouters]) each.stop()
  const all = [...steady.reads, ...throughRouters.reads, ...steady.writes, ...throughRouters.writes]
  await until('all requests have their answers', () =>
    all.every(({ settledMs }) => settledMs < Number.POSITIVE_INFINITY),
  )
  expect([...steady.reads, ...throughRouters.reads].filter(({ error }) => error !== '')).toEqual([])
  expect([...steady.writes, ...throughRouters.writes].filter(({ error }) => error !== '')).toEqual([])
  expect(stops.filter(({ done }) => done.startsWith('transfer to')).length).toBeGreaterThan(0)
  expect(isWithin, `each stop pauses writes for less than ${ELECTION_MS} ms`).toBe(true)
}, 600_000)
