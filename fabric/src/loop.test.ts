import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { systemSchedule } from '@vacancy/shared/schedule'
import { eventually } from '@vacancy/testkit/until'
import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { pauseMs } from './back-off.ts'
import { openCacheFile } from './cache-file.ts'
import { startLoop } from './loop.ts'
import { keepingLog } from './testing/http.ts'

test('pauses double to five seconds, give or take a fifth', () => {
  expect([1, 2, 3, 6, 7, 1_000].map((failures) => pauseMs(failures, 0.5))).toEqual([100, 200, 400, 3_200, 5_000, 5_000])
  expect([0, 1].map((random) => pauseMs(1, random))).toEqual([80, 120])
})

/** A schedule by hand, and a task that ends by hand. */
function handmade() {
  const timers: { readonly ms: number; readonly run: () => void }[] = []
  const schedule = {
    after(ms: number, run: () => void) {
      const timer = { ms, run }
      timers.push(timer)
      return () => void (timers.includes(timer) && timers.splice(timers.indexOf(timer), 1))
    },
  }
  let end: (pauseMs: number) => void = () => {}
  let runs = 0
  const task = () => {
    runs += 1
    return new Promise<number>((resolve) => {
      end = resolve
    })
  }
  const finish = async (ms: number) => {
    end(ms)
    await Promise.resolve().then(() => {})
  }
  return { schedule, timers, task, finish, runs: () => runs, fire: () => timers.splice(0)[0]?.run() }
}

test('a task runs at once, and again after the pause that it chose', async () => {
  const { schedule, timers, task, finish, runs, fire } = handmade()
  startLoop(schedule, task)
  expect(runs()).toBe(1)

  await finish(70)

  expect(timers.map(({ ms }) => ms)).toEqual([70])
  fire()
  expect(runs()).toBe(2)
})

test('waking ends the pause; during a run it removes the next one', async () => {
  const { schedule, timers, task, finish, fire, runs } = handmade()
  const loop = startLoop(schedule, task)
  await finish(70)

  loop.wake(5)
  expect(timers.map(({ ms }) => ms)).toEqual([5])
  loop.wake()
  expect(timers.map(({ ms }) => ms)).toEqual([0])
  fire()
  expect(runs()).toBe(2)
  expect(loop.isRunning()).toBe(true)
  loop.wake()
  await finish(70)
  expect(timers.map(({ ms }) => ms)).toEqual([0])
})

test('stopping waits for the run and begins none', async () => {
  const { schedule, timers, task, finish, runs } = handmade()
  const loop = startLoop(schedule, task)
  const stopped = loop.stop()

  await finish(1)
  await stopped

  loop.wake()
  expect(timers).toEqual([])
  expect(runs()).toBe(1)
})

function open(folder: string) {
  const log = keepingLog()
  const schema = z.object({ n: z.number() })
  return { log, cache: openCacheFile({ folder, file: 'x.json', name: 'numbers', schema, log }) }
}

function folder(): string {
  const made = mkdtempSync(path.join(tmpdir(), 'vacancy-cache-'))
  onTestFinished(() => rmSync(made, { recursive: true }))
  return made
}

test('of many saves the last one is in the file, which is replaced as a whole', async () => {
  const at = path.join(folder(), 'new')
  const { cache, log } = open(at)
  expect(cache.load()).toBe(undefined)

  for (let n = 0; n < 50; n++) cache.save(() => ({ n }))
  await cache.flush()

  expect(JSON.parse(readFileSync(path.join(at, 'x.json'), 'utf8'))).toEqual({ n: 49 })
  expect(readdirSync(at)).toEqual(['x.json'])
  expect(open(at).cache.load()).toEqual({ n: 49 })
  expect(log.lines).toEqual([])
})

test.each(['{"n":', '{"n":"1"}', ''])('a file that holds %s is ignored with a warning', (text) => {
  const at = folder()
  writeFileSync(path.join(at, 'x.json'), text)
  const { cache, log } = open(at)

  expect(cache.load()).toBe(undefined)
  expect(log.lines.map(({ level }) => level)).toEqual(['warn'])
})

test('a folder that cannot be written is a warning, and saving continues', async () => {
  const at = folder()
  writeFileSync(path.join(at, 'file'), '')
  const { cache, log } = open(path.join(at, 'file', 'sub'))

  cache.save(() => ({ n: 1 }))
  await cache.flush()
  cache.save(() => ({ n: 2 }))
  await cache.flush()

  expect(log.lines.map(({ text }) => text)).toEqual(Array(2).fill('the cache of numbers cannot be written'))
})

test('the timers of the process run a task repeatedly', async () => {
  let runs = 0
  const loop = startLoop(systemSchedule, async () => {
    runs += 1
    return 1
  })
  await eventually(() => expect(runs).toBeGreaterThan(3))
  await loop.stop()
})
