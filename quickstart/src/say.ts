/** Terminal output of the quick starts. */

import { formatDay } from '@vacancy/shared'
import { count } from '@vacancy/shared/node'
import type { SampleLayout, State } from './layout.ts'

export function say(text: string): void {
  process.stdout.write(`${text}\n`)
}

export function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`
}

type Size = Omit<State, 'lastDay'>

/** Describes existing data, which flags do not change. */
export function sayWhatIsThere(
  { dir }: SampleLayout,
  { given, usual }: { given: Size; usual: Size },
  state: State,
  today: number,
): void {
  say(`${dir}: ${count(state.packages, 'package')}, ${count(state.days, 'night')} from ${formatDay(today)}.`)
  const differs = (a: Size, b: Size) => a.packages !== b.packages || a.days !== b.days || a.seed !== b.seed
  if (!differs(given, state) || !differs(given, usual)) return
  say(`Existing data is reused: remove ${dir}, or choose another --dir, for different data.`)
}
