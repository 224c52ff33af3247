// @vitest-environment happy-dom
import { render, screen, within } from '@testing-library/react'
import { type ComponentProps, useState } from 'react'
import { describe, expect, test, vi } from 'vitest'
import { count } from '../lib/format.ts'
import { missingConfirmation, ReasonField, TypedField } from './confirm-fields.tsx'
import { Checkbox, Field, Input, RadioGroup, Switch, TextArea } from './field.tsx'
import { FilterBox } from './filter-box.tsx'
import { Select } from './select.tsx'
import { user } from './testing/dom.ts'

/** The texts that describe an element to screen readers. */
const described = (element: Element) =>
  (element.getAttribute('aria-describedby') ?? '')
    .split(' ')
    .filter(Boolean)
    .map((id) => document.getElementById(id)?.textContent)

describe('field', () => {
  test('names its control by its label', () => {
    render(<Field label="Zone">{(wire) => <Input {...wire} />}</Field>)
    const input = screen.getByRole('textbox', { name: 'Zone' })
    expect(described(input)).toEqual([])
    expect(input.getAttribute('aria-invalid')).toBeNull()
    expect(input).toHaveProperty('required', false)
  })

  test('describes its control by hint and error, and marks it as invalid', () => {
    render(
      <Field label="Zone" hint="Where it runs" error="Unknown zone" required>
        {(wire) => <TextArea {...wire} />}
      </Field>,
    )
    const area = screen.getByRole('textbox', { name: 'Zone (required)' })
    expect(described(area)).toEqual(['Where it runs', 'Unknown zone'])
    expect(area.getAttribute('aria-invalid')).toBe('true')
    expect(area).toHaveProperty('required', true)
  })

  test('names a select as well', async () => {
    const onChange = vi.fn()
    const options = [
      { value: 'a', label: 'Zone A' },
      { value: 'b', label: 'Zone B' },
      { value: 'c', label: 'Zone C', disabled: true },
    ]
    render(
      <Field label="Zone">
        {(wire) => <Select {...wire} options={options} value="a" onChange={({ target }) => onChange(target.value)} />}
      </Field>,
    )
    await user().selectOptions(screen.getByRole('combobox', { name: 'Zone' }), 'Zone B')
    expect(onChange.mock.calls).toEqual([['b']])
    expect(screen.getByRole('option', { name: 'Zone C' })).toHaveProperty('disabled', true)
  })
})

describe('checkbox', () => {
  test('is named by its label, described by its hint, and toggled by Space', async () => {
    render(<Checkbox label="Only voters" hint="Leaves out learners" />)
    const box = screen.getByRole<HTMLInputElement>('checkbox', { name: /Only voters/ })
    expect(described(box)).toEqual(['Leaves out learners'])
    const person = user()
    await person.tab()
    await person.keyboard(' ')
    expect(box.checked).toBe(true)
  })
})

describe('switch', () => {
  function Auto({ why }: { why?: string }) {
    const [isOn, setOn] = useState(false)
    return <Switch label="Automatic" hint="Every minute" checked={isOn} onChange={setOn} why={why} />
  }
  const control = () => screen.getByRole('switch', { name: 'Automatic' })

  test.each(['click', 'Space', 'Enter'])('is switched on and off by %s', async (how) => {
    render(<Auto />)
    const person = user()
    await person.tab()
    const press = () => (how === 'click' ? person.click(control()) : person.keyboard(how === 'Space' ? ' ' : '{Enter}'))
    expect(control().getAttribute('aria-checked')).toBe('false')
    await press()
    expect(control().getAttribute('aria-checked')).toBe('true')
    await press()
    expect(control().getAttribute('aria-checked')).toBe('false')
  })

  test('while blocked stays as it is, can be focused, and describes why', async () => {
    render(<Auto why="Needs the admin role" />)
    const person = user()
    await person.tab()
    expect(document.activeElement).toBe(control())
    await person.keyboard(' ')
    expect(control().getAttribute('aria-checked')).toBe('false')
    expect(control().getAttribute('aria-disabled')).toBe('true')
    expect(described(control())).toEqual(['Every minute Needs the admin role'])
  })
})

describe('radio group', () => {
  function Mode() {
    const [value, setValue] = useState<'fast' | 'safe' | 'off'>('fast')
    return (
      <RadioGroup
        label="Mode"
        value={value}
        onChange={setValue}
        options={[
          { value: 'fast', label: 'Fast' },
          { value: 'safe', label: 'Safe', hint: 'Waits for all' },
          { value: 'off', label: 'Off', disabled: true },
        ]}
      />
    )
  }

  test('is a named group with one checked option', () => {
    render(<Mode />)
    expect(screen.getByRole('group', { name: 'Mode' })).toBeTruthy()
    expect(screen.getByRole('radio', { checked: true })).toBe(screen.getByRole('radio', { name: 'Fast' }))
    expect(screen.getByRole('radio', { name: 'Off' })).toHaveProperty('disabled', true)
  })

  test('a click on the label chooses', async () => {
    render(<Mode />)
    await user().click(screen.getByText('Waits for all'))
    expect(screen.getByRole('radio', { checked: true })).toBe(screen.getByRole('radio', { name: /Safe/ }))
  })

  test('a disabled option cannot be chosen', async () => {
    render(<Mode />)
    await user().click(screen.getByText('Off'))
    expect(screen.getByRole('radio', { checked: true })).toBe(screen.getByRole('radio', { name: 'Fast' }))
  })

  test('two groups on one page are independent', async () => {
    render(
      <>
        <Mode />
        <Mode />
      </>,
    )
    await user().click(screen.getAllByRole('radio', { name: /Safe/ })[0] as HTMLElement)
    expect(screen.getAllByRole('radio').map((radio) => (radio as HTMLInputElement).checked)).toEqual([
      false,
      true,
      false,
      true,
      false,
      false,
    ])
  })
})

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

function Confirm() {
  const [typed, setTyped] = useState('')
  const [reason, setReason] = useState('')
  return (
    <>
      <TypedField text="s3" value={typed} onChange={setTyped} />
      <ReasonField value={reason} onChange={setReason} />
      <output>{missingConfirmation({ text: 's3', typed, reason }) ?? 'complete'}</output>
    </>
  )
}
const status = () => screen.getByRole('status').textContent

describe('confirmation', () => {
  test('needs the name typed, then a reason of eight characters', async () => {
    render(<Confirm />)
    const person = user()
    expect(status()).toBe('Type s3 first')
    await person.type(screen.getByRole('textbox', { name: 'Type s3 to confirm (required)' }), ' s3 ')
    expect(status()).toBe('Enter a reason of at least 8 characters')
    const reason = screen.getByRole('textbox', { name: 'Reason (recorded in the audit log) (required)' })
    await person.type(reason, ' drills ')
    expect(status()).toBe('Enter a reason of at least 8 characters')
    await person.clear(reason)
    await person.type(reason, 'drill 12')
    expect(status()).toBe('complete')
  })

  test('another name or another case does not confirm', async () => {
    render(<Confirm />)
    const person = user()
    const name = screen.getByRole('textbox', { name: /Type s3/ })
    for (const wrong of ['S3', 's33', 's']) {
      await person.clear(name)
      await person.type(name, wrong)
      expect(status()).toBe('Type s3 first')
    }
  })

  test('without a name only the reason is needed', () => {
    expect(missingConfirmation({ reason: 'a planned drill' })).toBeUndefined()
    expect(missingConfirmation({ reason: '' })).toBe('Enter a reason of at least 8 characters')
  })
})
