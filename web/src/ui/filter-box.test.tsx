// @vitest-environment happy-dom
import { render, screen, within } from '@testing-library/react'
import { type ComponentProps, useState } from 'react'
import { describe, expect, test } from 'vitest'
import { count } from '../lib/format.ts'
import { FilterBox } from './filter-box.tsx'
import { user } from './testing/dom.ts'

const KEYS = { state: ['healthy', 'catching up'], zone: ['a', 'b'] }

function Shards({ start = '', ...rest }: Partial<ComponentProps<typeof FilterBox>> & { start?: string }) {
  const [value, setValue] = useState(start)
  return <FilterBox label="Filter shards" value={value} onChange={setValue} keys={KEYS} {...rest} />
}
const field = () => screen.getByRole<HTMLInputElement>('combobox', { name: 'Filter shards' })
const completions = () => screen.queryAllByRole('option').map(({ textContent }) => textContent)
const active = () =>
  within(screen.getByRole('list', { name: 'Filter shards: active filters' }))
    .getAllByRole('listitem')
    .map(({ textContent }) => textContent)

describe('filter box', () => {
  test('is a search landmark with a named field', () => {
    render(<Shards />)
    expect(field().closest('search')).toBeTruthy()
    expect(screen.queryByRole('list')).toBeNull()
  })

  test('completes keys first, then their values', async () => {
    render(<Shards />)
    const person = user()
    await person.type(field(), 'st')
    expect(completions()).toEqual(['state:'])
    await person.keyboard('{ArrowDown}{Enter}')
    expect(field().value).toBe('state:')
    await person.keyboard('{ArrowDown}')
    expect(completions()).toEqual(['state:healthy', 'state:"catching up"'])
    await person.type(field(), 'hea')
    expect(completions()).toEqual(['state:healthy'])
  })

  test('completes the last word and keeps those before it', async () => {
    render(<Shards start="s3 zone:" />)
    const person = user()
    await person.type(field(), 'b{ArrowDown}{Enter}')
    expect(field().value).toBe('s3 zone:b')
  })

  test('offers no completion for a complete value or an unknown key', async () => {
    render(<Shards />)
    const person = user()
    await person.type(field(), 'zone:a')
    expect(completions()).toEqual([])
    await person.type(field(), ' colour:')
    expect(completions()).toEqual([])
  })

  test('shows pairs as chips, each once, that can be removed by their name', async () => {
    render(<Shards start="s3 zone:a state:healthy" />)
    expect(active()).toEqual(['zone:a', 'state:healthy'])
    await user().click(screen.getByRole('button', { name: 'Remove zone:a' }))
    expect(field().value).toBe('s3 state:healthy')
    expect(active()).toEqual(['state:healthy'])
    await user().type(field(), ' state:healthy')
    expect(active()).toEqual(['state:healthy'])
  })

  test('is emptied by a button that is there only with text', async () => {
    render(<Shards start="s3" />)
    await user().click(screen.getByRole('button', { name: 'Clear filters' }))
    expect(field().value).toBe('')
    expect(screen.queryByRole('button', { name: 'Clear filters' })).toBeNull()
  })

  test.each([
    [{ total: 12_400 }, count(12_400)],
    [{ total: 40, shown: 40 }, '40'],
    [{ total: 40, shown: 0 }, '0 of 40'],
  ])('announces its counts %j as %j', (counts, text) => {
    render(<Shards {...counts} />)
    expect(screen.getByRole('status').textContent).toBe(text)
  })
})
