// @vitest-environment happy-dom

import { screen, waitFor, within } from '@testing-library/react'
import { TOPIC_SERIES } from '@vacancy/shared/contract'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { narrowWindow, user } from '../../ui/testing/dom.ts'
import { base64Of } from './payload.ts'
import { meOf, renderPage } from './testing/page.tsx'
import { AT, consumerOf, jobOf, type Sent, serveQueue, statsBody, statsOf, topicOf } from './testing/queue.ts'

// happy-dom has no layout: each element is as high as the visible part of a table.
beforeEach(() => {
  const height = vi.spyOn(HTMLElement.prototype, 'clientHeight', 'get').mockReturnValue(560)
  return () => height.mockRestore()
})
afterEach(() => vi.unstubAllGlobals())

const base64 = (text: string) => base64Of(new TextEncoder().encode(text))
const MARKUP = '<img src=x onerror=alert(1)>'

const ORDERS = statsOf({ ready: 4, dead: 3, oldestReadyMs: 90_000, bytes: 400 })
const TOPICS = [ORDERS, statsOf({ topic: 'mail', paused: true, ready: 1 }), statsOf({ topic: 'sync', consumers: 0 })]
const DEAD = [
  jobOf({ id: 'order-1', lastError: MARKUP }),
  jobOf({ id: 'order-2' }),
  jobOf({ id: 'order-3', lastError: null }),
]
const GROUPS = [
  { group: 'timeout after * ms', count: 140, first: AT, last: AT, sampleId: 'order-2' },
  { group: MARKUP, count: 2, first: AT, last: AT, sampleId: 'order-1' },
]
const HISTORY = [
  { at: AT, event: 'nack', consumer: 'worker-1', error: 'timeout after 30 ms' },
  { at: AT, event: 'dead', consumer: '', error: 'timeout after 30 ms' },
]

const COURSE = { from: '2026-11-20T18:29:30.000Z', to: AT, stepSeconds: 10 }

/** The second page has one more event, and skipped some. */
function tailPage(cursor: string | null) {
  const event = { at: AT, consumer: null, error: null, failures: 0, bytes: 12, head: null }
  if (cursor === null)
    return { cursor: 'a.1', events: [{ ...event, n: 1, event: 'accepted', id: 'order-9' }], skipped: 0 }
  if (cursor !== 'a.1') return { cursor, events: [], skipped: 0 }
  const dead = { ...event, n: 8, event: 'dead', id: MARKUP, error: 'no room' }
  return { cursor: 'a.8', events: [dead], skipped: 6 }
}

const idOf = ({ path }: Sent) => decodeURIComponent(path.split('/').at(-1) ?? '')

/** A queue with three topics, one of which has dead jobs. */
const serve = (over: Parameters<typeof serveQueue>[0] = {}) =>
  serveQueue({
    'GET /api/v1/queue/stats': () => statsBody(TOPICS),
    'GET /api/v1/queue/topics/{topic}/stats': () => ORDERS,
    'GET /api/v1/queue/topics/{topic}': () => topicOf(ORDERS),
    'GET /api/v1/queue/topics/{topic}/jobs': () => ({
      jobs: [jobOf({ id: 'ready-1', state: 'ready', deadAt: null, reason: null, head: base64('{"order":\n1}') })],
      next: null,
    }),
    'GET /api/v1/queue/topics/{topic}/dead': ({ query }) => ({
      jobs: query.get('group') === MARKUP ? DEAD.slice(0, 1) : DEAD,
      next: null,
    }),
    'GET /api/v1/queue/topics/{topic}/dead/groups': () => ({ groups: GROUPS }),
    'GET /api/v1/queue/topics/{topic}/dead/count': ({ query }) => ({
      count: query.get('group') === null ? 142 : 140,
      exact: true,
    }),
    'GET /api/v1/queue/topics/{topic}/jobs/{id}': (sent) => {
      const job = DEAD.find(({ id }) => id === idOf(sent))
      return job && { ...job, history: HISTORY, data: base64('{"order":12345678901234567890}') }
    },
    'GET /api/v1/queue/history': () => ({
      ...COURSE,
      topics: [{ topic: 'orders', ready: [0, 7, 4], deliveryP99: [null, 0.5, 0.042] }],
    }),
    'GET /api/v1/queue/topics/{topic}/history': () => ({
      topic: 'orders',
      ...COURSE,
      series: TOPIC_SERIES.map((name) => ({
        name,
        values: [null, 1, 2],
      })),
    }),
    'GET /api/v1/queue/topics/{topic}/tail': ({ query }) => tailPage(query.get('cursor')),
    'GET /api/v1/queue/consumers': () => ({ consumers: [consumerOf()], next: null }),
    ...over,
  })

const button = (name: string | RegExp) => screen.findByRole('button', { name })
const dialog = () => screen.findByRole('dialog')
const table = (name: string) => screen.findByRole('table', { name })

describe('the list of topics', () => {
  test('shows each topic with its state, and links to it', async () => {
    serve()
    renderPage('/queue')
    const rows = within(await table('All topics'))
    const row = rows.getByRole('row', { name: /^orders/ })
    expect(row.dataset).toMatchObject({ topic: 'orders', state: 'active' })
    const link = (name: string) => within(row).getByRole('link', { name }).getAttribute('href')
    expect(link('orders')).toBe('/queue/topics/orders')
    expect(link('3 dead jobs of orders')).toBe('/queue/topics/orders?state=dead')
    expect(row.textContent).toContain('1 min 30 s')
    expect(rows.getByRole('row', { name: /^mail/ }).dataset['state']).toBe('paused')
    expect(rows.getByRole('row', { name: /^sync/ }).dataset['state']).toBe('idle')
    expect(screen.getByText('3 topics, 5 ready, 3 dead')).toBeTruthy()
  })

  test('filters by keys, and names what it ignores', async () => {
    serve()
    renderPage('/queue?filter=dead%3A%3E0+nonsense%3A1')
    const rows = within(await table('All topics'))
    expect(rows.getAllByRole('row').map((row) => row.dataset['topic'])).toEqual([undefined, 'orders'])
    expect(screen.getByText(/^Ignored: unknown key nonsense/)).toBeTruthy()
  })

  test('has the columns of the link, which is a choice that can be saved', async () => {
    serve()
    renderPage('/queue?columns=dead,bytes,nonsense')
    const heads = within(await table('All topics')).getAllByRole('columnheader')
    expect(heads.map(({ textContent }) => textContent)).toEqual(['Topic', 'Dead', 'Size'])
    expect(screen.getByText('Ignored: unknown column nonsense')).toBeTruthy()
    await user().click(await button('Columns'))
    const boxes = await within(await dialog()).findAllByRole<HTMLInputElement>('checkbox')
    expect(boxes.filter(({ checked }) => checked)).toHaveLength(3)
  })

  test('without topics explains what a topic is and how to create one', async () => {
    serve({ 'GET /api/v1/queue/stats': () => statsBody([]) })
    renderPage('/queue')
    expect(await screen.findByText(/^No topics yet/)).toBeTruthy()
    expect(screen.getByText(/producer\/topic/).textContent).toContain('{"topic":"orders"}')
  })

  test('a control plane without a queue reports it', async () => {
    serve({ 'GET /api/v1/queue/stats': () => undefined })
    renderPage('/queue')
    expect(await screen.findByText('This control plane does not serve a job queue.')).toBeTruthy()
    expect(screen.queryByRole('button', { name: 'New topic' })).toBeNull()
  })

  test('is a list of cards on a phone', async () => {
    narrowWindow()
    serve()
    renderPage('/queue')
    const list = await screen.findByRole('list', { name: 'All topics' })
    expect(
      within(list)
        .getAllByRole('link')
        .map(({ textContent }) => textContent),
    ).toEqual(['orders', 'mail', 'sync'])
  })

  test('a viewer sees what is missing for a change', async () => {
    serve()
    renderPage('/queue', meOf('viewer'))
    expect((await button('New topic')).getAttribute('data-tip')).toBe('Needs the admin role')
    expect((await button('Submit job')).getAttribute('data-tip')).toBe('Needs the operator role')
  })

  test('creates a topic and opens it', async () => {
    const changes = serve({
      'PUT /api/v1/queue/topics/{topic}': () => ({
        ...{ status: 'success', topic: 'new-one', created: true },
        config: topicOf(ORDERS).config,
      }),
    })
    renderPage('/queue')
    const person = user()
    await person.click(await button('New topic'))
    const form = within(await dialog())
    const name = form.getByRole('textbox', { name: /^Name/ })
    await person.type(name, 'orders')
    expect(form.getByRole('button', { name: 'Create orders' }).getAttribute('aria-disabled')).toBe('true')
    await person.clear(name)
    await person.type(name, 'new-one')
    await person.click(form.getByText('Settings'))
    await person.clear(form.getByRole('textbox', { name: 'Attempts' }))
    await person.type(form.getByRole('textbox', { name: 'Attempts' }), '3')
    await person.click(form.getByRole('button', { name: 'Create new-one' }))
    await waitFor(() => expect(location.pathname).toBe('/queue/topics/new-one'))
    expect(changes).toMatchObject([{ path: '/api/v1/queue/topics/new-one', body: { config: { max_attempts: 3 } } }])
  })
})

describe('a topic', () => {
  test('has its numbers, a tab for each state, and the beginning of payloads', async () => {
    serve()
    renderPage('/queue/topics/orders')
    const rows = within(await table('Ready jobs'))
    expect(rows.getByRole('row', { name: /^ready-1/ }).dataset).toMatchObject({ job: 'ready-1', state: 'ready' })
    expect(rows.getByText('{"order": 1}')).toBeTruthy()
    const tabs = within(screen.getByRole('navigation', { name: 'Topic orders' }))
    expect(tabs.getByRole('link', { current: 'page' }).textContent).toBe('Ready4')
    expect(tabs.getByRole('link', { name: 'Dead 3' }).getAttribute('href')).toBe('/queue/topics/orders?state=dead')
  })

  test('that does not exist is a page with similar ones', async () => {
    serve({ 'GET /api/v1/queue/topics/{topic}/stats': () => undefined })
    renderPage('/queue/topics/order')
    expect(await screen.findByRole('heading', { level: 1, name: 'Topic not found' })).toBeTruthy()
    expect((await screen.findByRole('link', { name: 'orders' })).getAttribute('href')).toBe('/queue/topics/orders')
  })

  test('a purge needs the states, the name and a reason', async () => {
    const changes = serve({
      'POST /api/v1/queue/topics/{topic}/purge': () => ({ status: 'success', removed: 4 }),
    })
    renderPage('/queue/topics/orders')
    const person = user()
    await person.click(await button('More'))
    await person.click(await screen.findByRole('menuitem', { name: 'Purge…' }))
    const form = within(await dialog())
    const confirm = form.getByRole('button', { name: 'Purge orders' })
    expect(confirm.getAttribute('data-tip')).toBe('Choose at least one state')
    await person.click(form.getByRole('checkbox', { name: 'Ready: 4 jobs' }))
    await person.type(form.getByRole('textbox', { name: /^Type orders/ }), 'orders')
    expect(confirm.getAttribute('data-tip')).toMatch(/^Enter a reason/)
    await person.type(form.getByRole('textbox', { name: /^Reason/ }), 'test data')
    await person.click(confirm)
    await waitFor(() => expect(screen.queryByRole('dialog')).toBeNull())
    expect(changes).toMatchObject([{ body: { states: ['ready'], reason: 'test data' } }])
  })

  test('in development one button is enough to delete it', async () => {
    const changes = serve({ 'DELETE /api/v1/queue/topics/{topic}': () => ({ status: 'success', deletedJobs: 7 }) })
    renderPage('/queue/topics/orders', meOf('admin', 'development'))
    const person = user()
    await person.click(await button('More'))
    await person.click(await screen.findByRole('menuitem', { name: 'Delete topic…' }))
    await person.click(within(await dialog()).getByRole('button', { name: 'Delete orders' }))
    await waitFor(() => expect(location.pathname).toBe('/queue'))
    expect(changes[0]?.query.get('force')).toBe('1')
  })

  test('its configuration sends what was changed', async () => {
    const changes = serve({
      'PUT /api/v1/queue/topics/{topic}': () => ({
        ...{ status: 'success', topic: 'orders', created: false },
        config: topicOf(ORDERS).config,
      }),
    })
    renderPage('/queue/topics/orders?state=config')
    const person = user()
    const attempts = await screen.findByRole('textbox', { name: 'Attempts' })
    expect((await button('Save configuration')).getAttribute('data-tip')).toBe('Nothing is changed')
    await person.clear(attempts)
    await person.type(attempts, '101')
    expect(screen.getByText('Enter 1 to 100')).toBeTruthy()
    await person.clear(attempts)
    await person.type(attempts, '9')
    await person.click(screen.getByRole('checkbox', { name: /^One delivery at a time/ }))
    await person.click(await button('Save configuration'))
    await waitFor(() => expect(changes).toMatchObject([{ body: { config: { max_attempts: 9, ordered: true } } }]))
  })

  test('a consumer can be disconnected', async () => {
    const changes = serve({ 'DELETE /api/v1/queue/consumers/{id}': () => ({ status: 'success', id: 'c-1' }) })
    renderPage('/queue/topics/orders?state=consumers')
    const person = user()
    await person.click(await button('Disconnect… worker-1'))
    await person.click(within(await dialog()).getByRole('button', { name: 'Disconnect c-1' }))
    await waitFor(() => expect(changes).toMatchObject([{ path: '/api/v1/queue/consumers/c-1' }]))
  })
})

describe('dead jobs', () => {
  test('are grouped by error, and errors are text', async () => {
    serve()
    const { container } = renderPage('/queue/topics/orders?state=dead')
    const rows = within(await table('Errors')).getAllByRole('row')
    expect(rows.slice(1).map((row) => row.dataset['group'])).toEqual(['timeout after * ms', MARKUP])
    await table('Dead jobs')
    expect(container.querySelector('img')).toBeNull()
  })

  test('a group shows its jobs, and again all of them', async () => {
    serve()
    renderPage('/queue/topics/orders?state=dead')
    const person = user()
    await person.click(await screen.findByRole('link', { name: MARKUP }))
    await waitFor(() => expect(screen.queryByText('order-2')).toBeNull())
    expect(new URLSearchParams(location.search).get('group')).toBe(MARKUP)
    await person.click(await button('Show all errors'))
    expect(await screen.findByText('order-2')).toBeTruthy()
  })

  test('a redrive of a group names how many and where to, and moves them in one request', async () => {
    const changes = serve({
      'POST /api/v1/queue/topics/{topic}/dead/redrive': (sent) => ({
        ...{ status: 'success', missing: [] },
        redriven: changes.indexOf(sent) === 0 ? 140 : 0,
      }),
    })
    renderPage('/queue/topics/orders?state=dead')
    const person = user()
    await person.click(await button('Redrive… timeout after * ms'))
    await person.click(await within(await dialog()).findByRole('button', { name: 'Redrive 140 jobs to orders' }))
    await waitFor(() => expect(screen.queryByRole('dialog')).toBeNull())
    expect(changes[0]?.body).toMatchObject({ filter: { group: 'timeout after * ms' }, limit: 10_000 })
    expect(await screen.findByText('140 jobs redriven to orders')).toBeTruthy()
  })

  test('more than ten thousand need a reason and move at a rate, with progress on the page', async () => {
    let state: 'running' | 'paused' | 'cancelled' | undefined
    const view = () => ({
      ...{ topic: 'orders', to: 'sync', reason: '', by: 'ana', filter: {}, ratePerSec: 1_000, total: 25_000 },
      ...{ state, left: 5_000, redriven: 20_000, conflicts: ['order-9'], startedAt: AT, endedAt: null },
    })
    const become = (next: typeof state) => () => {
      state = next
      return view()
    }
    const changes = serve({
      'GET /api/v1/queue/topics/{topic}/dead/count': () => ({ count: 25_000, exact: true }),
      'GET /api/v1/queue/topics/{topic}/redrive': () => ({ redrive: state === undefined ? null : view() }),
      'POST /api/v1/queue/topics/{topic}/redrive': become('running'),
      'POST /api/v1/queue/topics/{topic}/redrive/pause': become('paused'),
      'POST /api/v1/queue/topics/{topic}/redrive/cancel': become('cancelled'),
    })
    renderPage('/queue/topics/orders?state=dead')
    const person = user()
    await person.click(await button('Redrive dead…'))
    const form = within(await dialog())
    await person.selectOptions(form.getByRole('combobox', { name: 'To topic' }), 'sync')
    const confirm = await form.findByRole('button', { name: /^Redrive 25.000 jobs to sync$/ })
    expect(form.queryByRole('option', { name: 'At once' })).toBeNull()
    await person.selectOptions(form.getByRole('combobox', { name: 'Speed' }), '1000')
    expect(confirm.getAttribute('data-tip')).toMatch(/^Enter a reason/)
    await person.type(form.getByRole('textbox', { name: /^Reason/ }), 'fixed the parser')
    await person.click(confirm)
    const strip = within(await screen.findByRole('region', { name: 'Redrive of orders' }))
    expect(changes[0]?.body).toEqual({ filter: {}, ratePerSec: 1_000, to: 'sync', reason: 'fixed the parser' })
    expect(strip.getByRole('progressbar').getAttribute('aria-valuenow')).toBe('80')
    expect(strip.getByText('order-9')).toBeTruthy()
    await person.click(strip.getByRole('button', { name: 'Pause redrive' }))
    await strip.findByRole('button', { name: 'Resume redrive' })
    await person.click(strip.getByRole('button', { name: 'Cancel redrive' }))
    expect(await strip.findByText('Canceled')).toBeTruthy()
  })

  test('selected ones are redriven by id', async () => {
    const changes = serve({
      'POST /api/v1/queue/topics/{topic}/dead/redrive': () => ({
        status: 'success',
        redriven: 1,
        missing: ['order-2'],
      }),
    })
    renderPage('/queue/topics/orders?state=dead')
    const person = user()
    await person.click(await screen.findByRole('checkbox', { name: 'Select order-1' }))
    await person.click(screen.getByRole('checkbox', { name: 'Select order-2' }))
    await person.click(await button('Redrive 2 selected…'))
    await person.click(within(await dialog()).getByRole('button', { name: 'Redrive 2 jobs to orders' }))
    expect(await screen.findByText('1 job had left the dead list already:')).toBeTruthy()
    expect(changes).toMatchObject([{ body: { ids: ['order-1', 'order-2'] } }])
  })

  test('are deleted with the name of the topic and a reason', async () => {
    const changes = serve({
      'DELETE /api/v1/queue/topics/{topic}/dead': () => ({ status: 'success', removed: 142 }),
    })
    renderPage('/queue/topics/orders?state=dead')
    const person = user()
    await person.click(await button('Delete matching…'))
    const form = within(await dialog())
    await person.type(form.getByRole('textbox', { name: /^Type orders/ }), 'orders')
    await person.type(form.getByRole('textbox', { name: /^Reason/ }), 'cannot be repaired')
    await person.click(form.getByRole('button', { name: 'Delete 142 jobs' }))
    await waitFor(() => expect(changes).toMatchObject([{ body: { filter: {}, reason: 'cannot be repaired' } }]))
  })
})

describe('a job', () => {
  test('opens beside the list; j and k step through it, Escape closes it', async () => {
    serve()
    renderPage('/queue/topics/orders?state=dead')
    const person = user()
    await person.click(await screen.findByRole('link', { name: 'order-1' }))
    const heading = (id: string) => screen.findByRole('heading', { level: 2, name: `Job ${id}` })
    await waitFor(async () => expect(document.activeElement).toBe(await heading('order-1')))
    await person.keyboard('j')
    await heading('order-2')
    await person.keyboard('j')
    await heading('order-3')
    await person.keyboard('k')
    await heading('order-2')
    expect(new URLSearchParams(location.search).get('job')).toBe('order-2')
    await person.keyboard('{Escape}')
    await waitFor(() => expect(screen.queryByRole('heading', { level: 2, name: /^Job / })).toBeNull())
  })

  test('has a page of its own, with payload, error and timeline', async () => {
    serve()
    const { container } = renderPage('/queue/topics/orders/jobs/order-1')
    // As submitted: a number of this size would lose digits if it were read.
    expect(await screen.findByText(/"order": 12345678901234567890/)).toBeTruthy()
    expect(screen.getByText(MARKUP)).toBeTruthy()
    expect(container.querySelector('img')).toBeNull()
    const timeline = within(screen.getByRole('region', { name: 'Timeline' })).getAllByRole('listitem')
    expect(timeline.map((item) => item.dataset['event'])).toEqual(['submitted', 'nack', 'dead'])
    await user().click(screen.getByRole('tab', { name: 'Hex' }))
    expect(screen.getByRole('tabpanel').textContent).toContain('00000000  7b 22 6f')
  })

  test('that is not known any more has a way back', async () => {
    serve()
    renderPage('/queue/topics/orders/jobs/long-gone')
    expect(await screen.findByRole('heading', { level: 1, name: 'Job not found' })).toBeTruthy()
    expect((await screen.findByRole('link', { name: 'Open orders' })).getAttribute('href')).toBe('/queue/topics/orders')
  })

  test('is edited and submitted as a new one', async () => {
    const changes = serve({
      'POST /api/v1/queue/topics/{topic}/jobs': () => ({
        ...{ status: 'success', topic: 'orders', accepted: 1, duplicates: 0 },
      }),
    })
    renderPage('/queue/topics/orders/jobs/order-1')
    const person = user()
    await person.click(await button('Edit and submit as new'))
    const form = within(await dialog())
    const payload = form.getByRole<HTMLTextAreaElement>('textbox', { name: 'Payload' })
    expect(payload.value).toBe('{"order":12345678901234567890}')
    await person.clear(payload)
    await person.type(payload, '{{"order":2')
    const confirm = form.getByRole('button', { name: 'Submit to orders' })
    expect(confirm.getAttribute('data-tip')).toMatch(/^Not valid JSON/)
    await person.type(payload, '}')
    await person.selectOptions(form.getByRole('combobox', { name: 'Priority' }), '7')
    await person.type(form.getByRole('textbox', { name: 'Delay in seconds' }), '60')
    await person.click(confirm)
    await waitFor(() => expect(screen.queryByRole('dialog')).toBeNull())
    const job = { id: 'order-1-retry-1', topic: 'orders', data: base64('{"order":2}'), priority: 7, delay_ms: 60_000 }
    expect(changes).toMatchObject([{ body: { job } }])
    expect(screen.getByRole('link', { name: 'Open job' }).getAttribute('href')).toBe(
      '/queue/topics/orders/jobs/order-1-retry-1',
    )
  })

  test('with an id that its topic knows is not submitted', async () => {
    serve({
      'POST /api/v1/queue/topics/{topic}/jobs': () => ({
        ...{ status: 'success', topic: 'orders', accepted: 0, duplicates: 1 },
      }),
    })
    renderPage('/queue/topics/orders')
    const person = user()
    await person.click(await button('Submit job'))
    const form = within(await dialog())
    await person.click(form.getByRole('radio', { name: 'None' }))
    await person.click(form.getByRole('button', { name: 'Submit to orders' }))
    expect(await form.findByText(/nothing was submitted/)).toBeTruthy()
  })
})

describe('the course of a topic', () => {
  test('the list of topics has a small line for each that has values', async () => {
    serve()
    renderPage('/queue')
    const rows = within(await table('All topics'))
    expect(
      await rows.findByRole('img', { name: 'Ready jobs of orders in the last ten minutes: 0 to 7, last 4' }),
    ).toBeTruthy()
    expect(rows.getAllByRole('img', { name: /^Ready jobs of/ })).toHaveLength(1)
    const latency = rows.getByRole('img', {
      name: /^Time to delivery of orders, p99, in the last ten minutes: 42.ms to 500.ms, last 42.ms$/,
    })
    expect(latency.parentElement?.textContent).toMatch(/42.ms$/)
  })

  test('charts have rates, waiting jobs, the oldest age and latencies, also as tables', async () => {
    serve()
    renderPage('/queue/topics/orders?state=charts')
    for (const title of ['Rates', 'Waiting', 'Oldest ready', 'Time to delivery', 'Handling time', 'Dead'])
      expect(await button(`Show ${title} as table`)).toBeTruthy()
    expect((await button('15 minutes')).getAttribute('aria-pressed')).toBe('false')
    await user().click(await button('15 minutes'))
    await waitFor(() => expect(location.search).toContain('minutes=15'))
  })
})

describe('the live tail', () => {
  test('adds events as they happen, newest first, and counts what it skipped', async () => {
    serve()
    renderPage('/queue/topics/orders?state=tail')
    const rows = within(await table('Live tail'))
    expect(rows.getByRole('row', { name: /order-9/ }).dataset['event']).toBe('accepted')
    await waitFor(
      () => expect(rows.getAllByRole('link').map((link) => link.textContent)).toEqual([MARKUP, 'order-9']),
      {
        timeout: 3_000,
      },
    )
    expect(document.querySelector('main img, table img')).toBeNull()
    expect((await screen.findByText(/6 events not shown/)).getAttribute('role')).toBe('status')
    await user().click(await button('Pause'))
    expect(await button('Resume')).toBeTruthy()
  })
})

describe('saved views', () => {
  const view = (name: string, filter: string) => ({ name, filter, sort: '', columns: null })

  test('of jobs open the same list in the topic that is shown', async () => {
    serve()
    const me = meOf()
    me.preferences.jobs.views = [view('timeouts', 'state=dead&error=timeout')]
    renderPage('/queue/topics/mail?state=dead&error=bad&job=order-1', me)
    await user().click(await button('Views'))
    await user().click(await screen.findByRole('menuitem', { name: 'Save or delete views…' }))
    const shown = within(await dialog())
    expect(shown.getByText('state: dead, error: bad')).toBeTruthy()
    expect(shown.getByText('state: dead, error: timeout')).toBeTruthy()
    await user().click(shown.getByRole('button', { name: 'Open timeouts' }))
    await waitFor(() => expect(location.href).toMatch(/\/queue\/topics\/mail\?state=dead&error=timeout$/))
  })

  test('of topics open the list with filter and sort', async () => {
    serve()
    const me = meOf()
    me.preferences.queue.views = [{ ...view('failing', 'dead:>0'), sort: 'dead:down' }]
    renderPage('/queue', me)
    await user().click(await button('Views'))
    await user().click(await screen.findByRole('menuitem', { name: 'failing' }))
    await waitFor(() => expect(location.href).toMatch(/\/queue\?filter=dead%3A%3E0&sort=dead%3Adown$/))
  })
})
