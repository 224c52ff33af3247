/** A platform whose processes start in a random order, and of which one of each kind is killed in turn. */

import { until } from '@vacancy/testkit/until'
import fc from 'fast-check'
import { afterAll, expect, test } from 'vitest'
import type { ComponentStatus } from './control.ts'
import { quickstartTest, UP } from './testing/command.ts'

const { up, run, status, remove } = await quickstartTest()
afterAll(remove)

const LEVEL = ['--level', 'full']
/** docs/quickstart.md#break-something: answers are back this long after the return of a process. */
const BACK_MS_MAX = 15_000
const MS_MAX = 400_000

const pidOf = (components: readonly ComponentStatus[], name: string) =>
  components.find((each) => each.name === name)?.pid

/** `router-zone-0` and `router-zone-1` are of one kind. */
function oneOfEachKind(components: readonly ComponentStatus[], seed: number): string[] {
  const names = Map.groupBy(components, ({ name }) => name.replace(/[-0-9]+$/, ''))
  return [...names.values()].map((ofKind) => ofKind[seed % ofKind.length]?.name ?? '')
}

test(
  'started in any order it answers; a process of each kind is killed and restarted without a restart of another one',
  async () => {
    // From VACANCY_SEED where it is set; the output of the platform has it too.
    const [seed = 0] = fc.sample(fc.nat(), 1)
    const platform = up(...LEVEL, '--order-seed', String(seed))
    await platform.printed(UP)
    const first = await run('query')
    expect(first, platform.output()).toMatchObject({ code: 0 })

    const slow: string[] = []
    for (const name of oneOfEachKind(await status(), seed)) {
      const before = await status()
      await run('kill', name)
      // Without the killed process the answer may be an error.
      expect((await run('query', '03-search')).output).toMatch(/"status": "(success|error)"/)
      const back = await run('restart', name)
      expect(back, name).toMatchObject({ code: 0 })
      const startMs = performance.now()
      await until(`queries are answered after the return of ${name}`, async () => (await run('query')).code === 0)
      const ms = performance.now() - startMs
      if (ms > BACK_MS_MAX) slow.push(`${name} ${Math.round(ms)} ms`)
      const after = await status()
      const changed = after.filter((each) => each.pid !== pidOf(before, each.name)).map((each) => each.name)
      expect(changed).toEqual([name])
    }
    expect(slow).toEqual([])
    platform.signal('SIGINT')
    expect(await platform.ended).toBe(0)
    expect((await run('down')).code).toBe(0)

    const again = up(...LEVEL, '--order-seed', String(seed + 1))
    await again.printed(UP)
    expect((await run('query')).code, again.output()).toBe(0)
    again.signal('SIGTERM')
    expect(await again.ended).toBe(0)
  },
  MS_MAX,
)
