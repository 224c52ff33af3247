/** When each node is polled, which paths, and what becomes of an answer or a failure. */

import { COLLECTOR, type Collector, keyOf, type PolledNode, roundMs, touchShard } from './collector-state.ts'
import { DERIVE_LIMITS } from './derive.ts'
import { forgetPlace } from './discovery.ts'
import { NodeHttpError } from './node-http.ts'
import { ageOf, OTHER_NODE, parseReply, sourceOf } from './node-replies.ts'
import { emptyObservation, type Source, type SourcePath } from './observation.ts'
import { deriveView } from './shard-views.ts'

export function pollDue(collector: Collector): void {
  const now = collector.clock.monotonicMs()
  const due = [...collector.nodes.values()].filter(
    ({ isBusy, nextAt, seen }) => !isBusy && nextAt <= now && seen.address.apiUrl !== '',
  )
  // Who has waited longest comes first: with too much to do, all get slower and nobody is forgotten.
  for (const node of due.sort((a, b) => a.nextAt - b.nextAt)) {
    if (collector.busy >= COLLECTOR.atOnce) return
    const isSilent = node.seen.missed > 0
    if (isSilent && collector.busySilent >= COLLECTOR.silentAtOnce) continue
    const closeMs = closeIntervalMs(collector, node.seen.address.shard, now)
    node.isBusy = true
    collector.busy++
    if (isSilent) collector.busySilent++
    const done = closeMs === undefined || isSilent ? pollRound(collector, node) : pollCloseRound(collector, node)
    done
      .catch((error) => collector.log.error({ err: error, node: keyOf(node.seen.address) }, 'reading a node failed'))
      .finally(() => {
        node.isBusy = false
        collector.busy--
        if (isSilent) collector.busySilent--
        const interval = closeMs ?? roundMs(collector)
        node.nextAt = Math.max(now + interval, collector.clock.monotonicMs())
      })
  }
}

function closeIntervalMs(collector: Collector, shard: string, now: number): number | undefined {
  const closely = collector.shards.get(shard)?.closely
  if (!closely || closely.size === 0) return undefined
  const isNew = [...closely].some(({ since }) => now - since < COLLECTOR.closeForMs)
  return isNew ? COLLECTOR.closeMs : COLLECTOR.closeAfterMs
}

/** Everything that is due of one node. */
async function pollRound(collector: Collector, node: PolledNode): Promise<void> {
  const began = collector.clock.monotonicMs()
  const before = node.seen.health?.value
  // Where another node answers, its health is none of this one's.
  const isOther = () => node.seen.error?.code === OTHER_NODE
  if (isOther() && !(await poll(collector, node, '/cluster/info'))) return
  if (!(await poll(collector, node, '/healthz'))) return
  const now = collector.clock.monotonicMs()
  const isFigures = now >= node.figuresAt || node.seen.health?.value !== before
  if (!node.seen.isStandalone) {
    await poll(collector, node, '/cluster/info')
    // All that these tell stands in there as well: where it is answered they are looked at less often.
    for (const path of ['/node-info', '/leader', '/peers'] as const) {
      if (isOther()) return
      if ((isFigures || node.seen.info === undefined) && !node.seen.isStandalone) await poll(collector, node, path)
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

/** What shows who leads, who is a member and how far they are. */
async function pollCloseRound(collector: Collector, node: PolledNode): Promise<void> {
  if (!(await poll(collector, node, '/healthz')) || node.seen.isStandalone) return
  await poll(collector, node, '/cluster/info')
  deriveView(collector, node.seen.address.shard)
}

/** Asks one path and keeps what came. False when the node did not answer at all. */
async function poll(collector: Collector, node: PolledNode, path: SourcePath): Promise<boolean> {
  const { address } = node.seen
  const token =
    path === '/config' ? collector.config.adminToken : (collector.config.monitoringToken ?? collector.config.adminToken)
  collector.counts.requests++
  try {
    const reply = await collector.http.request(address.apiUrl + path, { token })
    const now = collector.clock.wallMs()
    const kept = node.seen.sources[path]
    // Equal words, equal meaning: nothing has to be read again.
    const isSame =
      path !== '/metrics' && kept?.error === undefined && kept?.status === reply.status && kept.body === reply.body
    const reported = isSame ? ageOf(node.seen, path, now) : parseReply(collector, node, path, reply, now)
    const source = sourceOf(reply, now)
    node.seen = {
      ...node.seen,
      ...reported,
      missed: 0,
      answeredAt: now,
      error: undefined,
      // The text that is there already: else each answer would outlive many others, and be collected late.
      sources: { ...node.seen.sources, [path]: isSame ? { ...source, body: kept.body } : source },
    }
    touchShard(collector, address.shard)
    return true
  } catch (error) {
    if (!(error instanceof NodeHttpError)) throw error
    collector.counts.failures++
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
  const { seen } = node
  const now = collector.clock.wallMs()
  const earlier = seen.sources[path]
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
  const isRound = !isAnswer && (path === '/healthz' || seen.error?.code === OTHER_NODE)
  // Looked at every 50 ms, three misses are no three rounds.
  const isCounted = isRound && now - (seen.answeredAt ?? 0) >= roundMs(collector) * seen.missed
  node.seen = {
    ...seen,
    sources: { ...seen.sources, [path]: source },
    ...(isRound && { error: { code, message, since: seen.error?.since ?? now } }),
    ...(isCounted && { missed: seen.missed + 1 }),
    ...(isAnswer && { missed: 0, answeredAt: now, error: undefined }),
    // It answers, and not what it answered before: that does not hold any more.
    ...(isAnswer && path === '/healthz' && { health: undefined }),
    ...(isAnswer && path === '/cluster/info' && { info: undefined }),
  }
  if (isRound && node.seen.missed >= 3) forgetPlace(collector.discovery, seen.address)
  touchShard(collector, seen.address.shard)
}

/** It is not where it was looked for, and so does not answer, whatever came from there. */
function recordOtherNode(collector: Collector, node: PolledNode, path: SourcePath, source: Source): void {
  const { address, sources, info, nodeInfo, before } = node.seen
  const at = info?.at ?? nodeInfo?.at
  node.seen = {
    ...emptyObservation(address),
    sources: { ...sources, [path]: source },
    before: at === undefined ? before : { at, role: node.role },
    error: source.error,
    missed: DERIVE_LIMITS.missedRounds,
  }
  forgetPlace(collector.discovery, address)
  touchShard(collector, address.shard)
}
