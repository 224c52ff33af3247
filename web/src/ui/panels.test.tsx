// @vitest-environment happy-dom
import './testing/dom.ts'
import { render, screen, within } from '@testing-library/react'
import type { ComponentProps } from 'react'
import { describe, expect, test, vi } from 'vitest'
import { ApiProblem } from '../lib/problem.ts'
import { AttentionContext, Page } from './page.tsx'
import { Panel, type PanelQuery, StaleContext } from './panel.tsx'
import { user } from './testing/dom.ts'

type Data = readonly string[]
type Some = Partial<ComponentProps<typeof Panel<Data>>>

const query = (parts: Partial<PanelQuery<Data>> = {}): PanelQuery<Data> => ({
  data: undefined,
  error: null,
  isPending: false,
  isFetching: false,
  refetch: () => {},
  ...parts,
})

const panel = (props: Some = {}) => (
  <Panel<Data> title="Members" isEmpty={(data) => data.length === 0} empty={{ text: 'No members yet.' }} {...props}>
    {(data) => <p>members: {data.join(', ')}</p>}
  </Panel>
)
const region = () => screen.getByRole('region', { name: 'Members' })
const state = () => region().dataset['panelState']

const problem = { title: '', hint: 'Start it.', requestId: 'r-17' }
const unreachable = new ApiProblem('GET /api/v1/nodes', {
  ...problem,
  status: 503,
  code: 'unreachable',
  detail: 'The node is unreachable.',
})

describe('panel', () => {
  test('is a region named by its heading', () => {
    render(panel({ query: query({ data: ['n1'] }) }))
    expect(within(region()).getByRole('heading', { level: 2, name: 'Members' })).toBeTruthy()
    expect(state()).toBe('ready')
    expect(region().textContent).toContain('members: n1')
  })

  test('keeps its heading for screen readers where the page shows the same', () => {
    render(panel({ query: query({ data: ['n1'] }), hideTitle: true, level: 3 }))
    expect(screen.getByRole('heading', { level: 3, name: 'Members' })).toBeTruthy()
  })

  test('is busy and announces loading until the first data', () => {
    const { rerender } = render(panel({ query: query({ isPending: true }) }))
    expect(region().getAttribute('aria-busy')).toBe('true')
    expect(screen.getByRole('status', { name: 'Loading' })).toBeTruthy()
    rerender(panel({ query: query({ data: ['n1'] }) }))
    expect(region().getAttribute('aria-busy')).toBeNull()
    expect(screen.queryByRole('status')).toBeNull()
  })

  test('explains an empty result', () => {
    render(panel({ query: query({ data: [] }), empty: { text: 'No members yet.', code: 'vacancy cluster add' } }))
    expect(state()).toBe('empty')
    expect(screen.getByText('No members yet.')).toBeTruthy()
    expect(screen.getByText('vacancy cluster add')).toBeTruthy()
  })

  test('offers to clear a filter that matches nothing', async () => {
    const onClear = vi.fn()
    render(panel({ query: query({ data: [] }), filtered: { text: 'No member matches.', onClear } }))
    expect(state()).toBe('filtered')
    expect(screen.queryByText('No members yet.')).toBeNull()
    await user().click(screen.getByRole('button', { name: 'Clear filters' }))
    expect(onClear).toHaveBeenCalledOnce()
  })

  test('reports a failed request as an alert with code, hint and retry', async () => {
    const refetch = vi.fn()
    render(panel({ query: query({ error: unreachable, refetch }) }))
    expect(state()).toBe('error')
    const alert = screen.getByRole('alert')
    expect(alert.textContent).toContain('The node is unreachable.')
    expect(alert.textContent).toContain('Start it.')
    expect(alert.textContent).toContain('GET /api/v1/nodes · 503 unreachable · request r-17')
    await user().click(within(alert).getByRole('button', { name: 'Retry' }))
    expect(refetch).toHaveBeenCalledOnce()
  })

  test('does not retry again while a retry runs', async () => {
    const refetch = vi.fn()
    render(panel({ query: query({ error: unreachable, refetch, isFetching: true }) }))
    await user().click(screen.getByRole('button', { name: 'Retry' }))
    expect(refetch).not.toHaveBeenCalled()
  })

  test('keeps old data when a refresh fails, and reports the failure', () => {
    render(panel({ query: query({ data: ['n1'], error: unreachable }) }))
    expect(state()).toBe('stale')
    expect(screen.getByRole('status').textContent).toContain('Refresh failed: The node is unreachable.')
    expect(region().textContent).toContain('members: n1')
  })

  test('keeps old data while the control plane is disconnected', () => {
    render(<StaleContext value={true}>{panel({ query: query({ data: ['n1'] }) })}</StaleContext>)
    expect(state()).toBe('stale')
    expect(region().textContent).toContain('members: n1')
  })

  test('names the missing role instead of loading', () => {
    render(panel({ query: query({ isPending: true }), denied: 'Needs the admin role.' }))
    expect(state()).toBe('denied')
    expect(screen.getByText('Needs the admin role.')).toBeTruthy()
    expect(screen.queryByRole('status')).toBeNull()
  })

  test('shows the message of a response with status 403 without a retry', () => {
    const forbidden = new ApiProblem('GET /x', { ...problem, status: 403, code: 'forbidden', detail: 'Admins only.' })
    render(panel({ query: query({ error: forbidden }) }))
    expect(state()).toBe('denied')
    expect(screen.getByText('Admins only.')).toBeTruthy()
    expect(screen.queryByRole('button', { name: 'Retry' })).toBeNull()
  })

  test('names the first four sources that did not respond, and lists all', () => {
    const missing = Array.from({ length: 6 }, (_, at) => ({
      source: `n${at}`,
      code: 'timeout',
      message: 'no response',
      since: '2026-11-23T10:00:00Z',
    }))
    render(panel({ query: query({ data: ['n9'] }), missing: () => missing, sources: () => 7 }))
    expect(state()).toBe('partial')
    const strip = screen.getByRole('status')
    expect(strip.textContent).toContain('n3 (no response), …')
    expect(within(strip).getAllByRole('listitem')).toHaveLength(6)
    expect(region().textContent).toContain('members: n9')
  })

  test('that fails to render leaves the page working, and can be loaded again', async () => {
    const log = vi.spyOn(console, 'error').mockImplementation(() => {})
    let isBroken = true
    function Content() {
      if (isBroken) throw new Error('no such column')
      return <p>repaired</p>
    }
    render(
      <>
        <Panel title="Members">
          <Content />
        </Panel>
        <p>other panel</p>
      </>,
    )
    expect(screen.getByRole('alert').textContent).toContain('no such column')
    expect(screen.getByText('other panel')).toBeTruthy()
    isBroken = false
    await user().click(screen.getByRole('button', { name: 'Reload panel' }))
    expect(screen.getByText('repaired')).toBeTruthy()
    log.mockRestore()
  })
})

const main = () => screen.getByRole('main', { name: 's3' })

describe('page', () => {
  test('is the main landmark, named by its heading', () => {
    render(
      <Page id="shard" title="s3" where="Shards" ready crumbs={[{ href: '/shards', label: 'Shards' }]}>
        members
      </Page>,
    )
    expect(within(main()).getByRole('heading', { level: 1, name: 's3' })).toBeTruthy()
    const crumbs = screen.getByRole('navigation', { name: 'Breadcrumb' })
    expect(within(crumbs).getByRole('link', { name: 'Shards' }).getAttribute('href')).toBe('/shards')
    expect(document.title).toBe('s3 · Shards · Vacancy')
  })

  test('has no breadcrumb at the top level', () => {
    render(
      <Page id="shards" title="s3" ready crumbs={[]}>
        list
      </Page>,
    )
    expect(screen.queryByRole('navigation')).toBeNull()
    expect(document.title).toBe('s3 · Vacancy')
  })

  test('counts what needs attention in the window title', () => {
    render(
      <AttentionContext value={2}>
        <Page id="shard" title="s3" ready>
          members
        </Page>
      </AttentionContext>,
    )
    expect(document.title).toBe('(2) s3 · Vacancy')
  })

  test('is ready once its first data is rendered', () => {
    const page = (ready: boolean) => (
      <Page id="shard" title="s3" ready={ready}>
        members
      </Page>
    )
    const { rerender } = render(page(false))
    expect(main().dataset['ready']).toBe('false')
    rerender(page(true))
    expect(main().dataset['ready']).toBe('true')
  })
})
