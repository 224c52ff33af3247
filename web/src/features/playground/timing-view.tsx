'use client'
/** The time of a run by hop. */
import type { CommandAnswer } from '@vacancy/shared/contract'
import clsx from 'clsx'
import { bytes, count, micros, NONE } from '../../lib/format.ts'
import * as copy from './copy.ts'
import { barsOf } from './timing.ts'

type TimingProps = {
  readonly answer: CommandAnswer
  readonly browserMicros: number
  /** The history entry to compare with. */
  readonly compared: { readonly label: string; readonly micros: number | null } | undefined
}

export function TimingView({ answer, browserMicros, compared }: TimingProps) {
  const bars = barsOf(answer, browserMicros)
  const total = bars.reduce((sum, bar) => sum + (bar.micros ?? 0), 0)
  let at = 0
  return (
    <div className="flex min-w-0 flex-col gap-4">
      <ol aria-label={copy.timing.label} className="flex flex-col gap-1">
        {bars.map((bar) => {
          const start = at
          at += bar.micros ?? 0
          const isReported = bar.micros !== null
          return (
            <li
              key={bar.hop}
              data-hop={bar.hop}
              data-us={bar.micros === null ? undefined : Math.round(bar.micros)}
              className="grid grid-cols-[minmax(0,1fr)_auto] items-center gap-x-3 sm:grid-cols-[15rem_minmax(0,1fr)_5rem]"
            >
              <span className="text-table text-text-2">{bar.label}</span>
              <span
                aria-hidden="true"
                className={clsx(
                  'relative h-4 overflow-clip rounded-[2px] max-sm:order-last max-sm:col-span-2',
                  isReported ? 'bg-sunken' : 'hatch bg-unk-bg',
                )}
              >
                {isReported && (
                  <span
                    data-filled=""
                    className={clsx(
                      'absolute inset-y-0 min-w-0.5',
                      bar.hop === 'searching' || bar.hop === 'waiting' ? 'bg-accent' : 'bg-series-3',
                    )}
                    style={{
                      insetInlineStart: `${(start / total) * 100}%`,
                      width: `${((bar.micros ?? 0) / total) * 100}%`,
                    }}
                  />
                )}
              </span>
              <span className="num text-table">{isReported ? micros(bar.micros) : copy.timing.notReported}</span>
            </li>
          )
        })}
        <li className="grid grid-cols-[minmax(0,1fr)_auto] gap-x-3 border-line border-t pt-1 font-medium sm:grid-cols-[15rem_minmax(0,1fr)_5rem]">
          <span>{copy.timing.total}</span>
          <span className="max-sm:hidden" />
          <span className="num">{micros(total)}</span>
        </li>
      </ol>
      {answer.hops.some((hop) => hop.micros === null) && (
        <p className="prose text-small text-text-3">
          {answer.command.startsWith('SEARCH') ? copy.timing.explainSearch : copy.timing.explainOther}
        </p>
      )}
      {compared && (
        <p className="text-table">
          {copy.timing.compared(compared.label, micros(compared.micros), micros(answer.totalMicros))}
        </p>
      )}
      <dl className="grid grid-cols-[auto_1fr] gap-x-4 gap-y-1 text-table sm:grid-cols-[auto_1fr_auto_1fr]">
        <Fact name={copy.timing.servedBy} value={`${answer.node}, ${answer.role}`} />
        <Fact name={copy.timing.index} value={answer.index === null ? NONE : count(Number(answer.index))} />
        <Fact name={copy.timing.examined} value={count(answer.examined)} />
        <Fact name={copy.timing.returned} value={count(answer.count)} />
        <Fact name={copy.timing.bytesOut} value={bytes(answer.bytesOut)} />
        <Fact name={copy.timing.bytesIn} value={bytes(answer.bytesIn)} />
        <Fact name={copy.timing.attempts} value={count(answer.attempts)} />
      </dl>
    </div>
  )
}

function Fact({ name, value }: { readonly name: string; readonly value: string }) {
  return (
    <>
      <dt className="text-text-3">{name}</dt>
      <dd>{value}</dd>
    </>
  )
}
