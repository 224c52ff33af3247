// @vitest-environment happy-dom
import { render, screen } from '@testing-library/react'
import { useState } from 'react'
import { describe, expect, test, vi } from 'vitest'
import { Combobox, type ComboOptions, MultiCombobox } from './combobox.tsx'
import { Field } from './field.tsx'
import { user } from './testing/dom.ts'

const ZONES: ComboOptions = [{ value: 'amsterdam', hint: '12 nodes' }, { value: 'berlin' }, { value: 'bern' }]

type OneProps = {
  readonly options?: ComboOptions
  readonly free?: boolean
  readonly why?: string
  readonly onChange?: (value: string) => void
}

function One({ options = ZONES, onChange, ...rest }: OneProps) {
  const [value, setValue] = useState('')
  return (
    <Combobox
      label="Zone"
      options={options}
      value={value}
      onChange={(next) => {
        setValue(next)
        onChange?.(next)
      }}
      {...rest}
    />
  )
}

function Several({ options = ZONES, free = false }: { options?: ComboOptions; free?: boolean }) {
  const [values, setValues] = useState<readonly string[]>([])
  return <MultiCombobox label="Zones" options={options} free={free} values={values} onChange={setValues} />
}

const field = () => screen.getByRole<HTMLInputElement>('combobox')
const options = () => screen.queryAllByRole('option').map(({ textContent }) => textContent)
/** The option that a screen reader announces. */
const announced = () => {
  const id = field().getAttribute('aria-activedescendant')
  return id === null ? undefined : document.getElementById(id)?.textContent
}

describe('combobox', () => {
  test('is a named combobox whose list is closed at first', () => {
    render(<One />)
    expect(screen.getByRole('combobox', { name: 'Zone' }).getAttribute('aria-expanded')).toBe('false')
    expect(screen.queryByRole('listbox')).toBeNull()
  })

  test('lists every option on a click, with its hint', async () => {
    render(<One />)
    await user().click(field())
    expect(field().getAttribute('aria-expanded')).toBe('true')
    expect(screen.getByRole('listbox', { name: 'Zone' }).id).toBe(field().getAttribute('aria-controls'))
    expect(options()).toEqual(['amsterdam12 nodes', 'berlin', 'bern'])
  })

  test('filters by the typed text, whatever its case', async () => {
    render(<One />)
    await user().type(field(), 'BER')
    expect(options()).toEqual(['berlin', 'bern'])
  })

  test('arrows move through the options and around the ends, and announce them', async () => {
    render(<One />)
    const person = user()
    await person.type(field(), 'ber')
    expect(announced()).toBeUndefined()
    await person.keyboard('{ArrowDown}')
    expect(announced()).toBe('berlin')
    await person.keyboard('{ArrowDown}')
    expect(announced()).toBe('bern')
    expect(screen.getByRole('option', { selected: true }).textContent).toBe('bern')
    await person.keyboard('{ArrowDown}')
    expect(announced()).toBe('berlin')
    await person.keyboard('{ArrowUp}')
    expect(announced()).toBe('bern')
  })

  test('Enter takes the announced option and closes the list', async () => {
    const onChange = vi.fn()
    render(<One onChange={onChange} />)
    await user().type(field(), 'ber{ArrowDown}{ArrowDown}{Enter}')
    expect(onChange.mock.calls).toEqual([['bern']])
    expect(field().value).toBe('bern')
    expect(screen.queryByRole('listbox')).toBeNull()
  })

  test('Enter takes the first match when none is announced', async () => {
    render(<One />)
    await user().type(field(), 'ber{Enter}')
    expect(field().value).toBe('berlin')
  })

  test('a click takes an option, and the field keeps the focus', async () => {
    render(<One />)
    const person = user()
    await person.click(field())
    await person.click(screen.getByRole('option', { name: 'berlin' }))
    expect(field().value).toBe('berlin')
    expect(document.activeElement).toBe(field())
  })

  test('Escape closes the list and nothing around it', async () => {
    const onKeyDown = vi.fn()
    render(
      // biome-ignore lint/a11y/noStaticElementInteractions: stands for a dialog that closes on Escape.
      <div onKeyDown={({ key }) => key === 'Escape' && onKeyDown()}>
        <One />
      </div>,
    )
    const person = user()
    await person.type(field(), 'b{Escape}')
    expect(screen.queryByRole('listbox')).toBeNull()
    expect(onKeyDown).not.toHaveBeenCalled()
    await person.keyboard('{Escape}')
    expect(onKeyDown).toHaveBeenCalledOnce()
  })

  test('drops text that is not an option when the focus leaves', async () => {
    const onChange = vi.fn()
    render(<One onChange={onChange} />)
    const person = user()
    await person.type(field(), 'atlantis')
    expect(screen.getByText('No matches')).toBeTruthy()
    await person.tab()
    expect(field().value).toBe('')
    expect(onChange).not.toHaveBeenCalled()
  })

  test('keeps any text where free text is allowed', async () => {
    render(<One free />)
    const person = user()
    await person.type(field(), 'atlantis')
    expect(screen.queryByRole('listbox')).toBeNull()
    await person.tab()
    expect(field().value).toBe('atlantis')
  })

  test('reports an emptied field', async () => {
    const onChange = vi.fn()
    render(<One onChange={onChange} />)
    const person = user()
    await person.type(field(), 'bern{Enter}')
    await person.clear(field())
    expect(onChange).toHaveBeenLastCalledWith('')
  })

  test('cannot be changed while it is blocked, and shows why', async () => {
    render(<One why="Needs the admin role" />)
    const person = user()
    await person.click(field())
    await person.keyboard('b')
    expect(field().value).toBe('')
    expect(field().dataset['tip']).toBe('Needs the admin role')
    expect(screen.queryByRole('listbox')).toBeNull()
  })

  test('lists at most 100 of many options', async () => {
    render(<One options={Array.from({ length: 1_000 }, (_, at) => ({ value: `node-${at}` }))} />)
    await user().click(field())
    expect(options()).toHaveLength(100)
  })

  test('opens no list without options', async () => {
    render(<One options={[]} />)
    await user().click(field())
    expect(screen.queryByRole('listbox')).toBeNull()
    await user().keyboard('{ArrowDown}')
    expect(announced()).toBeUndefined()
  })

  test('takes name, hint and error from its field', () => {
    render(
      <Field label="Zone" hint="Where the node runs" error="Unknown zone" required>
        {(wire) => <Combobox wire={wire} options={ZONES} value="x" onChange={() => {}} />}
      </Field>,
    )
    const input = screen.getByRole('combobox', { name: 'Zone (required)' })
    expect(input.getAttribute('aria-invalid')).toBe('true')
    expect(input.getAttribute('aria-required')).toBe('true')
    const notes = input.getAttribute('aria-describedby')?.split(' ') ?? []
    expect(notes.map((id) => document.getElementById(id)?.textContent)).toEqual(['Where the node runs', 'Unknown zone'])
  })
})

describe('combobox with options from a server', () => {
  test('requests options once for text typed without a pause', async () => {
    const load = vi.fn(async (text: string) => [{ value: `${text}-1` }, { value: `${text}-2` }])
    render(<One options={load} />)
    await user().type(field(), 'ber')
    expect((await screen.findAllByRole('option')).map(({ textContent }) => textContent)).toEqual(['ber-1', 'ber-2'])
    expect(load.mock.calls.map(([text]) => text)).toEqual(['ber'])
  })

  test('cancels the request for an older text', async () => {
    const signals: AbortSignal[] = []
    const load = vi.fn((text: string, signal: AbortSignal) => {
      signals.push(signal)
      return text === 'b' ? new Promise<never>(() => {}) : Promise.resolve([{ value: text }])
    })
    render(<One options={load} />)
    const person = user()
    await person.type(field(), 'b')
    await vi.waitFor(() => expect(signals).toHaveLength(1), { timeout: 20_000 })
    await person.type(field(), 'e')
    await screen.findByRole('option', { name: 'be' })
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, false])
  })

  test('shows the error of a failed request in place of options', async () => {
    render(<One options={() => Promise.reject(new Error('Registry unreachable'))} />)
    await user().click(field())
    expect(await screen.findByText('Registry unreachable')).toBeTruthy()
  })
})

describe('combobox of several values', () => {
  const chosen = () => screen.queryAllByRole('button').map((button) => button.getAttribute('aria-label'))

  test('collects values as chips that can be removed by name', async () => {
    render(<Several />)
    const person = user()
    await person.type(field(), 'bern{Enter}')
    await person.type(field(), 'ams{Enter}')
    expect(chosen()).toEqual(['Remove bern', 'Remove amsterdam'])
    await person.click(screen.getByRole('button', { name: 'Remove bern' }))
    expect(chosen()).toEqual(['Remove amsterdam'])
  })

  test('no longer offers values that are chosen', async () => {
    render(<Several />)
    const person = user()
    await person.type(field(), 'bern{Enter}')
    await person.click(field())
    expect(options()).toEqual(['amsterdam12 nodes', 'berlin'])
  })

  test('Backspace removes the last value only from an empty field', async () => {
    render(<Several />)
    const person = user()
    await person.type(field(), 'bern{Enter}ams{Enter}be{Backspace}{Backspace}')
    expect(chosen()).toEqual(['Remove bern', 'Remove amsterdam'])
    await person.keyboard('{Backspace}')
    expect(chosen()).toEqual(['Remove bern'])
  })

  test('a comma, Enter or leaving the field ends a free value, without its spaces', async () => {
    render(<Several options={[]} free />)
    const person = user()
    await person.type(field(), ' spa ,pool{Enter}sauna ')
    await person.tab()
    expect(chosen()).toEqual(['Remove spa', 'Remove pool', 'Remove sauna'])
    expect(field().value).toBe('')
  })

  test('holds a value once', async () => {
    render(<Several options={[]} free />)
    await user().type(field(), 'spa,spa,')
    expect(chosen()).toEqual(['Remove spa'])
  })
})
