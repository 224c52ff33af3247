// @vitest-environment happy-dom
import { screen, within } from '@testing-library/react'
import { afterEach, expect, test, vi } from 'vitest'
import { renderPage } from '../queue/testing/page.tsx'
import { operationOf } from './testing/operations.ts'

afterEach(() => vi.unstubAllGlobals())

test('the page of an operation says its title and its outcome once', async () => {
  const operation = operationOf({ state: 'done', title: 'Transfer of s3 to n2', message: 'n2 leads s3.' })
  vi.stubGlobal('fetch', async () => Response.json(operation))
  renderPage(`/operations/${operation.id}`)

  expect(await screen.findAllByText('n2 leads s3.')).toHaveLength(1)
  expect(screen.getAllByText('Transfer of s3 to n2')).toHaveLength(1)
  expect(screen.getAllByText('Done')).toHaveLength(1)
})

test('steps last as long as everywhere: in seconds once they are long', async () => {
  const steps = [{ id: 'confirm', text: 'Majority confirms', state: 'done' as const, milliseconds: 7_842 }]
  const operation = operationOf({
    steps: operationOf({})
      .steps.slice(0, 1)
      .map((step) => ({ ...step, ...steps[0] })),
  })
  vi.stubGlobal('fetch', async () => Response.json(operation))
  renderPage(`/operations/${operation.id}`)

  const list = await screen.findByRole('list', { name: 'Steps' })
  expect(within(list).getByText('7.8 s')).toBeTruthy()
})
