// @vitest-environment happy-dom
import { render, screen, within } from '@testing-library/react'
import { useState } from 'react'
import { describe, expect, test, vi } from 'vitest'
import { AddressProvider } from '../lib/address.tsx'
import { PathTabs, ViewTabs } from './tabs.tsx'
import { user } from './testing/dom.ts'

vi.mock('next/navigation', () => ({
  usePathname: () => '/shards/s3/log',
  useSearchParams: () => new URLSearchParams('from=1'),
}))

const TABS = ['curl', 'TypeScript', 'Python'].map((label) => ({ id: label.toLowerCase(), label }))

function Languages() {
  const [value, setValue] = useState('curl')
  return (
    <ViewTabs label="Languages" value={value} onChange={setValue} tabs={TABS}>
      code in {value}
    </ViewTabs>
  )
}
const selected = () => screen.getByRole('tab', { selected: true }).textContent

describe('tabs', () => {
  test('are a named list of tabs whose panel is named by the selected one', () => {
    render(<Languages />)
    expect(screen.getByRole('tablist', { name: 'Languages' })).toBeTruthy()
    expect(screen.getAllByRole('tab').map(({ textContent }) => textContent)).toEqual(['curl', 'TypeScript', 'Python'])
    const panel = screen.getByRole('tabpanel', { name: 'curl' })
    expect(panel.textContent).toBe('code in curl')
    expect(screen.getByRole('tab', { name: 'curl' }).getAttribute('aria-controls')).toBe(panel.id)
  })

  test('a click selects', async () => {
    render(<Languages />)
    await user().click(screen.getByRole('tab', { name: 'Python' }))
    expect(selected()).toBe('Python')
    expect(screen.getByRole('tabpanel', { name: 'Python' }).textContent).toBe('code in python')
  })

  test('arrows move selection and focus around the ends; Home and End go to them', async () => {
    render(<Languages />)
    const person = user()
    await person.tab()
    const visited: unknown[] = []
    for (const key of ['ArrowRight', 'ArrowRight', 'ArrowRight', 'ArrowLeft', 'Home', 'End']) {
      await person.keyboard(`{${key}}`)
      expect(document.activeElement?.textContent).toBe(selected())
      visited.push(selected())
    }
    expect(visited).toEqual(['TypeScript', 'Python', 'curl', 'Python', 'curl', 'Python'])
  })

  test('only the selected one is a tab stop', async () => {
    render(<Languages />)
    const person = user()
    await person.click(screen.getByRole('tab', { name: 'TypeScript' }))
    await person.tab()
    expect(document.activeElement).toBe(document.body)
    await person.tab()
    expect(document.activeElement?.textContent).toBe('TypeScript')
  })
})

describe('tabs with a URL', () => {
  test('are named navigation that marks the current page, whatever its query', () => {
    render(
      <AddressProvider isDrawn={() => true}>
        <PathTabs
          label="Shard s3"
          tabs={[
            { href: '/shards/s3', label: 'Members', count: 0 },
            { href: '/shards/s3/log?from=7', label: 'Log' },
          ]}
        />
      </AddressProvider>,
    )
    const links = within(screen.getByRole('navigation', { name: 'Shard s3' })).getAllByRole('link')
    expect(links.map(({ textContent }) => textContent)).toEqual(['Members0', 'Log'])
    expect(links.map((link) => link.getAttribute('aria-current'))).toEqual([null, 'page'])
  })
})
