// @vitest-environment happy-dom
import { render, screen } from '@testing-library/react'
import { useState } from 'react'
import { describe, expect, test, vi } from 'vitest'
import { Checkbox, Field, Input, RadioGroup, Switch, TextArea } from './field.tsx'
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
