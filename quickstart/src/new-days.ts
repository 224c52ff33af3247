/** Adds sample data for new days, at startup and while a quick start runs, and reports it. */

import type { VacancyClient } from '@vacancy/client'
import { dayOf, formatDay } from '@vacancy/shared'
import { count } from '@vacancy/shared/node'
import type { ProcessGroup } from './launch.ts'
import { missingDays, type SampleLayout, type State } from './layout.ts'
import { topUp } from './sample-data.ts'
import { say, seconds } from './say.ts'

/** How often a running quick start checks for a new day. */
const DAY_LOOK_MS = 60_000
const PROGRESS_MS = 100

export async function withNewDays(
  target: { group: ProcessGroup; layout: SampleLayout; client: VacancyClient },
  state: State,
  today: number,
): Promise<State> {
  const { first, last } = missingDays(state, today)
  if (first > last) return state
  say(`Topping up ${count(last - first + 1, 'day')}, ${formatDay(first)} to ${formatDay(last)} …`)
  const startedMs = performance.now()
  let shownMs = 0
  const result = await topUp(target, state, today, (packages) => {
    if (!process.stderr.isTTY || performance.now() - shownMs < PROGRESS_MS) return
    shownMs = performance.now()
    process.stderr.write(`\r${count(packages, 'package')} written`)
  })
  if (process.stderr.isTTY) process.stderr.write('\r\u001b[K')
  const ms = performance.now() - startedMs
  say(`${count(result.written, 'package')} written over TCP in ${seconds(ms)}.`)
  return result.state
}

/**
 * Continues to add days while it runs, so that it has the new day after midnight.
 *
 * @param open connects to a node that accepts writes
 */
export function eachNewDay(
  group: ProcessGroup,
  layout: SampleLayout,
  open: () => Promise<VacancyClient>,
  first: State,
): NodeJS.Timeout {
  let state = first
  let isBusy = false
  const look = async () => {
    const today = dayOf(Date.now())
    if (isBusy || group.isStopping || missingDays(state, today).first > missingDays(state, today).last) return
    isBusy = true
    try {
      const client = await open()
      state = await withNewDays({ group, layout, client }, state, today)
      await client.close()
    } catch (error) {
      // The node may be stopping; missing days are written at the next check or start.
      if (!group.isStopping) say(`The new day is not topped up yet: ${(error as Error).message}`)
    } finally {
      isBusy = false
    }
  }
  return setInterval(look, DAY_LOOK_MS)
}
