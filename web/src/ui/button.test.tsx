// @vitest-environment happy-dom
import { render, screen } from '@testing-library/react'
import { describe, expect, test, vi } from 'vitest'
import { Chip } from './badge.tsx'
import { Button } from './button.tsx'
import { IconButton } from './icon-button.tsx'
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
