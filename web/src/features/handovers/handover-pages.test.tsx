// @vitest-environment happy-dom
import { screen, within } from '@testing-library/react'
import type { HandoverPlan, HandoverView } from '@vacancy/shared/contract'
import { afterEach, expect, test, vi } from 'vitest'
import { user } from '../../ui/testing/dom.ts'
import { meOf, renderPage } from '../queue/testing/page.tsx'

afterEach(() => vi.unstubAllGlobals())

const PLAN: HandoverPlan = {
  kind: 'prepare',
  scope: { kind: 'zone', name: 'eu-1' },
  back: null,
  title: 'Hand over the leaders of zone eu-1',
  items: [
    { shard: 's1', from: 'n1', to: 'n2', blocked: '', warnings: [] },
    { shard: 's2', from: 'n1', to: null, blocked: 'no voter is outside zone eu-1', warnings: [] },
  ],
  moves: 1,
  stops: [],
  worstPauseMs: 420,
  reasonRequired: true,
  environment: { label: 'PRODUCTION', kind: 'production' },
  basis: 'basis-1',
}
const STARTED: HandoverView = {
  id: 'handover_1',
  kind: 'prepare',
  scope: PLAN.scope,
  back: null,
  title: PLAN.title,
  by: 'ana',
  reason: 'new kernel',
  state: 'stopped',
  message: 's1: n1 answered 409',
  createdAt: '2026-11-20T18:30:00.000Z',
  endedAt: null,
  stops: [],
  items: [
    { shard: 's1', from: 'n1', to: 'n2', state: 'failed', operation: 'op_1', message: 'n1 answered 409', attempts: 1 },
    {
      shard: 's2',
      from: 'n1',
      to: null,
      state: 'stays',
      operation: null,
      message: PLAN.items[1]?.blocked ?? '',
      attempts: 0,
    },
  ],
}

/** @returns what was sent, `METHOD path` with its body */
function serve(answers: { readonly [request: string]: unknown }): { name: string; body: unknown }[] {
  const sent: { name: string; body: unknown }[] = []
  vi.stubGlobal('fetch', async (input: string, { method = 'GET', body }: RequestInit = {}) => {
    const name = `${method} ${new URL(input, location.href).pathname}`
    sent.push({ name, body: typeof body === 'string' ? JSON.parse(body) : undefined })
    return Response.json(answers[name], { status: name in answers ? 200 : 404 })
  })
  return sent
}

test('a plan names what moves and what stays, and starts with a reason', async () => {
  const sent = serve({
    'POST /api/v1/handovers/plan': PLAN,
    'POST /api/v1/handovers': STARTED,
    'GET /api/v1/handovers/handover_1': STARTED,
  })
  renderPage('/operations/handovers/new?zone=eu-1')
  const start = await screen.findByRole('button', { name: /^Hand over 1 leader/ })

  expect(screen.getByText(/^1 leader moves, one after another/).textContent).toMatch(/at worst 420.ms/)
  expect(screen.getByText('1 shard keeps the leader and would lose it in a restart')).toBeTruthy()
  const rows = within(screen.getByRole('table', { name: 'Leaders' })).getAllByRole('row')
  expect(rows[1]?.textContent).toContain('no voter is outside zone eu-1')

  const person = user()
  await person.click(start)
  expect(sent.map(({ name }) => name)).not.toContain('POST /api/v1/handovers')
  await person.type(screen.getByRole('textbox', { name: /^Reason/ }), 'new kernel')
  await person.keyboard('{Control>}{Enter}{/Control}')

  // The started one, with what stopped it.
  expect(await screen.findByText('s1: n1 answered 409')).toBeTruthy()
  expect(sent.find(({ name }) => name === 'POST /api/v1/handovers')?.body).toEqual({
    request: { zone: 'eu-1' },
    basis: 'basis-1',
    reason: 'new kernel',
  })
})

test('a stopped handover continues; one that is over leads back', async () => {
  const done: HandoverView = {
    ...STARTED,
    state: 'done',
    message: '',
    items: STARTED.items.map((item) => (item.state === 'failed' ? { ...item, state: 'done' } : item)),
  }
  serve({ 'GET /api/v1/handovers/handover_1': STARTED, 'POST /api/v1/handovers/handover_1/continue': done })
  renderPage('/operations/handovers/handover_1')

  await user().click(await screen.findByRole('button', { name: 'Continue' }))

  const back = await screen.findByRole('link', { name: 'Bring leaders back…' })
  expect(back.getAttribute('href')).toBe('/operations/handovers/new?back=handover_1')
  expect(screen.getByText('1 leader is still in zone eu-1: see below.')).toBeTruthy()
})

test('a zone without leaders is called safe to restart only while every shard keeps its majority without it', async () => {
  const done: HandoverView = { ...STARTED, state: 'done', message: '', items: [] }
  const stops = [{ shard: 's7', writes: 'stop' as const, reads: 'continue' as const, votersLeft: 1, majority: 2 }]
  serve({ 'GET /api/v1/handovers/handover_1': { ...done, stops } })
  const { unmount } = renderPage('/operations/handovers/handover_1')
  expect(await screen.findByText(/cannot be restarted as a whole/)).toBeTruthy()
  expect(screen.getByText('s7: writes stop, 1 voter left, 2 needed')).toBeTruthy()
  unmount()

  serve({ 'GET /api/v1/handovers/handover_1': done })
  renderPage('/operations/handovers/handover_1')
  expect(await screen.findByText(/It can be restarted/)).toBeTruthy()
})

test('a viewer sees the plan and the role it takes', async () => {
  serve({ 'POST /api/v1/handovers/plan': PLAN })
  renderPage('/operations/handovers/new?zone=eu-1', meOf('viewer'))

  const start = await screen.findByRole('button', { name: /^Hand over 1 leader/ })
  expect(start.getAttribute('aria-disabled')).toBe('true')
  expect(screen.getAllByText(/admin role/).length).toBeGreaterThan(0)
})

test('a zone without leaders asks for no reason and has no button, and says whether it can be restarted', async () => {
  serve({ 'POST /api/v1/handovers/plan': { ...PLAN, scope: { kind: 'zone', name: 'zone-1' }, items: [], moves: 0 } })
  renderPage('/operations/handovers/new?zone=zone-1')

  expect(await screen.findByText(/^No leader is left in zone-1. It can be restarted/)).toBeTruthy()
  expect(screen.queryByRole('button', { name: /^Hand over/ })).toBeNull()
  expect(screen.queryByRole('textbox', { name: /^Reason/ })).toBeNull()
})
