// @vitest-environment happy-dom
import './testing/dom.ts'
import { act, render, screen, within } from '@testing-library/react'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { Icon } from '../icons/icon.tsx'
import { percent } from '../lib/format.ts'
import { Age, Duration } from './age.tsx'
import { Badge, Chip, LEVEL_ICONS } from './badge.tsx'
import { Banner } from './banner.tsx'
import { Button } from './button.tsx'
import { Facts } from './facts.tsx'
import { IconButton } from './icon-button.tsx'
import { Progress } from './progress.tsx'
import { ROLE_ICONS, RoleMark } from './role-mark.tsx'
import { STATE_ICONS, StateBadge } from './state-badge.tsx'
import { Stepper, type StepState } from './stepper.tsx'
import { user } from './testing/dom.ts'

describe('button', () => {
  test.each(['click', 'Enter', 'Space'])('acts on %s', async (how) => {
    const onClick = vi.fn()
    render(<Button onClick={onClick}>Transfer leadership</Button>)
    const person = user()
    if (how === 'click') await person.click(screen.getByRole('button', { name: 'Transfer leadership' }))
    else {
      await person.tab()
      await person.keyboard(how === 'Enter' ? '{Enter}' : ' ')
    }
    expect(onClick).toHaveBeenCalledOnce()
  })

  test('does not send the form around it, unless it is a submit button', async () => {
    const onSubmit = vi.fn((event: { preventDefault(): void }) => event.preventDefault())
    render(
      <form onSubmit={onSubmit}>
        <Button>Preview</Button>
        <Button type="submit">Save</Button>
      </form>,
    )
    const person = user()
    await person.click(screen.getByRole('button', { name: 'Preview' }))
    expect(onSubmit).not.toHaveBeenCalled()
    await person.click(screen.getByRole('button', { name: 'Save' }))
    expect(onSubmit).toHaveBeenCalledOnce()
  })

  test('while blocked can be focused, describes why, and does nothing', async () => {
    const act = vi.fn()
    render(
      <form onSubmit={act}>
        <Button type="submit" why="Needs the admin role" onClick={act}>
          Remove
        </Button>
      </form>,
    )
    const button = screen.getByRole('button', { name: /Remove/ })
    const person = user()
    await person.tab()
    expect(document.activeElement).toBe(button)
    await person.keyboard('{Enter}')
    expect(act).not.toHaveBeenCalled()
    expect(button.getAttribute('aria-disabled')).toBe('true')
    const note = document.getElementById(button.getAttribute('aria-describedby') ?? '')
    expect(note?.textContent).toBe('Needs the admin role')
  })

  test('in progress is busy, and a second click does nothing', async () => {
    const onClick = vi.fn()
    render(
      <Button busy onClick={onClick}>
        Save
      </Button>,
    )
    const button = screen.getByRole('button', { name: 'Save' })
    await user().click(button)
    expect(onClick).not.toHaveBeenCalled()
    expect(button.getAttribute('aria-busy')).toBe('true')
  })
})

describe('icon button', () => {
  test('is named by its label', async () => {
    const onClick = vi.fn()
    render(<IconButton label="Close" icon="cross" onClick={onClick} />)
    await user().click(screen.getByRole('button', { name: 'Close' }))
    expect(onClick).toHaveBeenCalledOnce()
  })

  test('while blocked has the reason in its name, and does nothing', async () => {
    const onClick = vi.fn()
    render(<IconButton label="Next page" icon="chevron-right" why="This is the last one" onClick={onClick} />)
    const button = screen.getByRole('button', { name: 'Next page: This is the last one' })
    await user().click(button)
    expect(onClick).not.toHaveBeenCalled()
    expect(button.getAttribute('aria-disabled')).toBe('true')
  })

  test('reports whether it is pressed', () => {
    render(<IconButton label="Dense rows" icon="table" pressed={false} />)
    expect(screen.getByRole('button', { name: 'Dense rows', pressed: false })).toBeTruthy()
  })
})

describe('chip', () => {
  test('that can be toggled is a button that reports its state', async () => {
    const onClick = vi.fn()
    render(
      <Chip pressed onClick={onClick}>
        breakfast
      </Chip>,
    )
    await user().click(screen.getByRole('button', { name: 'breakfast', pressed: true }))
    expect(onClick).toHaveBeenCalledOnce()
  })

  test('that can be removed has a named button', async () => {
    const onRemove = vi.fn()
    render(
      <Chip removeLabel="Remove breakfast" onRemove={onRemove}>
        breakfast
      </Chip>,
    )
    await user().click(screen.getByRole('button', { name: 'Remove breakfast' }))
    expect(onRemove).toHaveBeenCalledOnce()
  })

  test('that only shows a value has no button', () => {
    render(<Chip>breakfast</Chip>)
    expect(screen.queryByRole('button')).toBeNull()
  })
})

/** What an icon draws. */
const drawn = (name: Parameters<typeof Icon>[0]['name']) => {
  const { container, unmount } = render(<Icon name={name} />)
  const shape = container.querySelector('svg')?.innerHTML
  unmount()
  return shape
}

describe('badge', () => {
  test('has a word and an icon that screen readers skip', () => {
    const { container } = render(<Badge level="crit">No leader</Badge>)
    expect(container.textContent).toBe('No leader')
    expect(container.querySelector('svg')?.getAttribute('aria-hidden')).toBe('true')
  })

  test('levels differ without colour', () => {
    const shapes = Object.values(LEVEL_ICONS).map(drawn)
    expect(new Set(shapes).size).toBe(shapes.length)
  })

  test('of a state shows the icon of the state, not of its level', () => {
    const { container } = render(<StateBadge state="electing" level="warn" label="Electing" />)
    expect(container.querySelector('svg')?.innerHTML).toBe(drawn(STATE_ICONS.electing))
    expect(container.textContent).toBe('Electing')
  })
})

describe('role', () => {
  test('is a shape that is read as a word', () => {
    for (const role of ['leader', 'learner'] as const) {
      const { container } = render(<RoleMark role={role} />)
      expect(container.textContent).toBe(role)
    }
  })

  test('each has a shape of its own', () => {
    const shapes = Object.values(ROLE_ICONS).map(drawn)
    expect(new Set(shapes).size).toBe(shapes.length)
  })
})

describe('banner', () => {
  test('is a status with title, text and actions', () => {
    render(
      <Banner level="warn" title="Disconnected" actions={<button type="button">Retry</button>}>
        Values are from 10:00.
      </Banner>,
    )
    const banner = screen.getByRole('status')
    expect(banner.textContent).toBe('DisconnectedValues are from 10:00.Retry')
    expect(within(banner).getByRole('button', { name: 'Retry' })).toBeTruthy()
  })
})

describe('facts', () => {
  test('are terms with their definitions, in order', () => {
    render(
      <Facts
        facts={[
          ['Term', 7],
          ['Leader', 'n2'],
        ]}
      />,
    )
    expect(screen.getAllByRole('term').map(({ textContent }) => textContent)).toEqual(['Term', 'Leader'])
    expect(screen.getAllByRole('definition').map(({ textContent }) => textContent)).toEqual(['7', 'n2'])
  })
})

describe('age', () => {
  const NOW = '2026-11-23T10:00:00Z'

  beforeEach(() => {
    vi.useFakeTimers({ now: Date.parse(NOW), toFake: ['setInterval', 'clearInterval', 'Date'] })
  })
  afterEach(() => vi.useRealTimers())

  const after = (seconds: number) => act(() => vi.advanceTimersByTime(seconds * 1_000))
  /** What is shown; thin spaces as spaces. */
  const shown = (element: Element | null | undefined) => element?.textContent?.replaceAll(/\s/g, ' ')

  describe('age', () => {
    test('is a time that screen readers read in full', () => {
      render(<Age at="2026-11-23T09:57:00Z" />)
      const time = document.querySelector('time')
      expect(time?.dateTime).toBe('2026-11-23T09:57:00Z')
      expect(shown(time)).toBe('3 min ago, 23 Nov 2026, 09:57:00 UTC')
    })

    test('gets older each second', () => {
      render(<Age at={NOW} />)
      expect(shown(document.querySelector('time'))).toMatch(/^now,/)
      after(1)
      expect(shown(document.querySelector('time'))).toMatch(/^1 s ago,/)
      after(41)
      expect(shown(document.querySelector('time'))).toMatch(/^42 s ago,/)
    })

    test.each([null, undefined, '', '1970-01-01T00:00:00Z'])('of %j is never', (at) => {
      render(<Age at={at} />)
      expect(screen.getByText('never')).toBeTruthy()
      expect(document.querySelector('time')).toBeNull()
    })
  })

  describe('duration', () => {
    test('runs', () => {
      const { container } = render(<Duration from="2026-11-23T09:59:50Z" />)
      expect(shown(container)).toBe('10 s')
      after(5)
      expect(shown(container)).toBe('15 s')
    })

    test('of a start in the future is zero, not negative', () => {
      const { container } = render(<Duration from="2026-11-23T10:00:30Z" />)
      expect(shown(container)).toBe('0 ms')
    })

    test('without a start is unknown', () => {
      const { container } = render(<Duration from={null} />)
      expect(shown(container)).toBe('–')
    })
  })
})

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
