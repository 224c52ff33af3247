/** The lines on which the compiled kernel is prepared: it must take its fast paths, as with a real file. */

import { formatDay } from '@vacancy/shared'
import { beforeEach, expect, test, vi } from 'vitest'
import { compileImportKernel } from './kernel.ts'
import { CONTEXT, HEADER, type ImportKernel, STOP } from './layout.ts'
import { warmUp } from './warm-up.ts'

type Pass = { readonly stop: number; readonly accepted: number; readonly lines: number; readonly rooms: number }

let passes: Pass[]
let text: string

vi.mock(import('./kernel.ts'), async (original) => {
  const actual = await original()
  return {
    ...actual,
    createImportKernel: (memory, module, parser) => {
      const loaded = actual.createImportKernel(memory, module, parser)
      const scan: ImportKernel['scan'] = (context, start, end) => {
        const before = new Float64Array(memory.buffer)[(context + CONTEXT.accepted) >>> 3]
        const stop = loaded.kernel.scan(context, start, end)
        const f64 = new Float64Array(memory.buffer)
        text = new TextDecoder().decode(new Uint8Array(memory.buffer).slice(start, end))
        expect([before, new Uint32Array(memory.buffer)[(context + CONTEXT.cursor) >>> 2]]).toEqual([0, end])
        passes.push({
          stop,
          accepted: f64[(context + CONTEXT.accepted) >>> 3] as number,
          lines: f64[(context + CONTEXT.lines) >>> 3] as number,
          rooms: new Uint32Array(memory.buffer)[HEADER.rooms] as number,
        })
        return stop
      }
      const { add, remember, census, gather } = loaded.kernel
      return { ...loaded, kernel: { scan, add, remember, census, gather } }
    },
  }
})

beforeEach(() => {
  passes = []
  text = ''
})

test('without a compiled kernel nothing is prepared', () => {
  warmUp(undefined)

  expect(passes).toEqual([])
})

test('the compiled kernel reads the same thousands of valid packages again and again', () => {
  const module = compileImportKernel()
  expect(module, 'run `node scripts/build-kernels.mjs`').toBeDefined()

  warmUp(module)

  expect(passes).toEqual(
    Array.from({ length: 40 }, () => ({ stop: STOP.done, accepted: 3840, lines: 3840, rooms: 120 })),
  )
})

test('half of the lines follow each other night by night, the other half is in no order of nights', () => {
  warmUp(compileImportKernel())

  const lines = text.split('\n').map((line) => line.split(','))
  expect(lines.pop()).toEqual([''])
  const nights = Array.from({ length: 32 }, (_, night) => formatDay(20_000 + night))
  const grouped = lines.slice(0, 60 * 32)
  const mixed = lines.slice(60 * 32)
  expect(grouped.map(([, room, date]) => `${room} ${date}`)).toEqual(
    Array.from({ length: 60 }, (_, room) => nights.map((date) => `room${room} ${date}`)).flat(),
  )
  expect(mixed.map(([, room, date]) => `${room} ${date}`)).toEqual(
    nights.flatMap((date) => Array.from({ length: 60 }, (_, room) => `room${room + 60} ${date}`)),
  )
  for (const [at, [id, , date, availability, price, features]] of lines.entries()) {
    const night = nights.indexOf(date as string)
    expect([id, availability]).toEqual(['warm-up', String(night)])
    // Both ways to write a price, several texts of features.
    expect(price).toBe(at < grouped.length ? `${100 + night}` : `${100 + night}.00`)
    expect(features).toBe(at >= grouped.length ? 'a' : night < 9 ? 'a|b' : 'b')
  }
})
