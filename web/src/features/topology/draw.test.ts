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

test('the canvas has the pixels of the screen, and shows the map from the corner of the camera on', () => {
  const { canvas, lines } = writtenCanvas()

  draw(canvas, picture([], { camera: { x: 10, y: 20, zoom: 1.5 }, width: 400.3, height: 300.2 }))

  expect([canvas.width, canvas.height]).toEqual([801, 600])
  // Two pixels for each of 1.5 times the size: a unit of the map is three pixels.
  expect(lines).toEqual(['setTransform 3 0 0 3 -30 -60'])
})

test('zones are frames with their name, and how many shards are collapsed', () => {
  const zones = [
    { zone: 'z1', y: 12, height: 130, hidden: 0 },
    { zone: '', y: 154, height: 60, hidden: 2 },
  ]
  const frames = ['strokeRect line 1: 372 12 600 130', 'strokeRect line 1: 372 154 600 60']
  const name = 'text text-2 12px Inter start: "Zone z1" 384 25'
  const rest = (text: string) => `text text-2 12px Inter start: "${text}" 562 194`

  expect(drawn(picture([], { zones }))).toEqual([frames[0], name, frames[1], rest('2 shards, all healthy')])
  const shown = drawn(picture([box('shard s1', 728, -500)], { zones }))
  expect(shown.at(-1)).toBe(rest('2 shards, the others healthy'))
  // A shard of another zone is no sign of a problem, and neither is a router.
  for (const other of [box('shard s1', 0, -500, { zone: 'z1' }), box('edge e', 0, -500)])
    expect(drawn(picture([other], { zones })).at(-1)).toBe(rest('2 shards, all healthy'))
  expect(drawn(picture([], { zones, camera: at(0.25) }))).toHaveLength(4)
  expect(drawn(picture([], { zones, camera: at(0.24) }))).toEqual(frames)
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

  test('is as wide as the requests that are shown', () => {
    const lines = [line(from, to, { reads: 9, writes: 99 })]
    expect(drawn(picture([], { ...far, lines, traffic: 'reads' }))).toEqual([`stroke line-strong 2.25: ${curve}`])
    expect(drawn(picture([], { ...far, lines, traffic: 'writes' }))).toEqual([`stroke line-strong 3.5: ${curve}`])
  })

  test.each([
    [0, '0/s', 18],
    [3.14, '3.14/s', 36],
    [9.96, '9.96/s', 36],
    [10.4, '10/s', 24],
    [12.6, '13/s', 24],
  ])('of the selected component shows its rate in the middle: %d', (reads, text, wide) => {
    const other = line(box('edge f', 0, 0), box('bridge b', 332, 80), { reads })
    const lines = [line(from, to, { reads }), other]
    for (const focus of ['edge e', 'zone-router r'])
      expect(drawn(picture([], { lines, focus, camera: at(0.6) })).slice(2)).toEqual([
        `fillRect surface: ${232 - wide / 2 - 3} 45 ${wide + 6} 16`,
        `text text-2 12px Inter start: "${text}" ${232 - wide / 2} 54`,
      ])
    expect(drawn(picture([], { lines, focus: 'edge e', camera: at(0.59) }))).toHaveLength(2)
    expect(drawn(picture([], { lines, focus: 'proxy p' }))).toHaveLength(2)
  })
})

describe('a component', () => {
  const path = 'roundRect 100 50 132 26 4'
  const name = (text: string, x = 108) => `text text 12px Inter start: "${text}" ${x} 64`

  test('that is healthy is a box with its name', () => {
    expect(drawn(picture([box('bridge b1', 100, 50)]))).toEqual([
      `fill surface: ${path}`,
      `stroke line-strong 1: ${path}`,
      name('b1'),
    ])
  })

  test.each([
    ['info', 'i'],
    ['warn', '!'],
    ['crit', '×'],
    ['unk', '?'],
  ])('of level %s has its colour and a sign', (level, sign) => {
    expect(drawn(picture([box('bridge b1', 100, 50, { level })]))).toEqual([
      `fill surface: ${path}`,
      `stroke ${level} 2: ${path}`,
      `text ${level} 600 12px Inter start: "${sign}" 108 64`,
      name('b1', 120),
    ])
  })

  test('that is selected has a frame', () => {
    const lines = drawn(picture([box('bridge b1', 100, 50)], { focus: 'bridge b1' }))
    expect(lines[2]).toBe('strokeRect focus 2: 96 46 140 34')
    expect(lines).toHaveLength(4)
  })

  test('has no name on a small map, unless it is a shard; on a smaller one it is a block, without nodes', () => {
    const boxes = [
      box('bridge b', 100, 50, { level: 'crit' }),
      box('shard s', 100, 50, { level: 'ok' }),
      box('node s/n1', 100, 50, { role: 'follower' }),
    ]
    const texts = (zoom: number) =>
      drawn(picture(boxes, { camera: at(zoom) })).flatMap((each) => /^text.*"(.*)"/.exec(each)?.[1] ?? [])
    expect([texts(0.6), texts(0.59), texts(0.25)]).toEqual([
      ['×', 'b', 's'],
      ['×', 's'],
      ['×', 's'],
    ])
    expect(drawn(picture(boxes, { camera: at(0.24) }))).toEqual([
      `fill crit: ${path}`,
      `stroke crit 2: ${path}`,
      `fill ok: ${path}`,
      `stroke line-strong 1: ${path}`,
    ])
  })

  test('that does not fit is shortened, to at least one character', () => {
    const shown = (id: string, width: number) => drawn(picture([box(`bridge ${id}`, 100, 50, {}, width)]))[2]
    // 8 before the name and 6 behind it: 118 is room for 19 characters.
    expect(shown('bridge-0123456789ab', 132)).toBe(name('bridge-0123456789ab'))
    expect(shown('bridge-0123456789abc', 132)).toBe(name('bridge-0123456789a…'))
    expect(shown('bridge-0123456789abcdefg', 132)).toBe(name('bridge-0123456789a…'))
    expect(shown('bridge', 15)).toBe(name('b…'))
  })

  test('that does not register is shown by its kind and port; others by the id they registered', () => {
    const shown = (id: string, registered: boolean | null) =>
      drawn(picture([box(`edge ${id}`, 100, 50, { component: { registered } }, 300)]))[2]
    expect(shown('http://10.0.0.1:7000', null)).toBe(name('edge router :7000'))
    expect(shown('edge-1', null)).toBe(name('edge router edge-1'))
    expect(shown('http://10.0.0.1:7000', true)).toBe(name('http://10.0.0.1:7000'))
    expect(shown('http://10.0.0.1:7000', false)).toBe(name('http://10.0.0.1:7000'))
  })

  test('is left out when it is more than 40 above or below what is in view', () => {
    const ys = [59, 60, 640, 641]
    const boxes = ys.map((y) => box(`bridge y${y}`, 0, y))
    // 300 pixels show 600 units at half the size, but names only from 0.6 on; the boxes themselves count.
    const lines = drawn(picture(boxes, { camera: at(0.5, 100), height: 250 }))
    expect(lines.filter((each) => each.startsWith('fill'))).toEqual(
      [60, 640].map((y) => `fill surface: roundRect 0 ${y} 132 26 4`),
    )
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

  test('of the requests that are shown are drawn', () => {
    const dots = (traffic: Picture['traffic']) =>
      flowing(picture([], { traffic, lines: [line(from, to, { reads: 3, writes: 15 })] }))
        .frame(0)
        .at(-1)
        ?.match(/arc/g)?.length
    expect([dots('reads'), dots('writes')]).toEqual([2, 3])
  })

  test('are drawn at once when the picture changes, and then rest if nothing flows', () => {
    const lines = [line(from, to, { reads: 1 })]
    const { frame, state, canvas } = flowing(picture([], { lines }))
    frame(0)

    state.picture = picture([], { lines, camera: at(0.24) })
    expect(frame(1)).toEqual([...still.slice(0, 2), 'setTransform 0.48 0 0 0.48 0 0', 'fill accent: '])
    expect(canvas.dataset['flow']).toBe('still')
    expect(frame(1_000)).toEqual([])

    state.picture = picture([], { lines, camera: at(0.25) })
    expect(frame(1_001)).toHaveLength(4)
    expect(canvas.dataset['flow']).toBe('moving')
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

  test('keep the canvas while its size is the same, and stop', () => {
    const lines = [line(from, to)]
    const { frame, frames, state, canvas, stop } = flowing(picture([], { lines }))
    frame(0)
    canvas.width = 7

    state.picture = picture([], { lines })
    frame(1)
    expect(canvas.width).toBe(7)
    state.picture = picture([], { lines, height: 100.3 })
    frame(2)
    expect([canvas.width, canvas.height]).toEqual([800, 201])
    state.picture = picture([], { lines, height: 100.3, width: 50 })
    frame(3)
    expect([canvas.width, canvas.height]).toEqual([100, 201])

    stop()
    expect(frames.size).toBe(0)
  })

  test('are left out where a browser has no canvas', () => {
    const { canvas } = writtenCanvas()
    canvas.getContext = () => null
    const request = vi.fn()
    vi.stubGlobal('requestAnimationFrame', request)

    flow(canvas, () => picture([]))()
    draw(canvas, picture([]))

    expect(request).not.toHaveBeenCalled()
    expect(canvas.width).toBe(800)
  })
})
