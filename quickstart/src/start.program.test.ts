import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { dayOf, formatDay } from '@vacancy/shared'
import { takePort } from '@vacancy/testkit/free-port'
import { runVacancy } from '@vacancy/testkit/node'
import { afterAll, expect, test } from 'vitest'
import { createProcessGroup } from './launch.ts'
import { filesOf, writeState } from './platform/files.ts'
import { nodePlan } from './platform/plan.ts'
import { buildSnapshots, writeSample } from './platform/sample.ts'
import { stateOf } from './platform/start.ts'
import { CONFIG } from './sample-flags.ts'
import { npmStart } from './testing/programs.ts'

const folder = mkdtempSync(join(tmpdir(), 'vacancy-start-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const ANY_PORTS = ['--tcp-port', '0', '--api-port', '0']
const SERVED = /TCP {2}127\.0\.0\.1:(\d+).*Ctrl-C/s

test('it creates data, serves, shows three searches, stops on Ctrl-C, and continues with the data on another port', async () => {
  const dir = join(folder, 'first')
  const set = { property: 'alp_000003', date: formatDay(dayOf(Date.now()) + 3) }

  const first = npmStart('--dir', dir, '--packages', '20000', '--days', '40', ...ANY_PORTS)
  const [printed, port = ''] = await first.printed(SERVED)
  const rooms = JSON.parse(
    (await runVacancy(['query', 'rooms', '--property', set.property, '--port', port, '--json'])).stdout,
  )
  const night = [`propertyId=${set.property}`, `roomType=${rooms.roomTypes[0]}`, `date=${set.date}`]
  const written = await runVacancy(['query', 'send', 'SETROOMPKG', ...night, 'availability=9', '--port', port])
  const [, cheapest = ''] = /npx vacancy (query search .*--order total.*)/.exec(printed) ?? []
  const listed = await runVacancy(cheapest.split(' '))
  first.signal('SIGINT')
  const stopped = await first.ended

  expect(printed).toContain('npx vacancy query segments')
  expect(listed).toMatchObject({ code: 0, stdout: expect.stringMatching(/total/i) })
  expect(stopped.stdout).toContain('20,000 packages of ')
  expect(stopped.stdout.match(/^\d\. .*\n {3}[\d,]+ propert.*median of 50\)$/gm)).toHaveLength(3)
  expect(written.code).toBe(0)
  expect(stopped).toMatchObject({ code: 0, stderr: '' })

  const taken = await takePort()
  const second = npmStart('--dir', dir, '--tcp-port', String(taken.port), '--api-port', '0')
  const [saidAgain, otherPort = ''] = await second.printed(SERVED)
  const kept = await runVacancy(['query', 'send', 'GETPROPROOMDAY', ...night, '--port', otherPort, '--json'])
  second.signal('SIGTERM')
  taken.close()
  const { code, stdout } = await second.ended

  expect(stdout).toContain(`Port ${taken.port} is taken: TCP is on ${otherPort}.`)
  expect(stdout).not.toContain('Making sample data')
  expect(saidAgain).toContain(`npx vacancy query segments --port ${otherPort}`)
  expect(JSON.parse(kept.stdout).availability).toBe(9)
  expect(code).toBe(0)
})

test('days later, new days are added at the end of the window', async () => {
  const dir = join(folder, 'later')
  const today = dayOf(Date.now())
  const group = createProcessGroup()
  const [plan, files] = [nodePlan({ tcp: 1, api: 2 }), filesOf(dir)]
  const state = stateOf(plan.spec, { packages: 5_000, days: 10, seed: 1 }, today - 3)
  await writeSample(group, files, plan, { state, today: today - 3, config: CONFIG })
  await buildSnapshots(group, files, plan, [today - 3, state.lastDay])
  writeState(files, state)

  const start = npmStart('--dir', dir, ...ANY_PORTS)
  const [, port = ''] = await start.printed(SERVED)
  const query = (...args: string[]) =>
    runVacancy(['query', ...args, '--property', 'alp_000003', '--port', port, '--json'])
  const { roomTypes } = JSON.parse((await query('rooms')).stdout)
  const { dates } = JSON.parse((await query('dates', '--room-type', roomTypes[0])).stdout)
  start.signal('SIGINT')
  const { code, stdout } = await start.ended

  expect(stdout).toContain(`Topping up 3 days, ${formatDay(today + 7)} to ${formatDay(today + 9)}`)
  expect(dates).toEqual(Array.from({ length: 10 }, (_, night) => formatDay(today + night)))
  expect(JSON.parse(readFileSync(files.state, 'utf8')).last_day).toBe(formatDay(today + 9))
  expect(code).toBe(0)

  // A platform would find nothing for its own nodes there.
  const other = await runVacancy(['quickstart', 'up', '--shards', '1', '--days', '10', '--dir', dir])
  expect(other).toMatchObject({ code: 65, stderr: expect.stringContaining('holds data of other nodes') })
})

test('a second one in the same folder is refused with the process that uses the folder', async () => {
  const dir = join(folder, 'twice')
  const first = npmStart('--dir', dir, '--packages', '500', '--days', '30', ...ANY_PORTS)
  await first.printed(SERVED)

  const second = await npmStart('--dir', dir, ...ANY_PORTS).ended
  first.signal('SIGINT')

  expect(second.code).toBe(65)
  expect(second.stderr).toMatch(/a platform is running in .*, process \d+/)
  expect((await first.ended).code).toBe(0)
})

test('stopping it during data creation does not break a later start', async () => {
  const dir = join(folder, 'stopped')
  const first = npmStart('--dir', dir, '--packages', '3000000', ...ANY_PORTS)
  await first.printed(/Making sample data/)
  first.signal('SIGINT')
  const stopped = await first.ended

  const second = npmStart('--dir', dir, '--packages', '500', '--days', '30', ...ANY_PORTS)
  await second.printed(SERVED)
  second.signal('SIGINT')

  expect(stopped.code).toBe(0)
  expect(await second.ended).toMatchObject({ code: 0, stderr: '' })
})
