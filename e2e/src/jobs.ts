/** A topic of the job queue with ready and dead jobs, made as producers and consumers make them. */

import type { APIRequestContext, Browser } from '@playwright/test'
import type { State } from './console.ts'

export const JOBS_TOPIC = 'hotel-sync'

/** Errors of dead jobs with how many jobs have them. Details differ, so that they are grouped. */
const ERRORS = [
  { jobs: 12, error: (n: number) => `timeout after ${3_000 + n} ms` },
  { jobs: 5, error: (n: number) => `unknown property "p-${n}"` },
  { jobs: 1, error: () => '<b>bad</b> payload' },
] as const
const DEAD_JOBS = ERRORS.reduce((sum, { jobs }) => sum + jobs, 0)
const READY_JOBS = 3

/** Makes the topic unless it exists. Its consumer has left afterwards. */
export async function makeJobs(browser: Browser, url: string, state: State): Promise<void> {
  const context = await browser.newContext({ baseURL: url, storageState: state })
  const { request } = context
  if ((await request.get(`/api/v1/queue/topics/${JOBS_TOPIC}`)).status() === 404) {
    const { csrf } = (await (await request.get('/api/v1/me')).json()) as { csrf: string }
    const headers = { 'x-csrf': csrf }
    const config = { max_attempts: 1, ack_deadline_ms: 60_000 }
    await expectOk(request.put(`/api/v1/queue/topics/${JOBS_TOPIC}`, { data: { config }, headers }))
    await submit(request, headers, 0, DEAD_JOBS)
    const body = { name: `consumer ${Date.now()}`, role: 'consumer' }
    const answer = await expectOk(request.post('/api/v1/tokens', { data: body, headers }))
    const { value } = (await answer.json()) as { value: string }
    await rejectAll(url, value)
    await submit(request, headers, DEAD_JOBS, READY_JOBS)
  }
  await context.close()
}

async function submit(request: APIRequestContext, headers: { 'x-csrf': string }, from: number, jobs: number) {
  const data = (n: number) => Buffer.from(JSON.stringify({ hotel: `h-${n}`, rooms: n, note: 'late check-in' }))
  const list = Array.from({ length: jobs }, (_, at) => ({
    id: `job-${from + at + 1}`,
    data: data(from + at).toString('base64'),
  }))
  const body = { topic: JOBS_TOPIC, jobs: list }
  await expectOk(request.post(`/api/v1/queue/topics/${JOBS_TOPIC}/jobs`, { data: body, headers }))
}

async function expectOk(sent: ReturnType<APIRequestContext['get']>) {
  const answer = await sent
  if (!answer.ok()) throw new Error(`${answer.url()} answered ${answer.status()}: ${await answer.text()}`)
  return answer
}

/** Consumes all dead-to-be jobs and fails each with its error. */
async function rejectAll(url: string, token: string): Promise<void> {
  const errors = ERRORS.flatMap(({ jobs, error }) => Array.from({ length: jobs }, (_, n) => error(n)))
  const socket = new WebSocket(`${url.replace('http', 'ws')}/ws?token=${encodeURIComponent(token)}`)
  const send = (message: object) => socket.send(JSON.stringify(message))
  await new Promise<void>((resolve, reject) => {
    let sent = 0
    let confirmed = 0
    socket.onerror = () => reject(new Error('the consumer was not accepted'))
    socket.onclose = ({ code }) =>
      confirmed === errors.length ? resolve() : reject(new Error(`the consumer was closed with ${code}`))
    socket.onopen = () => send({ action: 'init', uuid: 'e2e', topic: JOBS_TOPIC, prefetch: 1, confirm: true })
    socket.onmessage = ({ data }) => {
      const { action, jobId, seqId } = JSON.parse(String(data))
      if (action === 'job') send({ action: 'nack', jobId, seqId, error: errors[sent++] })
      if (action === 'confirm') confirmed++
      if (confirmed === errors.length) send({ action: 'close' })
    }
  })
}
