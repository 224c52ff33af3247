// @vitest-environment happy-dom
import { render, screen, within } from '@testing-library/react'
import { describe, expect, test, vi } from 'vitest'
import { user } from './testing/dom.ts'
import { TimeChart, type TimeChartProps } from './time-chart.tsx'

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

  test('its legend has the newest known value of each line', () => {
    render(
      chart({
        series: [
          { label: 'n1', values: [10, 30] },
          { label: 'n2', values: [2, null] },
          { label: 'n3', values: [null] },
        ],
      }),
    )
    expect(legend()).toEqual(['n130', 'n22', 'n3–'])
  })

  test('draws six lines and names the number of the others', () => {
    render(chart({ series: Array.from({ length: 8 }, (_, at) => ({ label: `n${at}`, values: [at] })) }))
    expect(legend()).toHaveLength(6)
    expect(screen.getByText('and 2 more')).toBeTruthy()
  })

  test('reads its events to screen readers', () => {
    render(chart({ series: [], marks: [{ at: '2026-11-23T10:01:00Z', label: 'n2 restarted' }] }))
    expect(legend()).toEqual(['n2 restarted, 23 Nov 2026, 10:01:00 UTC'])
  })
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
