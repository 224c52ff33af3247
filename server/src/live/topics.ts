/** Topics: their values, their kept changes, and updating followers. */

import { problem } from '@vacancy/shared/api/errors'
import type { RouteRequest } from '@vacancy/shared/api/route'
import { diffValues, LIVE, type LiveOp, type ServerFrame, TOPIC } from '@vacancy/shared/contract'
import { type Client, createTopic, LIVE_LIMITS, type Live, type Offer, sendBytes, type Topic, time } from './state.ts'

export function topicOf(live: Live, name: string): Topic {
  const known = live.topics.get(name)
  if (known) return known
  const made = createTopic(name, live.clock)
  live.topics.set(name, made)
  return made
}

function takeValue(live: Live, topic: Topic, value: unknown): void {
  const isIdle = topic.followers.size === 0 && live.clock.monotonicMs() - topic.emptySince > LIVE_LIMITS.idleMs
  const ops = topic.hasValue && !isIdle ? diffValues(topic.value, value) : []
  if (topic.hasValue && !isIdle && ops.length === 0) return
  topic.value = value
  topic.seq++
  topic.at = live.clock.wallMs()
  if (isIdle || !topic.hasValue) forgetChanges(topic)
  else keepChange(topic, ops)
  topic.hasValue = true
  flushSoon(live, topic)
}

function keepChange(topic: Topic, ops: readonly LiveOp[]): void {
  const text = JSON.stringify(ops).slice(1, -1)
  topic.kept.push({ seq: topic.seq, ops: text })
  topic.keptBytes += text.length
  while (topic.kept.length > LIVE.keptMax || topic.keptBytes > LIVE_LIMITS.keptBytesMax) {
    topic.keptBytes -= (topic.kept.shift() as { ops: string }).ops.length
  }
}

function forgetChanges(topic: Topic): void {
  topic.kept = []
  topic.keptBytes = 0
}

export function isOffered(live: Live, name: string): boolean {
  return live.offers.some(({ pattern }) => pattern.test(name))
}

export function refresh(live: Live, topic: Topic): Promise<void> {
  const offer = live.offers.find(({ pattern }) => pattern.test(topic.name))
  if (!offer) return Promise.resolve()
  topic.isTouched = false
  topic.reading ??= readOffer(live, topic, offer.read).finally(() => {
    topic.reading = undefined
  })
  return topic.reading
}

async function readOffer(live: Live, topic: Topic, offered: (topic: string) => unknown): Promise<void> {
  const value = await offered(topic.name)
  if (value !== undefined) takeValue(live, topic, value)
}

/** The data a follower lacks: the changes since its number, or the whole value when they are too many or it is too slow. */
export function bringUpToDate(live: Live, topic: Topic, client: Client, follower: { seq: number }): void {
  if (follower.seq === topic.seq || !topic.hasValue) return
  // Its queue is full: it gets the newest value once there is room.
  if (client.socket.bufferedAmount > LIVE.unsentBytesMax) {
    follower.seq = -1
    return
  }
  if (live.lastFrame?.topic !== topic.name || live.lastFrame.from !== follower.seq || live.lastFrame.to !== topic.seq) {
    live.lastFrame = { topic: topic.name, from: follower.seq, to: topic.seq, bytes: frameOf(topic, follower.seq) }
  }
  sendBytes(live, client, live.lastFrame.bytes)
  follower.seq = topic.seq
}

function frameOf(topic: Topic, from: number): Buffer {
  const { name, seq, value } = topic
  const at = time(topic.at)
  const first = topic.kept[0]
  if (from < 0 || first === undefined || first.seq > from + 1) {
    return Buffer.from(JSON.stringify({ t: 'snap', topic: name, seq, at, data: value } satisfies ServerFrame))
  }
  const head = JSON.stringify({ t: 'delta', topic: name, seq, at, ops: [] } satisfies ServerFrame)
  const ops = topic.kept.slice(from + 1 - first.seq).map((change) => change.ops)
  return Buffer.from(`${head.slice(0, -2)}${ops.join(',')}]}`)
}

/** The topic has changed, or has a new follower. */
export function flushSoon({ alarm, clock }: Live, topic: Topic): void {
  if (topic.followers.size > 0) alarm.set(clock.monotonicMs() + LIVE_LIMITS.joinMs)
}

export function forgetIdle(live: Live): void {
  const now = live.clock.monotonicMs()
  for (const { name, followers, emptySince } of live.topics.values()) {
    const isIdle = followers.size === 0 && now - emptySince > LIVE_LIMITS.idleMs
    // A topic that is only published cannot be computed again.
    if (isIdle && isOffered(live, name)) live.topics.delete(name)
  }
}

/** Sends what has changed. @returns when to do so again; Infinity when every follower has everything */
export function flushTopics(live: Live): number {
  const now = live.clock.monotonicMs()
  let nextMs = Number.POSITIVE_INFINITY
  for (const topic of live.topics.values()) {
    if (!isBehind(topic)) continue
    const perSecond = /^(?:op|import):/.test(topic.name) ? LIVE.framesPerSecondFast : LIVE.framesPerSecond
    const mayMs = topic.sentAt + 1000 / perSecond
    if (now < mayMs) {
      nextMs = Math.min(nextMs, mayMs)
      continue
    }
    if (topic.isTouched && !topic.reading)
      refresh(live, topic).catch((error) => live.log.error({ err: error, topic: topic.name }, 'a live topic failed'))
    let isSent = false
    for (const [client, follower] of topic.followers) {
      if (follower.seq === topic.seq) continue
      bringUpToDate(live, topic, client, follower)
      isSent ||= follower.seq === topic.seq
    }
    if (isSent) topic.sentAt = now
    if (isBehind(topic)) nextMs = now
  }
  return nextMs
}

function isBehind({ followers, hasValue, isTouched, seq }: Topic): boolean {
  if (followers.size > 0 && isTouched) return true
  return hasValue && followers.values().some((follower) => follower.seq !== seq)
}

/** Sets the whole value of a topic and sends the changes. Cheap without followers. */
export function publish(live: Live, name: string, value: unknown): void {
  // No followers; a later one gets the value that is offered then.
  if (!live.topics.has(name) && isOffered(live, name)) return
  takeValue(live, topicOf(live, name), value)
}

/** Offers topics whose value is computed only while they have followers. */
export function offerTopics(live: Live, pattern: RegExp, read: Offer['read']): void {
  live.offers.push({ pattern, read })
}

/** Reports that an offered topic may have changed. */
export function touchTopic(live: Live, name: string): void {
  const topic = live.topics.get(name)
  if (!topic) return
  topic.isTouched = true
  flushSoon(live, topic)
}

export async function pollTopics(live: Live, { query }: RouteRequest<'GET /api/v1/poll'>) {
  const names = [...new Set(query.topics.split(',').filter((name) => name !== ''))]
  if (names.length > LIVE.topicsMax || !names.every((name) => TOPIC.test(name))) {
    throw problem('bad-topics', {
      detail: `Give at most ${LIVE.topicsMax} topic names, separated by commas.`,
      field: 'topics',
    })
  }
  const found = await Promise.all(
    names.map(async (name) => {
      const topic = topicOf(live, name)
      if (!topic.hasValue || topic.isTouched || topic.followers.size === 0) await refresh(live, topic)
      return topic.hasValue ? [{ topic: name, seq: topic.seq, at: time(topic.at), data: topic.value }] : []
    }),
  )
  return { now: time(live.clock.wallMs()), topics: found.flat() }
}
