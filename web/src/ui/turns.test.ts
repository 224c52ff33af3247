import { beforeEach, expect, test, vi } from 'vitest'
import { inTurn } from './turns.ts'

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

/** Something that lies at a height of the page, and says when it is looked at and when it is drawn. */
function drawingAt(name: string, top: number, onDraw = () => {}): () => void {
  const element = {
    getBoundingClientRect: () => ({ top, bottom: top + 100 }),
    get clientWidth() {
      happened.push(`look ${name}`)
      return 300
    },
  } as HTMLElement
  return inTurn(element, (width) => {
    happened.push(`draw ${name} ${width}`)
    onDraw()
  })
}

const toNextFrame = () => {
  for (const act of frames.splice(0)) act()
}

test('those in view are all measured, then all drawn; the others follow one by one behind the frame', async () => {
  drawingAt('far', 900)
  drawingAt('top', 0)
  drawingAt('farther', 1_200)
  drawingAt('below', 700)
  expect(happened).toEqual([])

  await Promise.resolve()
  expect(happened.splice(0)).toEqual(['look top', 'look below', 'draw top 300', 'draw below 300'])

  vi.runAllTimers()
  expect(happened).toEqual([])
  toNextFrame()
  vi.advanceTimersToNextTimer()
  expect(happened).toEqual(['look far', 'draw far 300'])
  vi.runAllTimers()
  expect(happened.slice(2)).toEqual(['look farther', 'draw farther 300'])
})

test('what comes while others wait is drawn at once where it is in view', async () => {
  drawingAt('far', 900)
  drawingAt('farther', 1_200)
  await Promise.resolve()
  toNextFrame()
  drawingAt('new', 10)
  await Promise.resolve()

  expect(happened).toEqual(['look new', 'draw new 300'])
  vi.runAllTimers()
  expect(happened.filter((one) => one.startsWith('draw'))).toEqual(['draw new 300', 'draw far 300', 'draw farther 300'])
})

test('a turn that is taken back is not drawn, in view or not, before or meanwhile', async () => {
  const takeBack = drawingAt('gone', 0)
  drawingAt('first', 0, () => takeBackSecond())
  const takeBackSecond = drawingAt('second', 0)
  const takeBackFar = drawingAt('far', 900)
  takeBack()

  await Promise.resolve()
  takeBackFar()
  toNextFrame()
  vi.runAllTimers()
  expect(happened.filter((one) => one.startsWith('draw'))).toEqual(['draw first 300'])
})

test('one that fails does not keep the others behind the frame from theirs', async () => {
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
