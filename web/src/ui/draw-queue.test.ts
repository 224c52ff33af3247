import { beforeEach, expect, test, vi } from 'vitest'
import { queueDraw } from './draw-queue.ts'

const WINDOW_HEIGHT = 800

let happened: string[]
let frames: (() => void)[]
beforeEach(() => {
  happened = []
  frames = []
  vi.useFakeTimers({ toFake: ['setTimeout'] })
  vi.stubGlobal('innerHeight', WINDOW_HEIGHT)
  vi.stubGlobal('requestAnimationFrame', (act: () => void) => frames.push(act))
  return () => {
    vi.useRealTimers()
    vi.unstubAllGlobals()
  }
})

/** An element at a given height of the page that records when it is measured and drawn. */
function drawingAt(name: string, top: number, onDraw = () => {}): () => void {
  const element = {
    getBoundingClientRect: () => ({ top, bottom: top + 100 }),
    get clientWidth() {
      happened.push(`measure ${name}`)
      return 300
    },
  } as HTMLElement
  return queueDraw(element, (width) => {
    happened.push(`draw ${name} ${width}`)
    onDraw()
  })
}

const toNextFrame = () => {
  for (const act of frames.splice(0)) act()
}

test('all in view are measured, then drawn; the others follow one by one after the frame', async () => {
  drawingAt('far', 900)
  drawingAt('top', 0)
  drawingAt('farther', 1_200)
  drawingAt('below', 700)
  expect(happened).toEqual([])

  await Promise.resolve()
  expect(happened.splice(0)).toEqual(['measure top', 'measure below', 'draw top 300', 'draw below 300'])

  vi.runAllTimers()
  expect(happened).toEqual([])
  toNextFrame()
  vi.advanceTimersToNextTimer()
  expect(happened).toEqual(['measure far', 'draw far 300'])
  vi.runAllTimers()
  expect(happened.slice(2)).toEqual(['measure farther', 'draw farther 300'])
})

test('an element in view is drawn at once while others wait', async () => {
  drawingAt('far', 900)
  drawingAt('farther', 1_200)
  await Promise.resolve()
  toNextFrame()
  drawingAt('new', 10)
  await Promise.resolve()

  expect(happened).toEqual(['measure new', 'draw new 300'])
  vi.runAllTimers()
  expect(happened.filter((one) => one.startsWith('draw'))).toEqual(['draw new 300', 'draw far 300', 'draw farther 300'])
})

test('a cancelled drawing never runs, in view or not', async () => {
  const cancel = drawingAt('gone', 0)
  drawingAt('first', 0, () => cancelSecond())
  const cancelSecond = drawingAt('second', 0)
  const cancelFar = drawingAt('far', 900)
  cancel()

  await Promise.resolve()
  cancelFar()
  toNextFrame()
  vi.runAllTimers()
  expect(happened.filter((one) => one.startsWith('draw'))).toEqual(['draw first 300'])
})

test('a failing drawing does not stop the ones after it', async () => {
  drawingAt('far', 900, () => {
    throw new Error('no canvas')
  })
  drawingAt('farther', 1_200)
  await Promise.resolve()
  toNextFrame()

  expect(() => vi.advanceTimersToNextTimer()).toThrow('no canvas')
  vi.runAllTimers()
  expect(happened).toContain('draw farther 300')
})
