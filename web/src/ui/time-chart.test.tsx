// @vitest-environment happy-dom
import { cleanup, render, screen, within } from '@testing-library/react'
import { describe, expect, test, vi } from 'vitest'
import { csvOf } from './chart-export.ts'
import { user } from './testing/dom.ts'
import { ChartContext, TimeChart, type TimeChartProps } from './time-chart.tsx'
import { type ChartControl, gapsOf } from './time-chart-lines.ts'

// happy-dom has no canvas: what is drawn on it is tested in a browser (e2e).
vi.mock('./time-chart-canvas.tsx', () => ({ default: () => null }))

const MINUTE = 60
const chart = (props: Partial<TimeChartProps> = {}) => (
  <TimeChart
    title="Searches"
    unit="per second"
    from="2026-11-23T10:00:00Z"
    to="2026-11-23T10:03:00Z"
    stepSeconds={MINUTE}
    series={[
      { label: 'n1', values: [10, 20, 30] },
      { label: 'n2', values: [1, 2, null] },
    ]}
    {...props}
  />
)
const figure = () => screen.getByRole('figure', { name: /^Searches ?, per second$/ })
const rows = () =>
  within(screen.getByRole('table', { name: 'Searches' }))
    .getAllByRole('row')
    .map((row) => [...row.children].map(({ textContent }) => textContent))
const legend = () =>
  within(figure())
    .getAllByRole('listitem')
    .map(({ textContent }) => textContent)

describe('chart', () => {
  test('is a figure named by title and unit', () => {
    render(chart())
    expect(figure()).toBeTruthy()
    expect(screen.queryByRole('table')).toBeNull()
  })

  test('its legend has the newest known, least and highest value of each line, once', () => {
    render(
      chart({
        series: [
          { label: 'n1', values: [10, 40, 30] },
          { label: 'n2', values: [2, null] },
          { label: 'n3', values: [null] },
        ],
      }),
    )
    expect(legend()).toEqual(['n1 last 30 min 10 max 40', 'n2 last 2 min 2 max 2', 'n3 last – min – max –'])
  })

  test('draws six lines and names the number of the others', () => {
    render(chart({ series: Array.from({ length: 8 }, (_, at) => ({ label: `n${at}`, values: [at] })) }))
    expect(legend()).toHaveLength(6)
    expect(screen.getByText('and 2 more')).toBeTruthy()
  })

  test('says that times without any value were not recorded', () => {
    render(chart())
    expect(within(figure()).queryByText('not recorded')).toBeNull()
    cleanup()
    render(chart({ series: [{ label: 'n1', values: [null, null, null, 10, 20] }] }))
    expect(within(figure()).getByText('not recorded')).toBeTruthy()
  })

  test('reads its events to screen readers', () => {
    render(chart({ series: [], marks: [{ at: '2026-11-23T10:01:00Z', label: 'n2 restarted', short: 'restart n2' }] }))
    expect(legend()).toEqual(['n2 restarted, 23 Nov 2026, 10:01:00 UTC'])
  })

  test('without any value has a sentence instead of an axis', () => {
    render(chart({ series: [{ label: 'n1', values: [null, null] }] }))
    expect(within(figure()).getByText('No data in this time range.')).toBeTruthy()
    expect(within(figure()).queryAllByRole('listitem')).toEqual([])
  })
})

describe('chart of a page with a time range', () => {
  function control(change: Partial<ChartControl> = {}) {
    const calls: unknown[] = []
    const add =
      (name: string) =>
      (...values: unknown[]) =>
        void calls.push([name, ...values])
    const value = {
      ...{ pin: undefined, onPin: add('pin'), onZoom: add('zoom'), onZoomOut: add('out'), onStep: add('step') },
      ...change,
    }
    render(
      <ChartContext value={value}>
        {chart({ marks: [{ at: '2026-11-23T10:01:10Z', label: 'n2 restarted', short: 'restart n2' }] })}
      </ChartContext>,
    )
    return calls
  }

  test('shows its values at the pinned time, and the event there', () => {
    control({ pin: Date.parse('2026-11-23T10:01:00Z') })
    expect(legend()[0]).toBe('n1 10:01:00 20 min 10 max 30')
    expect(within(figure()).getByText('n2 restarted')).toBeTruthy()
  })

  test('is zoomed and moved with Alt and the arrows, and pinned with Enter', async () => {
    const calls = control()
    figure().focus()
    const person = user()
    await person.keyboard('{Alt>}{ArrowUp}{ArrowLeft}{ArrowRight}{ArrowDown}{/Alt}{Enter}')
    expect(calls).toEqual([
      ['step', 'in'],
      ['step', 'earlier'],
      ['step', 'later'],
      ['out'],
      ['pin', Date.parse('2026-11-23T10:02:00Z')],
    ])
  })
})

test('a gap is where no line has a value, up to the known ones beside it; the newest value may be due', () => {
  const gaps = (...lines: (number | null)[][]) => gapsOf(lines.map((values) => ({ values })))
  expect(gaps([1, 2, null, null, 5], [null, null, null, 4, 5])).toEqual([[1, 3]])
  expect(gaps([null, null, null, 4, 5])).toEqual([[0, 3]])
  // The first rate comes after the second report.
  expect(gaps([null, null, 3, 4])).toEqual([])
  expect(gaps([1, 2, null, null])).toEqual([])
  expect(gaps([1, null, null, null])).toEqual([[0, 3]])
  expect(gaps([1, 2], [null, null])).toEqual([])
})

test('as CSV a chart has a row per step, gaps are empty, and no cell is a formula', () => {
  const series = [
    { label: 'n1', values: [1, null] },
    { label: '=n,2', values: [0.5, 2] },
  ]
  expect(csvOf({ series, timeOf: (step) => `t${step}` })).toBe('time,n1,"\'=n,2"\nt0,1,0.5\nt1,,2\n')
})

describe('chart as a table', () => {
  test('is toggled by its button and by T', async () => {
    render(chart())
    const person = user()
    await person.click(screen.getByRole('button', { name: 'Show Searches as table' }))
    expect(screen.getByRole('table', { name: 'Searches' })).toBeTruthy()
    await person.click(screen.getByRole('button', { name: 'Show Searches as chart' }))
    expect(screen.queryByRole('table')).toBeNull()
    figure().focus()
    await person.keyboard('t')
    expect(screen.getByRole('table', { name: 'Searches' })).toBeTruthy()
    await person.keyboard('{Control>}t{/Control}')
    expect(screen.getByRole('table', { name: 'Searches' })).toBeTruthy()
    await person.keyboard('T')
    expect(screen.queryByRole('table')).toBeNull()
  })

  async function table(props: Partial<TimeChartProps> = {}) {
    render(chart(props))
    await user().click(screen.getByRole('button', { name: 'Show Searches as table' }))
  }

  test('has the newest step first, and a dash for a missing value', async () => {
    await table({ format: (value) => `${value}/s` })
    expect(rows()).toEqual([
      ['UTC', 'n1', 'n2'],
      ['10:02:00', '30/s', '–'],
      ['10:01:00', '20/s', '2/s'],
      ['10:00:00', '10/s', '1/s'],
    ])
  })

  test('has at most 60 rows of a long range, the newest among them', async () => {
    await table({ series: [{ label: 'n1', values: Array.from({ length: 1_000 }, (_, at) => at) }] })
    const [, newest, ...others] = rows()
    expect(newest?.[1]).toBe('999')
    expect(others.length).toBeLessThan(60)
    expect(others.length).toBeGreaterThan(50)
  })

  test('of no values has only its head', async () => {
    await table({ series: [] })
    expect(rows()).toEqual([['UTC']])
  })
})
