import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { hasNavigatedTo, listenForLinks, navigate } from './navigate.ts'

class Link {
  readonly href: string
  readonly target: string
  readonly #isDownload: boolean
  constructor(href: string, { target = '', download = false } = {}) {
    this.href = new URL(href, location.href).href
    this.target = target
    this.#isDownload = download
  }
  closest() {
    return this
  }
  hasAttribute() {
    return this.#isDownload
  }
}

const preload = vi.fn()
let stop: () => void
let entries: string[]
let left: string[]

beforeEach(() => {
  entries = []
  left = []
  const at = new URL('http://console.test/shards?filter=s1')
  vi.stubGlobal('location', Object.assign(at, { assign: (to: URL) => left.push(String(to)) }))
  vi.stubGlobal('history', {
    pushState: (_state: unknown, _title: string, url: string) => entries.push(`push ${url}`),
    replaceState: (_state: unknown, _title: string, url: string) => entries.push(`replace ${url}`),
  })
  vi.stubGlobal('document', new EventTarget())
  vi.stubGlobal('Element', Link)
  stop = listenForLinks(preload)
})
afterEach(() => {
  stop()
  preload.mockReset()
  vi.unstubAllGlobals()
})

function happens(type: string, target: unknown, more: object = { button: 0 }): boolean {
  const event = Object.assign(new Event(type, { cancelable: true }), more)
  Object.defineProperty(event, 'target', { value: target })
  return !document.dispatchEvent(event)
}

test('a click on a link to a page sends no request', () => {
  expect(happens('click', new Link('/registry?filter=x'))).toBe(true)

  expect(entries).toEqual(['push /registry/services?filter=x'])
  expect(hasNavigatedTo('/registry/services')).toBe(true)
  // Going back later does not count.
  expect(hasNavigatedTo('/registry/services')).toBe(false)
})

test('every other click is left to the browser', () => {
  const others = [
    happens('click', new Link('/docs')),
    happens('click', new Link('http://elsewhere.test/shards')),
    happens('click', new Link('/shards', { target: '_blank' })),
    happens('click', new Link('/shards', { download: true })),
    happens('click', new Link('/shards?filter=s1#part')),
    happens('click', new Link('/'), { button: 1 }),
    ...['metaKey', 'ctrlKey', 'shiftKey', 'altKey'].map((key) =>
      happens('click', new Link('/'), { button: 0, [key]: true }),
    ),
  ]

  expect(others.some((isTaken) => isTaken)).toBe(false)
  expect(entries).toEqual([])
})

test('navigating to the current page adds no history entry', () => {
  navigate('/shards?filter=s1')
  navigate('/shards?filter=s2')

  expect(entries).toEqual(['replace /shards?filter=s1', 'push /shards?filter=s2'])
  expect(hasNavigatedTo('/shards')).toBe(false)
})

test('links keep the moment of a past view until one leads back to now', () => {
  location.search = '?at=2026-11-20T18:00:00Z&filter=s1'
  navigate('/')
  navigate('/shards?at=2026-11-20T17:00:00Z')
  navigate('/shards?at=now')

  expect(entries).toEqual([
    'push /?at=2026-11-20T18%3A00%3A00Z',
    'push /shards?at=2026-11-20T17:00:00Z',
    'push /shards',
  ])
})

test('a time range is kept between pages that show one, unless the link has its own', () => {
  location.search = '?from=now-3h&pin=2026-11-20T18:00:00Z'
  navigate('/dashboards/engine')
  navigate('/shards/s1/metrics?from=now-5m')
  navigate('/')

  expect(entries).toEqual([
    'push /dashboards/engine?from=now-3h&pin=2026-11-20T18%3A00%3A00Z',
    'push /shards/s1/metrics?from=now-5m',
    'push /',
  ])
})

test('a URL outside the console is loaded', () => {
  navigate('/sign-in?next=%2F')

  expect(left).toEqual(['http://console.test/sign-in?next=%2F'])
  expect(entries).toEqual([])
})

test('hovering a link preloads its page', () => {
  happens('pointerover', new Link('/shards'))
  happens('pointerover', new Link('/docs'))

  expect(preload.mock.calls).toEqual([['/shards']])
})
