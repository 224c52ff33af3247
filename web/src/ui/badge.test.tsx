// @vitest-environment happy-dom
import { render, screen, within } from '@testing-library/react'
import { describe, expect, test } from 'vitest'
import { Icon } from '../icons/icon.tsx'
import { Badge, LEVEL_ICONS } from './badge.tsx'
import { Banner } from './banner.tsx'
import { Facts } from './facts.tsx'
import { ROLE_ICONS, RoleMark } from './role-mark.tsx'
import { STATE_ICONS, StateBadge } from './state-badge.tsx'
import './testing/dom.ts'

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
