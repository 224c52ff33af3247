/**
 * The operation types that install a snapshot and undo an install. Nodes fetch the file from the control plane by its
 * digest. In a running shard the leader fetches it, the other nodes get it from the leader, and all load it at one
 * entry of the log. In a shard that has not formed, each waiting empty voter fetches it, and the shard forms with it.
 * The operation is done when a majority of the voters reports the load and its counts.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { type Clock, groupDigits } from '@vacancy/shared'
import { ProblemError } from '@vacancy/shared/api/route'
import {
  type ClusterOperation,
  clusterInfoBody,
  operationsBody,
  type Plan,
  type PlanCheck,
  statusBody,
} from '@vacancy/shared/contract'
import type { Cluster, NodeAddress } from '../cluster/cluster.ts'
import type { OperationType, PlanContext, PlanDraft, Run } from '../cluster/operation-types.ts'
import { nodeSide } from './compare.ts'
import { type Held, lossChecks } from './loss.ts'
import { createPullToken, findSnapshot, type Snapshots, type StoredSnapshot, storeInstall } from './snapshot-store.ts'

const POLL_MS = 500
/** Without progress for this long, the outcome is unknown. */
const SILENT_MS = 15 * 60_000
/** Tolerated clock difference of nodes, for entries that only their time relates to this operation. */
const SKEW_MS = 60_000
/** The file, its extracted chunks, and space for the log meanwhile. */
const SPACE_FACTOR = 2
const SPACE_RESERVE = 256 * 2 ** 20
/** In the result of a load, whose words differ between versions of nodes. */
const BEFORE = /snapshot ([0-9a-f]{64})/

/** What golden searches say of the install of a snapshot. */
export type GoldenOfPlan = {
  readonly checks: readonly PlanCheck[]
  /** The name of the shard is typed in every environment. */
  readonly isGrave: boolean
  /** What they found, as far as a plan depends on it. */
  readonly found: string
}

export type InstallParts = {
  readonly cluster: Cluster
  readonly snapshots: Snapshots
  readonly clock: Clock
  /** Runs them where that is due, for an admin. */
  readonly golden: (snapshot: StoredSnapshot, look: Pick<PlanContext, 'isAdmin' | 'caller'>) => Promise<GoldenOfPlan>
  /** `http://host:port` of this control plane for nodes. */
  readonly baseUrl: () => string
}

export function installType(parts: InstallParts): OperationType {
  return {
    plan: (request, look) => planInstall(parts, request.snapshot ?? '', look),
    run: (run) => runInstall(parts, run),
  }
}

export function undoInstallType(parts: InstallParts): OperationType {
  return { plan: (_request, look) => planUndo(parts, look), run: (run) => runUndo(parts, run) }
}

// Plans

type Level = PlanCheck['level']

function check(
  id: string,
  holds: boolean | undefined,
  bad: Exclude<Level, 'ok'>,
  text: readonly [ok: string, bad: string],
): PlanCheck {
  if (holds === undefined) return { id, level: 'warn', text: `not known: ${text[0]}` }
  return holds ? { id, level: 'ok', text: text[0] } : { id, level: bad, text: text[1] }
}

/** Nodes that wait for the shard to form. */
function waitingOf({ observations }: PlanContext): string[] {
  return observations.filter(({ info }) => info?.value.bootstrap != null).map(({ address }) => address.id)
}

const NO_LOSS: ReturnType<typeof lossChecks> = { checks: [], isHeavy: false }
const NO_GOLDEN: GoldenOfPlan = { checks: [], isGrave: false, found: '' }

/** The data of a shard, from the leader itself: polled values may be older than the last load. */
async function heldBy({ cluster, clock }: InstallParts, { shard }: PlanContext): Promise<Held | undefined> {
  const leader = cluster.addresses(shard.id).find(({ id }) => id === shard.leader)
  if (!leader) return undefined
  try {
    const { head, segments } = await nodeSide(cluster, leader, new Date(clock.wallMs()).toISOString())
    const { packages, properties, window } = head
    return { packages, properties, window, segments: [...segments.keys()] }
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error
    return undefined
  }
}

const heldIn = ({ packages, properties, window, segments }: StoredSnapshot['document']): Held => ({
  ...{ packages, properties, window },
  segments: segments?.map(({ name }) => name),
})

function lossOf({ observations, shard }: PlanContext, live: Held | undefined, next: Held | undefined) {
  const leader = observations.find(({ address }) => address.id === shard.leader)
  const { stays = 0, held = 0 } = leader?.status?.value.stays ?? {}
  if (live !== undefined && next !== undefined) return lossChecks(live, next, { stays, held })
  const unknown =
    live === undefined ? 'the leader does not report its data' : 'the counts of these data are not known here'
  return {
    checks: [{ id: 'loss', level: 'warn' as const, text: `what is lost is not known: ${unknown}` }],
    isHeavy: false,
  }
}

async function planInstall(parts: InstallParts, digest: string, look: PlanContext): Promise<PlanDraft> {
  const { shard } = look
  const snapshot = await findSnapshot(parts.snapshots, digest)
  const name = snapshot?.name ?? `${digest.slice(0, 12)}…`
  const waiting = waitingOf(look)
  const isForming = shard.leader === null && waiting.length > 0
  const targets = isForming ? waiting : shard.leader === null ? [] : [shard.leader]
  const live = isForming ? undefined : await heldBy(parts, look)
  // Without an answer of the leader it counts as holding data, so that a plan never requires too little confirmation.
  const holdsData = !isForming && (live === undefined || live.properties > 0 || live.packages > 0)
  const document = snapshot?.document
  const before = pictureOf(look)
  const loss = document && !isForming ? lossOf(look, live, heldIn(document)) : NO_LOSS
  // One that cannot be installed at all is not searched.
  const isFit = snapshot?.installable === true && snapshot.shard === shard.id
  const golden = isFit ? await parts.golden(snapshot, look) : NO_GOLDEN
  const data = document && {
    packages: document.packages,
    properties: document.properties,
    window: daysOf(document.window),
  }
  return {
    node: null,
    title: `Install ${name} on ${shard.id}`,
    action: `Install ${name} on ${shard.id}`,
    before,
    after: { ...before, data: data ?? before.data },
    effects: effectsOf(look, snapshot, isForming, holdsData),
    checks: [
      ...commonChecks(look),
      check('snapshot', snapshot !== undefined, 'block', [
        'the snapshot is stored here',
        'the snapshot is not stored here',
      ]),
      ...(snapshot ? snapshotChecks(look, snapshot) : []),
      ...targetChecks(look, isForming, waiting),
      ...(snapshot ? spaceChecks(look, snapshot, targets) : []),
      reachCheck(look, parts.baseUrl(), targets),
      ...loss.checks,
      ...golden.checks,
    ],
    writePause: null,
    commands: commandsOf(look, parts.baseUrl(), digest),
    alternatives: [],
    removesData: holdsData,
    removesMuch: loss.isHeavy || golden.isGrave,
    confirmText: shard.id,
    basis: `${digest} ${isForming ? waiting.join(',') : ''}`,
    found: golden.found,
  }
}

function commonChecks({ isAdmin, hasAdminToken, running, shard }: PlanContext): PlanCheck[] {
  return [
    check('admin', isAdmin, 'block', ['you may do this', 'needs the admin role']),
    check('token', hasAdminToken, 'block', [
      'this control plane has an admin token for the nodes',
      'this control plane has no admin token for the nodes: set node_admin_token',
    ]),
    check('idle', running === undefined, 'block', [
      'no other operation',
      `${running?.title ?? 'another operation'} is running`,
    ]),
    check('member-change', shard.change === null, 'block', [
      'no change runs in the shard',
      `the shard itself runs another change: ${shard.change?.kind} ${shard.change?.node.slice(0, 12)}`,
    ]),
  ]
}

function snapshotChecks(
  { shard }: PlanContext,
  { document, installable, shard: madeFor }: StoredSnapshot,
): PlanCheck[] {
  const hashes = new Set(shard.nodes.flatMap(({ orderedHash }) => (orderedHash === null ? [] : [orderedHash])))
  const isSame = hashes.size === 0 ? undefined : hashes.size === 1 && hashes.has(document.codecHash)
  return [
    check('counters', installable, 'block', ['its counters agree', 'its counters differ: import the files again']),
    check('shard', madeFor === shard.id, 'block', [
      `it was built for ${shard.id}`,
      `it was built for shard ${madeFor}: import the files again for ${shard.id}`,
    ]),
    check('codecs', isSame, 'block', [
      'built with the codec list of the shard',
      'built with a codec list that differs from the nodes: import the files again',
    ]),
  ]
}

function targetChecks(look: PlanContext, isForming: boolean, waiting: readonly string[]): PlanCheck[] {
  const { shard, observations } = look
  if (shard.mode === 'standalone') {
    const text = 'a standalone node loads a snapshot only at its start: copy the file to its data_dir as seed.snapshot'
    return [{ id: 'mode', level: 'block', text }]
  }
  if (isForming) {
    const needed = Math.max(0, ...observations.map(({ info }) => info?.value.bootstrap?.needed ?? 0))
    const empty = emptyVoters(look)
    return [
      check('majority', empty.length >= needed, 'block', [
        `${empty.length} empty initial voters wait, ${needed} needed`,
        `${empty.length} empty initial voters wait (${empty.join(', ') || 'none'}), ${needed} needed: start more of them`,
      ]),
    ]
  }
  const missing = waiting.length === 0 && shard.leader === null
  return [
    check('leader', shard.leader !== null, 'block', [
      `${shard.leader} leads`,
      missing ? 'no leader that could start it' : 'no leader, and some nodes are waiting: see the page of the shard',
    ]),
    check('majority', shard.votersUp >= shard.majority, 'block', [
      `${shard.votersUp} of ${shard.voters} voters answer, ${shard.majority} must hold it`,
      `${shard.votersUp} of ${shard.voters} voters answer, ${shard.majority} must hold it`,
    ]),
  ]
}

/** Waiting initial voters without data: only these may receive a snapshot to form the shard with. */
function emptyVoters({ observations }: PlanContext): string[] {
  return observations.flatMap(({ address, info }) => {
    const bootstrap = info?.value.bootstrap
    const own = bootstrap?.voters.find(({ id }) => id === address.id)
    return bootstrap && bootstrap.waits_for !== 'join' && own?.state === 'empty' ? [address.id] : []
  })
}

function spaceChecks({ shard }: PlanContext, { bytes }: StoredSnapshot, targets: readonly string[]): PlanCheck[] {
  const needed = bytes * SPACE_FACTOR + SPACE_RESERVE
  const nodes = shard.nodes.filter(({ id, voter }) => voter !== false || targets.includes(id))
  const short = nodes.filter(({ disk }) => disk !== null && disk.freeBytes < needed)
  const unknown = nodes.filter(({ disk, freshness }) => disk === null || freshness !== 'live')
  return [
    check('space', short.length > 0 ? false : unknown.length > 0 ? undefined : true, 'block', [
      `each voter has ${sizeOf(needed)} of free disk space`,
      `${short.map(({ id, disk }) => `${id} has ${sizeOf(disk?.freeBytes ?? 0)} free`).join(', ')}; ${sizeOf(needed)} needed`,
    ]),
  ]
}

/** Nodes on other machines cannot reach a loopback address of the control plane. */
function reachCheck({ shard }: PlanContext, baseUrl: string, targets: readonly string[]): PlanCheck {
  const { hostname } = new URL(baseUrl)
  const isLocal = (host: string) => /^(?:localhost|127\..*|\[::1?\]|0\.0\.0\.0)$/.test(host)
  const far = shard.nodes.filter(
    ({ id, apiUrl }) => targets.includes(id) && apiUrl !== '' && !isLocal(new URL(apiUrl).hostname),
  )
  return check('reach', !(isLocal(hostname) && far.length > 0), 'block', [
    `nodes fetch it from ${baseUrl}`,
    `${far.map(({ id }) => id).join(', ')} cannot reach ${baseUrl}: set base_url to an address that nodes can use`,
  ])
}

function effectsOf(
  { shard }: PlanContext,
  snapshot: StoredSnapshot | undefined,
  isForming: boolean,
  holdsData: boolean,
): Plan['effects'] {
  const size = snapshot ? sizeOf(snapshot.bytes) : 'the file'
  if (isForming) {
    return [
      {
        text: `Each waiting voter fetches ${size} and then pauses for 12 s, so that no other voter counts it as empty.`,
        source: 'how shards form',
      },
      {
        text: 'When a majority of the voters holds it, the shard forms; the others download it from them.',
        source: 'how shards form',
      },
    ]
  }
  return [
    {
      text: `${shard.leader} fetches ${size} from this control plane, the other nodes from ${shard.leader}.`,
      source: 'how loads work',
    },
    {
      text: 'All nodes switch over at one entry of the log, once a majority of the voters holds the file.',
      source: 'how loads work',
    },
    {
      text: 'A node does not respond while it replaces its data, for seconds depending on the size.',
      source: 'how loads work',
    },
    ...(holdsData
      ? [
          {
            text: 'Each node keeps the current data as a snapshot: the install can be undone with another operation.',
            source: 'how loads work',
          },
        ]
      : []),
  ]
}

function pictureOf({ shard }: PlanContext): Plan['before'] {
  return {
    nodes: shard.nodes.map(({ id, role, level, message }) => ({ node: id, role, level, message })),
    leader: shard.leader,
    voters: shard.voters,
    majority: shard.majority,
    spare: shard.spare ?? 0,
    data: { packages: shard.packages ?? 0, properties: shard.properties ?? 0, window: shard.window },
  }
}

function daysOf(
  window: { readonly from: string; readonly to: string } | null,
): NonNullable<Plan['before']['data']>['window'] {
  return window && { from: window.from, to: window.to }
}

function commandsOf({ shard }: PlanContext, baseUrl: string, digest: string): Plan['commands'] {
  const node = shard.nodes.find(({ id }) => id === shard.leader) ?? shard.nodes[0]
  const host = node && node.apiUrl !== '' ? new URL(node.apiUrl).host : '127.0.0.1:8080'
  const download = `curl -H "authorization: Bearer $TOKEN" -o seed.snapshot '${baseUrl}/api/v1/snapshots/${digest}/download'`
  return {
    cli: `${download}\nvacancy cluster load "$PWD/seed.snapshot" --node ${host} --token-file admin.token --wait`,
    curl: `curl -X POST '${baseUrl}/api/v1/plans' -H "authorization: Bearer $TOKEN" -H 'content-type: application/json' -d '${JSON.stringify({ kind: 'install', shard: shard.id, snapshot: digest })}'`,
  }
}

/** Formatted as in the console: 1.55 kB, 213 MB. */
function sizeOf(bytes: number): string {
  const power = bytes < 1_000 ? 0 : Math.min(4, Math.floor(Math.log10(bytes) / 3))
  const value = bytes / 1_000 ** power
  return `${power === 0 ? bytes : Number(value.toPrecision(3))} ${['B', 'kB', 'MB', 'GB', 'TB'][power]}`
}

async function planUndo(parts: InstallParts, look: PlanContext): Promise<PlanDraft> {
  const { shard } = look
  const last = await lastLoad(parts.cluster, shard.id, shard.leader)
  const before = pictureOf(look)
  const short = last ? `${last.before.slice(0, 12)}…` : 'unknown'
  const earlier = last && (await heldBefore(parts, shard.id, last))
  const loss = last ? lossOf(look, await heldBy(parts, look), earlier) : NO_LOSS
  return {
    node: null,
    title: `Undo the last install on ${shard.id}`,
    action: `Restore ${short}`,
    before,
    after: earlier ? { ...before, data: { ...earlier, window: daysOf(earlier.window) } } : before,
    effects: [
      {
        text: `${shard.id} gets back the data from before the install of ${last?.loaded.slice(0, 12) ?? '?'}….`,
        source: '/cluster/operations',
      },
      {
        text: 'Later writes are not in this data. They are kept in another snapshot, from which this can be undone.',
        source: 'how loads work',
      },
    ],
    checks: [
      ...commonChecks(look),
      ...targetChecks(look, false, []),
      check('way-back', last !== undefined, 'block', [
        `its nodes keep snapshot ${short}`,
        'its nodes have no previous data: they were restarted, or the previous data was deleted',
      ]),
      ...loss.checks,
    ],
    writePause: null,
    commands: {
      cli: `vacancy cluster load ${last?.before ?? 'DIGEST'} --node HOST:PORT --token-file admin.token --wait`,
      curl: `curl -X POST '${parts.baseUrl()}/api/v1/plans' -H "authorization: Bearer $TOKEN" -H 'content-type: application/json' -d '${JSON.stringify({ kind: 'undo-install', shard: shard.id })}'`,
    },
    alternatives: [],
    removesData: true,
    removesMuch: loss.isHeavy,
    confirmText: shard.id,
    basis: last?.before ?? '',
  }
}

/** The data from before a load: of a snapshot that is stored here, or as the plan of its install had them. */
async function heldBefore(
  { snapshots, cluster }: InstallParts,
  shard: string,
  { loaded, before }: { readonly loaded: string; readonly before: string },
): Promise<Held | undefined> {
  const stored = await findSnapshot(snapshots, before)
  if (stored) return heldIn(stored.document)
  const plan = await cluster.lastPlan('install', shard)
  const data = plan?.request.snapshot === loaded ? plan.before.data : undefined
  return data ? { ...data, segments: undefined } : undefined
}

// Runs

async function runInstall(parts: InstallParts, run: Run): Promise<void> {
  const { snapshots, cluster } = parts
  const { id: operation, shard } = run.operation()
  const digest = run.plan.request.snapshot ?? ''
  const snapshot = await findSnapshot(snapshots, digest)
  if (!snapshot) return await run.end('refused', 'The snapshot has been deleted.')
  const note = (state: string) =>
    storeInstall(snapshots, { operation, shard, snapshot: digest, state, at: parts.clock.wallMs() })
  await note('running')
  const isForming = run.plan.before.leader === null
  const targets = isForming ? await waitingVoters(cluster, shard) : leaderOf(cluster, shard)
  const seen = run.isResumed ? undefined : await knownLoads(cluster, shard)
  if (!run.isResumed) {
    await run.step('request', { text: 'Request nodes to fetch it', state: 'running' })
    const token = await createPullToken(snapshots, digest)
    const url = `${parts.baseUrl()}/api/v1/pull/${digest}`
    const refusal = await requestAll(run, cluster, targets, { url, digest, token })
    if (refusal !== '') {
      await run.step('request', { state: 'failed', evidence: refusal })
      await note('refused')
      return await run.end('refused', refusal)
    }
  }
  await run.set({ state: 'verifying' })
  await run.step('fetch', {
    text: `${targets.map(({ id }) => id).join(', ') || 'A node'} fetches it`,
    state: 'running',
  })
  await run.step('load', { text: isForming ? 'The shard forms with it' : 'A majority loads it', state: 'waiting' })
  await run.step('counts', { text: 'A majority reports its counts', state: 'waiting' })
  const ended = await watch(parts, run, { digest, snapshot, isForming, targets, seen })
  if (ended) await note(ended)
}

async function requestAll(
  run: Run,
  cluster: Cluster,
  targets: readonly NodeAddress[],
  body: { readonly url: string; readonly digest: string; readonly token: string } | { readonly digest: string },
): Promise<string> {
  if (targets.length === 0) return 'No suitable node responds.'
  const answers: string[] = []
  for (const node of targets) {
    try {
      const { status, body: message } = await cluster.request(node, '/cluster/load', {
        method: 'POST',
        body,
        as: 'admin',
        signal: run.signal,
      })
      answers.push(`${node.id} answered ${status} ${message.slice(0, 200)}`)
      if (status !== 202) return `${node.id} refused: ${message.slice(0, 200)}`
    } catch (error) {
      if (!(error instanceof ProblemError)) throw error
      return error.message
    }
  }
  await run.set({ state: 'accepted', answer: answers.join('\n') })
  await run.step('request', { state: 'done', evidence: answers.join('; ') })
  return ''
}

type Watched = {
  readonly digest: string
  /** Of an install, to compare counts with. */
  readonly snapshot: StoredSnapshot | undefined
  readonly isForming: boolean
  readonly targets: readonly NodeAddress[]
  /** Loads that each node reported before the request; undefined after a restart. */
  readonly seen: ReadonlyMap<string, ReadonlySet<string>> | undefined
}

/** Observes the shard until the operation is over. @returns its end state, or undefined when the control plane stops */
async function watch(parts: InstallParts, run: Run, watched: Watched): Promise<string | undefined> {
  const { cluster } = parts
  const { shard } = run.operation()
  const stopWatching = cluster.watchClosely(shard)
  let newsAt = run.now()
  let before = ''
  try {
    for (;;) {
      await sleep(POLL_MS, undefined, { signal: run.signal }).catch(() => undefined)
      if (run.signal.aborted) return undefined
      const news: string[] = []
      const fetched = watched.snapshot ? await readPulls(run, cluster, watched, news) : 'done'
      if (fetched.startsWith('failed')) {
        await run.step('fetch', { state: 'failed', evidence: fetched })
        await run.end('refused', fetched.slice('failed: '.length))
        return 'refused'
      }
      const loaded = await readLoads(cluster, shard, run, watched)
      news.push(loaded.holders.join(','))
      if (loaded.failure !== '') {
        await run.step('load', { state: 'failed', evidence: loaded.failure })
        await run.end('refused', `The shard aborted the load: ${loaded.failure}`)
        return 'refused'
      }
      const majority = Math.floor(loaded.voters / 2) + 1
      await run.step('load', {
        state: loaded.holders.length >= majority ? 'done' : 'running',
        evidence: `${loaded.holders.length} of ${loaded.voters} voters have loaded it (${loaded.holders.join(', ') || 'none'}), ${majority} needed`,
      })
      if (loaded.holders.length >= majority && loaded.voters > 0) {
        const counted = await countsOf(parts, shard, loaded.holders, watched.snapshot)
        if (counted.length >= majority) {
          const evidence = counted.map(({ message }) => message).join('; ')
          await run.step('fetch', { state: 'done' })
          await run.step('counts', { state: 'done', evidence })
          if (loaded.before !== '' || !watched.isForming) await run.set({ undo: { kind: 'undo-install', shard } })
          await run.end('done', `${counted.length} of ${loaded.voters} voters serve it: ${evidence}`)
          return 'done'
        }
      }
      if (news.join(' ') !== before) {
        before = news.join(' ')
        newsAt = run.now()
      }
      if (run.now() - newsAt > SILENT_MS) {
        await run.end('unconfirmed', 'No progress for 15 minutes. The shard may still do this; see its page.')
        return 'unconfirmed'
      }
    }
  } finally {
    stopWatching()
  }
}

async function readPulls(run: Run, cluster: Cluster, { digest, targets }: Watched, news: string[]): Promise<string> {
  let [done, total] = [0, 0]
  const states: string[] = []
  for (const node of targets) {
    const status = await read(cluster, node, '/status', (body) => statusBody.parse(body))
    const pull = status?.cluster?.pull
    if (!pull || pull.digest !== digest) continue
    if (pull.state === 'failed') return `failed: ${node.id} could not fetch it: ${pull.error}`
    states.push(`${node.id} ${pull.state}`)
    done += pull.bytes_done
    total += pull.bytes_total
  }
  news.push(`${states.join(',')} ${done}`)
  if (total > 0) await run.set({ progress: { done, total, unit: 'bytes' } })
  const isOver = states.length > 0 && states.every((state) => /(?:asked|placed)$/.test(state))
  await run.step('fetch', {
    state: isOver ? 'done' : 'running',
    evidence: `${states.join(', ')}; ${done} of ${total} bytes`,
  })
  return isOver ? 'done' : 'running'
}

type Loaded = {
  readonly voters: number
  readonly holders: readonly string[]
  readonly failure: string
  readonly before: string
}

/** The voters that reported the load, or, in a forming shard, that formed with it. */
async function readLoads(cluster: Cluster, shard: string, run: Run, watched: Watched): Promise<Loaded> {
  const { digest, isForming, seen } = watched
  const requestedAt = Date.parse(run.operation().requestedAt ?? run.operation().createdAt)
  const nodes = cluster.addresses(shard)
  const holders: string[] = []
  let [failure, before] = ['', '']
  let voters: readonly string[] = []
  const isNew = (node: string, operation: ClusterOperation) =>
    seen ? seen.get(node)?.has(keyOf(operation)) !== true : Date.parse(operation.at) >= requestedAt - SKEW_MS
  await Promise.all(
    nodes.map(async (node) => {
      const info = await read(cluster, node, '/cluster/info', (body) => clusterInfoBody.parse(body))
      if (!info) return
      if (info.bootstrap) {
        voters = voters.length > 0 ? voters : info.bootstrap.voters.map(({ id }) => id)
        return
      }
      if (info.members.voters.length > 0) voters = info.members.voters
      if (isForming) {
        if (info.leader_id !== '') holders.push(node.id)
        return
      }
      for (const operation of await loadsOf(cluster, node)) {
        if (operation.node !== digest || !isNew(node.id, operation)) continue
        if (operation.result === 'failed') failure = operation.reason
        else {
          holders.push(node.id)
          before = BEFORE.exec(operation.reason)?.[1] ?? before
        }
        return
      }
    }),
  )
  return { voters: voters.length, holders: holders.filter((node) => voters.includes(node)).sort(), failure, before }
}

/** The counts that each of these nodes reports, compared with the snapshot. */
async function countsOf(
  { cluster, clock }: InstallParts,
  shard: string,
  holders: readonly string[],
  snapshot: StoredSnapshot | undefined,
): Promise<{ message: string }[]> {
  const counted: { message: string }[] = []
  for (const node of cluster.addresses(shard)) {
    if (!holders.includes(node.id)) continue
    try {
      const { head } = await nodeSide(cluster, node, new Date(clock.wallMs()).toISOString())
      const what = `${node.id} holds ${groupDigits(head.packages)} packages of ${groupDigits(head.properties)} properties`
      if (!snapshot) counted.push({ message: what })
      else {
        const { packages, properties } = snapshot.document
        const isSame = head.packages === packages && head.properties === properties
        counted.push({
          message: isSame
            ? `${what}, as the snapshot`
            : `${what}; the snapshot has ${groupDigits(packages)} of ${groupDigits(properties)}: it was written to since, or days have passed`,
        })
      }
    } catch (error) {
      // It is replacing its data, or down: the next observation will show which.
      if (!(error instanceof ProblemError)) throw error
    }
  }
  return counted
}

async function runUndo(parts: InstallParts, run: Run): Promise<void> {
  const { cluster, snapshots, clock } = parts
  const { id: operation, shard } = run.operation()
  const leader = leaderOf(cluster, shard)
  const found = await lastLoad(cluster, shard, leader[0]?.id ?? null)
  // After a restart the last load may be the one of this operation.
  const digest = run.isResumed ? found?.loaded : found?.before
  if (digest === undefined) return await run.end('refused', 'No node has the previous data.')
  const seen = run.isResumed ? undefined : await knownLoads(cluster, shard)
  if (!run.isResumed) {
    await run.step('request', { text: 'Ask the leader to restore the previous data', state: 'running' })
    const refusal = await requestAll(run, cluster, leader, { digest })
    if (refusal !== '') {
      await run.step('request', { state: 'failed', evidence: refusal })
      return await run.end('refused', refusal)
    }
  }
  await run.set({ state: 'verifying' })
  await run.step('load', { text: 'A majority loads it', state: 'running' })
  await run.step('counts', { text: 'A majority reports its counts', state: 'waiting' })
  const ended = await watch(parts, run, { digest, snapshot: undefined, isForming: false, targets: leader, seen })
  if (ended === 'done') {
    await storeInstall(snapshots, { operation, shard, snapshot: digest, state: 'done', at: clock.wallMs() })
  }
}

// Reports of nodes

async function read<T>(
  cluster: Cluster,
  node: NodeAddress,
  path: string,
  parse: (body: unknown) => T,
): Promise<T | undefined> {
  try {
    const { status, body } = await cluster.request(node, path, { as: 'monitoring' })
    return status === 200 ? parse(JSON.parse(body)) : undefined
  } catch {
    // No valid response: the next observation may succeed, and long silence ends the operation.
    return undefined
  }
}

async function loadsOf(cluster: Cluster, node: NodeAddress): Promise<ClusterOperation[]> {
  const body = await read(cluster, node, '/cluster/operations', (value) => operationsBody.parse(value))
  return body?.operations.filter(({ kind }) => kind === 'load') ?? []
}

const keyOf = ({ node, result, at }: ClusterOperation): string => `${node} ${result} ${at}`

async function knownLoads(cluster: Cluster, shard: string): Promise<Map<string, Set<string>>> {
  const nodes = cluster.addresses(shard)
  const seen = await Promise.all(
    nodes.map(async (node) => [node.id, new Set((await loadsOf(cluster, node)).map(keyOf))] as const),
  )
  return new Map(seen)
}

/** The newest load reported by a node of the shard, the leader first. */
async function lastLoad(
  cluster: Cluster,
  shard: string,
  leader: string | null,
): Promise<{ loaded: string; before: string } | undefined> {
  const nodes = [...cluster.addresses(shard)].sort((a, b) => Number(b.id === leader) - Number(a.id === leader))
  for (const node of nodes) {
    for (const { node: loaded, result, reason } of await loadsOf(cluster, node)) {
      const before = BEFORE.exec(reason)?.[1]
      if (result === 'done' && before !== undefined) return { loaded, before }
    }
  }
  return undefined
}

function leaderOf(cluster: Cluster, shard: string): NodeAddress[] {
  const leader = cluster.shard(shard)?.leader
  return cluster.addresses(shard).filter(({ id }) => id === leader)
}

async function waitingVoters(cluster: Cluster, shard: string): Promise<NodeAddress[]> {
  const waiting: NodeAddress[] = []
  for (const node of cluster.addresses(shard)) {
    const info = await read(cluster, node, '/cluster/info', (body) => clusterInfoBody.parse(body))
    const own = info?.bootstrap?.voters.find(({ id }) => id === node.id)
    if (info?.bootstrap && info.bootstrap.waits_for !== 'join' && own?.state === 'empty') waiting.push(node)
  }
  return waiting
}
