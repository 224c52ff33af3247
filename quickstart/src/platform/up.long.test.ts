import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isRunning } from '@vacancy/shared/node'
import { takePort } from '@vacancy/testkit/free-port'
import { until } from '@vacancy/testkit/until'
import { afterAll, expect, test } from 'vitest'
import type { ComponentStatus } from './control.ts'
import { quickstartTest, UP } from './testing/command.ts'

const { dir, portOffset, up, run, status, remove } = await quickstartTest()
afterAll(remove)

const MS_MAX = 300_000

const pidsOf = (components: readonly ComponentStatus[]) => new Map(components.map(({ name, pid }) => [name, pid]))

test(
  'a platform of two shards answers the sample queries, while a leader is killed and restarted, and leaves nothing behind',
  async () => {
    const platform = up('--level', 'cluster')
    await platform.printed(UP)
    const before = await status()
    const stated = await run('query')
    const second = await run('up', '--level', 'cluster')
    const leader = before.find(({ text, name }) => text === 'leads' && name.startsWith('node-0'))?.name ?? ''

    expect(before.map(({ name, isReady }) => `${name} ${isReady}`)).toEqual(
      ['registry', 'resolver', ...[0, 1].flatMap((shard) => [0, 1, 2].map((at) => `node-${shard}-${at}`))].map(
        (name) => `${name} true`,
      ),
    )
    for (const { residentBytes } of before) expect(residentBytes).toBeGreaterThan(50 * 1024 ** 2)
    expect(stated).toMatchObject({ code: 0, output: expect.stringContaining('All answers are as stated.') })
    expect(stated.output.match(/as stated {2}/g)).toHaveLength(7)
    expect(second).toMatchObject({ code: 65, output: expect.stringContaining('a platform is running in') })

    const killed = await run('kill', leader)
    const without = await run('status')
    // A new leader is elected within seconds.
    const again = await until('the new leader accepts writes', async () => {
      const result = await run('query')
      return result.code === 0 ? result : undefined
    })
    const restarted = await run('restart', leader)
    const after = await status()

    expect(killed).toMatchObject({ code: 0, output: expect.stringContaining(`${leader}, process`) })
    expect(without).toMatchObject({ code: 1, output: expect.stringMatching(new RegExp(`${leader} +killed`)) })
    expect(again.output).toContain('All answers are as stated.')
    expect(restarted).toMatchObject({ code: 0, output: expect.stringContaining(`${leader} is ready after`) })
    const [old, now] = [pidsOf(before), pidsOf(after)]
    expect([...now.keys()].filter((name) => now.get(name) !== old.get(name))).toEqual([leader])
    expect((await run('logs', leader, '--lines', '5')).output.trim().split('\n')).toHaveLength(5)
    expect((await run('kill', 'node-9-9')).output).toContain('no process is named "node-9-9": registry, resolver, node')

    const down = await run('down', '--keep-data')
    expect(down).toEqual({ code: 0, output: `Stopped; the data stays in ${dir}.\n` })
    expect(await platform.ended).toBe(0)
    for (const pid of now.values()) expect(isRunning(Number(pid))).toBe(false)

    // Continues with its data; a hang-up of the terminal ends it like Ctrl-C.
    const later = up('--level', 'cluster', '--set', 'node.log-level=warn,registry.heartbeat-timeout-secs=30')
    await later.printed(UP)
    const query = await run('query', '05-book')
    const pids = [...pidsOf(await status()).values()]
    later.signal('SIGHUP')

    expect(later.output()).toContain('continued')
    // The last run of all queries left 14.
    expect(JSON.parse(query.output)).toEqual({ status: 'success', availability: 13 })
    expect(await later.ended).toBe(0)
    for (const pid of pids) expect(isRunning(Number(pid))).toBe(false)
    expect((await run('down')).output).toContain('its data is removed')
    expect(existsSync(dir)).toBe(false)
  },
  MS_MAX,
)

test('every port in use is named, with what it is for, before anything starts', async () => {
  const ports = [8081 + portOffset, 7811 + portOffset]
  const taken = await Promise.all(ports.map((port) => takePort(port)))
  const platform = up('--level', 'cluster')
  const code = await platform.ended
  for (const { close } of taken) close()

  expect(code).toBe(69)
  expect(platform.output()).toContain(`127.0.0.1:${ports[0]}, for the published port of registry`)
  expect(platform.output()).toContain(`127.0.0.1:${ports[1]}, for the published port of node-1-1`)
  expect(platform.output()).not.toContain('snapshots')
})

test('a launcher that is killed takes all its processes with it', async () => {
  const platform = up('--level', 'cluster', '--shards', '1', '--nodes-per-shard', '1', '--one-address')
  await platform.printed(UP)
  const components = await status()
  const { output } = await run('query')
  platform.signal('SIGKILL')
  await platform.ended
  await until('no process is left', () => components.every(({ pid }) => !isRunning(Number(pid))))

  expect(output).toContain('All answers are as stated.')
  expect(output).not.toContain('06-other-shard')
  expect(readFileSync(join(dir, 'queries', 'README.md'), 'utf8')).toContain('05-book.json')
  expect((await run('down')).output).toContain('nothing runs in')
})
