/**
 * One live connection for all tabs of a browser. Each event goes to the tabs that follow its topic; a tab that follows
 * later receives the current value.
 */
import { LIVE } from '@vacancy/shared/live'
import { createLink, type LinkEvent } from './link.ts'
import { learnServerNow, serverNow } from './server-time.ts'

/** Messages from a tab. `lock` is a Web Lock that the tab holds while it is open. */
export type ToWorker =
  | { readonly t: 'here'; readonly lock: string }
  | { readonly t: 'follow' | 'unfollow'; readonly topic: string }
  | { readonly t: 'visible'; readonly is: boolean }
  | { readonly t: 'retry' }
  | { readonly t: 'restart' }

type Tab = { readonly port: MessagePort; readonly topics: Set<string>; isVisible: boolean }

const scope = globalThis as unknown as { onconnect: (event: MessageEvent) => void; location: Location }
const tabs = new Set<Tab>()
let isTimeKnown = false
const origin = scope.location.origin
const link = createLink({
  socketUrl: `${origin.replace(/^http/, 'ws')}${LIVE.path}`,
  pollUrl: `${origin}/api/v1/poll`,
  emit: broadcast,
  random: Math.random,
  openSocket: (url) => new WebSocket(url),
  fetch: (url) => fetch(url, { credentials: 'same-origin', cache: 'no-store' }),
})

scope.onconnect = ({ ports: [port] }) => {
  if (!port) return
  const tab: Tab = { port, topics: new Set(), isVisible: true }
  tabs.add(tab)
  port.onmessage = ({ data }: MessageEvent<ToWorker>) => receive(tab, data)
  if (isTimeKnown) port.postMessage({ t: 'clock', now: serverNow() } satisfies LinkEvent)
  port.postMessage({ t: 'status', status: link.status() } satisfies LinkEvent)
  updateVisibility()
}

function broadcast(event: LinkEvent): void {
  if (event.t === 'clock') {
    learnServerNow(event.now)
    isTimeKnown = true
  }
  for (const { port, topics } of tabs) if (!('topic' in event) || topics.has(event.topic)) port.postMessage(event)
}

function receive(tab: Tab, message: ToWorker): void {
  switch (message.t) {
    case 'here':
      // Granted once the tab is gone, for whatever reason.
      navigator.locks.request(message.lock, () => leave(tab)).catch(() => leave(tab))
      return
    case 'follow': {
      if (tab.topics.has(message.topic)) return
      tab.topics.add(message.topic)
      link.follow(message.topic)
      const known = link.valueOf(message.topic)
      if (known) tab.port.postMessage({ t: 'snap', topic: message.topic, ...known } satisfies LinkEvent)
      return
    }
    case 'unfollow':
      if (tab.topics.delete(message.topic)) link.unfollow(message.topic)
      return
    case 'visible':
      tab.isVisible = message.is
      return updateVisibility()
    case 'retry':
      return link.retry()
    case 'restart':
      return link.restart()
  }
}

function leave(tab: Tab): void {
  if (!tabs.delete(tab)) return
  for (const topic of tab.topics) link.unfollow(topic)
  updateVisibility()
}

function updateVisibility(): void {
  link.setVisible([...tabs].some(({ isVisible }) => isVisible))
}
