// @vitest-environment happy-dom
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { draw, flow, type Picture } from './draw.ts'
import type { Box, Layout, Line } from './layout.ts'
import type { Thing } from './model.ts'
import { WrittenPath, writtenCanvas } from './testing/canvas.ts'

const thing = (key: string, more: object = {}): Thing => {
  const [kind = '', id = ''] = key.split(' ')
  return { key, kind, id, zone: '', level: 'ok', component: undefined, ...more } as unknown as Thing
}
const box = (key: string, x: number, y: number, more: object = {}, width = 132): Box => ({
  ...{ thing: thing(key, more), x, y, width, height: 26 },
})
const line = (from: Box, to: Box, more: Partial<Line> = {}): Line => ({
  ...{ from, to, state: 'live', level: 'ok', reads: 0, writes: 0 },
  ...more,
})
const picture = (boxes: readonly Box[], more: Partial<Picture & Layout> = {}): Picture => {
  const { lines = [], zones = [], ...rest } = more
  const byKey = new Map(boxes.map((each) => [each.thing.key, each]))
  return {
    ...{ camera: { x: 0, y: 0, zoom: 1 }, width: 400, height: 300, focus: '', traffic: 'all' },
    ...rest,
    layout: { width: 980, height: 300, boxes: byKey, lines, zones },
  }
}
const at = (zoom: number, y = 0) => ({ x: 0, y, zoom })

/** Everything but the first transformation. */
function drawn(shown: Picture): string[] {
  const { canvas, lines } = writtenCanvas()
  draw(canvas, shown)
  return lines.slice(1)
}

beforeEach(() => {
  vi.stubGlobal('devicePixelRatio', 2)
  vi.stubGlobal('Path2D', WrittenPath)
})
afterEach(() => {
  vi.unstubAllGlobals()
  document.body.replaceChildren()
})

describe('a connection', () => {
  const [from, to] = [box('edge e', 0, 0), box('zone-router r', 332, 80)]
  const curve = 'moveTo 132 13, bezierCurveTo 232 13 232 93 332 93'
  const far = { camera: at(0.5) }

  test.each<[string, Partial<Line>, string]>([
    ['is grey and thin without requests', {}, 'line-strong 1'],
    ['is wider with requests', { reads: 8, writes: 1 }, 'line-strong 2.25'],
    ['is dashed when it is down', { state: 'down', level: 'crit' }, 'crit 1 [7,5]'],
    ['is dashed when it is not connected', { state: 'idle' }, 'line-strong 1 [7,5]'],
    ['is dotted when only the registry knows it', { state: 'declared', level: 'info' }, 'info 1 [2,4]'],
    ['is dotted without a report', { state: 'unknown', level: 'unk' }, 'unk 1 [2,4]'],
  ])('%s', (_, more, style) => {
    const [first] = drawn(picture([], { ...far, lines: [line(from, to, more)] }))
    expect(first).toBe(`stroke ${style}: ${curve}`)
  })
})

test('the role of a node is a shape: key, dot, broken ring, or a question mark', () => {
  const shapes = (more: object) => drawn(picture([box('node s/n1', 100, 50, more, 26)])).slice(2)

  expect(shapes({ role: 'leader' })).toEqual([
    'translate 105 55',
    expect.stringMatching(/^stroke text 1\.5: M8 2\.25a/),
    'translate -105 -55',
  ])
  expect(shapes({ role: 'follower' })).toEqual(['fill text: arc 113 63 3.5 0 6.283'])
  expect(shapes({ role: 'learner', level: 'warn' })).toEqual(['stroke warn 1.5 [2.4,2.57]: arc 113 63 4.75 0 6.283'])
  expect(shapes({ role: undefined })).toEqual(['text text 600 12px Inter center: "?" 113 64'])
  // The dashes and the alignment are not those of the next box.
  const boxes = [box('node s/n1', 0, 0, { role: 'learner' }), box('node s/n2', 0, 0), box('bridge b', 100, 50)]
  expect(drawn(picture(boxes)).slice(-2)).toEqual([
    'stroke line-strong 1: roundRect 100 50 132 26 4',
    'text text 12px Inter start: "b" 108 64',
  ])
})

describe('dots', () => {
  const [from, to] = [box('edge e', 0, 0), box('zone-router r', 332, 0)]
  /** Animates on frames that the test requests. */
  const flowing = (first: Picture) => {
    const { canvas, lines } = writtenCanvas()
    const frames = new Map<number, FrameRequestCallback>()
    let id = 0
    vi.stubGlobal('requestAnimationFrame', (step: FrameRequestCallback) => {
      frames.set(++id, step)
      return id
    })
    vi.stubGlobal('cancelAnimationFrame', (frame: number) => frames.delete(frame))
    const state = { picture: first }
    const stop = flow(canvas, () => state.picture)
    const frame = (ms: number) => {
      lines.length = 0
      const due = [...frames.values()]
      frames.clear()
      for (const step of due) step(ms)
      return lines
    }
    return { canvas, state, frame, frames, stop }
  }
  const still = ['setTransform 1 0 0 1 0 0', 'clearRect 0 0 800 600', 'setTransform 2 0 0 2 0 0']

  test('move along live connections, thirty times a second', () => {
    const { frame, canvas } = flowing(picture([], { lines: [line(from, to, { reads: 1 })] }))

    // The line of 200 begins at (132, 13). After 50 of 36 each second a quarter of it is done.
    expect(frame(0)).toEqual([...still, 'fill accent: moveTo 134.25 13, arc 132 13 2.25 0 6.283'])
    expect(canvas.dataset['flow']).toBe('moving')
    expect([canvas.width, canvas.height]).toEqual([800, 600])
    expect(frame(33)).toEqual([])
    expect(frame(34)).toHaveLength(4)
    expect(frame(66)).toEqual([])
    expect(frame((50 / 36) * 1_000).at(-1)).toBe('fill accent: moveTo 193.625 13, arc 191.375 13 2.25 0 6.283')
  })

  test('are left out with more than 200 connections in view', () => {
    const lines = Array.from({ length: 200 }, () => line(from, to))
    const below = line(box('edge e', 0, 301), box('zone-router r', 332, 301))
    const { frame, state, canvas } = flowing(picture([], { lines: [...lines, below] }))
    frame(0)
    expect(canvas.dataset['flow']).toBe('moving')

    state.picture = picture([], { lines: [...lines, below], camera: at(1, 1) })
    frame(1)
    expect(canvas.dataset['flow']).toBe('still')
  })
})
