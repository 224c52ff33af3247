/** Schedules the polls of each node and its paths, and handles responses and failures. */

import { NodeHttpError } from '../http/node-http.ts'
import { COLLECTOR, type Collector, keyOf, type PolledNode, roundMs, touchShard } from './collector-state.ts'
import { DERIVE_LIMITS } from './derive.ts'
import { forgetPlace } from './discovery.ts'
import { ageOf, OTHER_NODE, parseReply, sourceOf } from './node-replies.ts'
import { emptyObservation, type Source, type SourcePath } from './observation.ts'
import { deriveView } from './shard-views.ts'

export function pollDue(collector: Collector): void {
  collector.ownTime.tick()
  const now = collector.clock.monotonicMs()
  const due = [...collector.nodes.values()].filter(
    ({ isBusy, nextAt, observation }) => !isBusy && nextAt <= now && observation.address.apiUrl !== '',
  )
  // The node that waited longest comes first: under overload all polls get slower, and no node starves.
  for (const node of due.sort((a, b) => a.nextAt - b.nextAt)) {
    if (collector.busy >= COLLECTOR.atOnce) return
    const isSilent = node.observation.missed > 0
    if (isSilent && collector.busySilent >= COLLECTOR.silentAtOnce) continue
    const closeMs = closeIntervalMs(collector, node.observation.address.shard, now)
    node.isBusy = true
    collector.busy++
    if (isSilent) collector.busySilent++
    const done = closeMs === undefined || isSilent ? pollRound(collector, node) : pollCloseRound(collector, node)
    done
      .catch((error) =>
        collector.log.error({ err: error, node: keyOf(node.observation.address) }, 'reading a node failed'),
      )
      .finally(() => {
        node.isBusy = false
        collector.busy--
        if (isSilent) collector.busySilent--
        const interval = closeMs ?? roundMs(collector)
        node.nextAt = Math.max(now + interval, collector.clock.monotonicMs())
        if (collector.busy === 0) collector.alarm.move(nextLookMs(collector))
      })
  }
}

/** While something is read it looks each tick: others may be due by then, and own-time.ts counts the ticks. */
export function nextLookMs({ busy, refreshing, nodes }: Collector): number {
  if (busy > 0 || refreshing !== undefined) return 0
  let nextMs = Number.POSITIVE_INFINITY
  for (const { observation, nextAt } of nodes.values())
    if (observation.address.apiUrl !== '') nextMs = Math.min(nextMs, nextAt)
  return nextMs
}

function closeIntervalMs(collector: Collector, shard: string, now: number): number | undefined {
  const closely = collector.shards.get(shard)?.closely
  if (!closely || closely.size === 0) return undefined
  const isNew = [...closely].some(({ since }) => now - since < COLLECTOR.closeForMs)
  return isNew ? COLLECTOR.closeMs : COLLECTOR.closeAfterMs
}

/** Polls every due path of one node. */
async function pollRound(collector: Collector, node: PolledNode): Promise<void> {
  const began = collector.clock.monotonicMs()
  const before = node.observation.health?.value
  const { reasons } = node
  // If a different node responds, its health does not belong to this one.
  const isOther = () => node.observation.error?.code === OTHER_NODE
  if (isOther() && !(await poll(collector, node, '/cluster/info'))) return
  if (!(await poll(collector, node, '/healthz'))) return
  const now = collector.clock.monotonicMs()
  const isChanged = node.observation.health?.value !== before || node.reasons !== reasons
  const isFigures = now >= node.figuresAt || isChanged
  if (!node.observation.isStandalone) {
    await poll(collector, node, '/cluster/info')
    // /status includes the data of these paths: while it responds they are polled less often.
    for (const path of ['/node-info', '/leader', '/peers'] as const) {
      if (isOther()) return
      if ((isFigures || node.observation.info === undefined) && !node.observation.isStandalone)
        await poll(collector, node, path)
    }
  }
  if (isFigures) {
    node.figuresAt = now + COLLECTOR.figuresMs
    await poll(collector, node, '/status')
    if (isOther()) return
    await poll(collector, node, '/metrics')
  }
  if (now >= node.codecsAt) {
    node.codecsAt = now + COLLECTOR.codecsMs
    await poll(collector, node, '/codecs')
    await poll(collector, node, '/config')
  }
  collector.counts.roundMs = collector.clock.monotonicMs() - began
}

/** Paths that report the leader, the members and their progress. */
async function pollCloseRound(collector: Collector, node: PolledNode): Promise<void> {
  if (!(await poll(collector, node, '/healthz')) || node.observation.isStandalone) return
  await poll(collector, node, '/cluster/info')
  deriveView(collector, node.observation.address.shard)
}

/** Polls one path and stores the result. False when the node did not respond at all. */
async function poll(collector: Collector, node: PolledNode, path: SourcePath): Promise<boolean> {
  const { address } = node.observation
  const token =
    path === '/config' ? collector.config.adminToken : (collector.config.monitoringToken ?? collector.config.adminToken)
  collector.counts.requests++
  const wasHeldUp = collector.ownTime.watch()
  // What a node says was true after this moment. When it is read may be long after.
  const asked = collector.clock.wallMs()
  try {
    const reply = await collector.http.request(address.apiUrl + path, { token })
    const now = collector.clock.wallMs()
    if (path === '/healthz') node.reasons = reply.reasons
    const kept = node.observation.sources[path]
    // An equal body has equal meaning and is not parsed again.
    const isSame =
      path !== '/metrics' && kept?.error === undefined && kept?.status === reply.status && kept.body === reply.body
    const reported = isSame ? ageOf(node.observation, path, asked) : parseReply(collector, node, path, reply, asked)
    const source = sourceOf(reply, now)
    node.observation = {
      ...node.observation,
      ...reported,
      missed: 0,
      answeredAt: now,
      error: undefined,
      // Keeps the stored string, so that equal bodies do not accumulate in the old generation.
      sources: { ...node.observation.sources, [path]: isSame ? { ...source, body: kept.body } : source },
    }
    touchShard(collector, address.shard)
    return true
  } catch (error) {
    if (!(error instanceof NodeHttpError)) throw error
    collector.counts.failures++
    if (error.code === 'timeout' && wasHeldUp()) return false
    recordFailure(collector, node, path, error)
    return false
  }
}

function recordFailure(
  collector: Collector,
  node: PolledNode,
  path: SourcePath,
  { code, message }: NodeHttpError,
): void {
  const { observation } = node
  const now = collector.clock.wallMs()
  const earlier = observation.sources[path]
  const since = earlier?.error?.code === code ? earlier.error.since : now
  const source: Source = {
    status: earlier?.status,
    at: earlier?.at,
    milliseconds: undefined,
    body: earlier?.body ?? '',
    error: { code, message, since },
  }
  if (code === OTHER_NODE) return recordOtherNode(collector, node, path, source)
  const isAnswer = code === 'garbage' || code === 'status' || code === 'not-allowed'
  const isRound = !isAnswer && (path === '/healthz' || observation.error?.code === OTHER_NODE)
  // When polled every 50 ms, three misses are not three rounds.
  const isCounted = isRound && now - (observation.answeredAt ?? 0) >= roundMs(collector) * observation.missed
  node.observation = {
    ...observation,
    sources: { ...observation.sources, [path]: source },
    ...(isRound && { error: { code, message, since: observation.error?.since ?? now } }),
    ...(isCounted && { missed: observation.missed + 1 }),
    ...(isAnswer && { missed: 0, answeredAt: now, error: undefined }),
    // It responds without this value, so the old one no longer holds.
    ...(isAnswer && path === '/healthz' && { health: undefined }),
    ...(isAnswer && path === '/cluster/info' && { info: undefined }),
  }
  if (isRound && node.observation.missed >= 3) forgetPlace(collector.discovery, observation.address)
  touchShard(collector, observation.address.shard)
}

/** A different node responded at its address, so this one counts as not responding. */
function recordOtherNode(collector: Collector, node: PolledNode, path: SourcePath, source: Source): void {
  const { address, sources, info, nodeInfo, before } = node.observation
  const at = info?.at ?? nodeInfo?.at
  node.observation = {
    ...emptyObservation(address),
    sources: { ...sources, [path]: source },
    before: at === undefined ? before : { at, role: node.role },
    error: source.error,
    missed: DERIVE_LIMITS.missedRounds,
  }
  forgetPlace(collector.discovery, address)
  touchShard(collector, address.shard)
}
