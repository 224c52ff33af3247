// @vitest-environment happy-dom
import { render, screen, waitFor } from '@testing-library/react'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { CodeTabs } from './code-tabs.tsx'
import { CopyButton } from './copy-button.tsx'
import { Id } from './id.tsx'
import { user } from './testing/dom.ts'

afterEach(() => vi.restoreAllMocks())

/** Person whose clipboard can be read. */
function withClipboard() {
  const person = user()
  const written = vi.spyOn(navigator.clipboard, 'writeText')
  return { person, copied: () => written.mock.calls.map(([text]) => text) }
}
const announced = () => screen.getByRole('status').textContent

describe('copy button', () => {
  test('copies its text and announces it', async () => {
    render(
      <>
        <CopyButton text="curl /metrics" label="Copy curl" />
        <output data-announce="polite" />
      </>,
    )
    const { person, copied } = withClipboard()
    await person.click(screen.getByRole('button', { name: 'Copy curl' }))
    expect(copied()).toEqual(['curl /metrics'])
    await waitFor(() => expect(announced()).toBe('Copied'))
  })

  test('computes its text only on the click', async () => {
    const text = vi.fn(() => 'details')
    render(<CopyButton text={text} label="Copy details" kind="quiet" />)
    expect(text).not.toHaveBeenCalled()
    const { person, copied } = withClipboard()
    await person.click(screen.getByRole('button', { name: 'Copy details' }))
    expect(copied()).toEqual(['details'])
  })

  test('copies with the older method where the clipboard is refused, and keeps the focus', async () => {
    render(<CopyButton text="secret" label="Copy token" />)
    const person = user()
    vi.spyOn(navigator.clipboard, 'writeText').mockRejectedValue(new Error('refused'))
    const selected: (string | undefined)[] = []
    document.execCommand = () => {
      selected.push(document.querySelector('textarea')?.value)
      return true
    }
    await person.click(screen.getByRole('button', { name: 'Copy token' }))
    await waitFor(() => expect(selected).toEqual(['secret']))
    expect(document.querySelector('textarea')).toBeNull()
    expect(document.activeElement).toBe(screen.getByRole('button', { name: 'Copy token' }))
  })

  test('announces what to do where the browser blocks copying', async () => {
    render(
      <>
        <CopyButton text="secret" label="Copy token" />
        <output data-announce="polite" />
      </>,
    )
    const person = user()
    vi.spyOn(navigator.clipboard, 'writeText').mockRejectedValue(new Error('refused'))
    document.execCommand = () => false
    await person.click(screen.getByRole('button', { name: 'Copy token' }))
    await waitFor(() => expect(announced()).toBe('The browser blocked copying. Select the text instead.'))
  })
})

describe('identifier', () => {
  test('shows at least eight characters, and copies all', async () => {
    render(<Id value="0123456789abcdef" label="operation" short={4} />)
    expect(screen.getByText('01234567…').dataset['tip']).toBe('0123456789abcdef')
    const { person, copied } = withClipboard()
    await person.click(screen.getByRole('button', { name: 'Copy operation ID' }))
    expect(copied()).toEqual(['0123456789abcdef'])
  })

  test('is not shortened where it fits', () => {
    render(<Id value="01234567" label="operation" short={8} />)
    expect(screen.getByText('01234567').dataset['tip']).toBeUndefined()
  })
})

describe('code in several languages', () => {
  const tabs = [
    { id: 'curl', label: 'curl', code: 'curl /shards' },
    { id: 'ts', label: 'TypeScript', code: 'await shards()' },
  ]

  test('shows and copies the selected one', async () => {
    render(<CodeTabs label="Examples" tabs={tabs} />)
    expect(screen.getByText('curl /shards')).toBeTruthy()
    const { person, copied } = withClipboard()
    await person.click(screen.getByRole('tab', { name: 'TypeScript' }))
    expect(screen.queryByText('curl /shards')).toBeNull()
    await person.click(screen.getByRole('button', { name: 'Copy: TypeScript' }))
    expect(copied()).toEqual(['await shards()'])
  })

  test('breaks its lines between words, never within one', () => {
    const code = 'vacancy cluster transfer n2 --token-file token'
    render(<CodeTabs label="Examples" wrap tabs={[{ id: 'cli', label: 'Command line', code }]} />)
    const word = screen.getByText('--token-file')
    expect(word.className).toContain('inline-block')
    expect(word.closest('code')?.textContent).toBe(code)
  })

  test('can be scrolled by keyboard', async () => {
    render(<CodeTabs label="Examples" tabs={tabs} />)
    expect(screen.getByText('curl /shards').closest('pre')?.tabIndex).toBe(0)
  })

  test('without code shows no figure', () => {
    render(<CodeTabs label="Examples" tabs={[]} />)
    expect(screen.queryByRole('figure')).toBeNull()
  })
})
