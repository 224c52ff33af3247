// @vitest-environment happy-dom
import { render, screen } from '@testing-library/react'
import { describe, expect, test } from 'vitest'
import { percent } from '../lib/format.ts'
import { Progress } from './progress.tsx'
import { Stepper, type StepState } from './stepper.tsx'
import './testing/dom.ts'

describe('progress', () => {
  const bar = () => screen.getByRole('progressbar', { name: 'Upload' })
  const value = () => bar().getAttribute('aria-valuenow')

  test('is a named progress bar in percent of its maximum', () => {
    render(<Progress label="Upload" value={41} max={60} />)
    expect(value()).toBe('68')
    expect(screen.getByText(percent(41 / 60))).toBeTruthy()
  })

  test('without a known share has no value', () => {
    render(<Progress label="Upload" value={null} />)
    expect(value()).toBeNull()
    expect(screen.getByText('in progress')).toBeTruthy()
  })

  test.each([
    [-1, 60, '0'],
    [70, 60, '100'],
    [0, 0, '100'],
  ])('%d of %d is %s percent', (done, max, share) => {
    render(<Progress label="Upload" value={done} max={max} />)
    expect(value()).toBe(share)
  })

  test('is read with its text where it has one', () => {
    render(<Progress label="Upload" value={0.5} valueText="30 MB of 60 MB" />)
    expect(bar().getAttribute('aria-valuetext')).toBe('30 MB of 60 MB')
  })
})

describe('steps', () => {
  const STATES: readonly StepState[] = ['done', 'running', 'waiting']
  const steps = STATES.map((state) => ({ id: state, label: `step ${state}`, state }))

  test('are a named list that marks the running one and reads the state of each', () => {
    render(<Stepper label="Transfer" steps={steps} />)
    expect(screen.getByRole('list', { name: 'Transfer' })).toBeTruthy()
    const items = screen.getAllByRole('listitem')
    expect(items.map(({ textContent }) => textContent)).toEqual([
      'step done (done)',
      'step running (running)',
      'step waiting (waiting)',
    ])
    expect(items.map((item) => item.getAttribute('aria-current'))).toEqual([null, 'step', null])
  })

  test('show a duration of zero, and none while it is unknown', () => {
    render(
      <Stepper
        label="Transfer"
        steps={[
          { id: 'a', label: 'a', state: 'done', ms: 0 },
          { id: 'b', label: 'b', state: 'running', ms: null },
        ]}
      />,
    )
    const [first, second] = screen.getAllByRole('listitem')
    expect(first?.textContent).toMatch(/^a \(done\)0.ms$/)
    expect(second?.textContent).toBe('b (running)')
  })

  test('without steps are an empty list', () => {
    render(<Stepper label="Transfer" steps={[]} />)
    expect(screen.getByRole('list', { name: 'Transfer' }).textContent).toBe('')
  })
})
