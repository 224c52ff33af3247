/** The queue inside a control plane with its console and the page of the queue open, beside the queue alone. */
import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { LIVE } from '@vacancy/shared/live'
import { WebSocket } from 'ws'
import { failure } from '../failure.ts'
import type { RowReport } from '../format.ts'
import { type Load, measureLoad } from './load.ts'
import { closeServer, openOurs, type Server, startControlPlane, withTopics } from './servers.ts'

/** As the page of the queue asks for statistics. */
const PAGE_POLL_MS = 2_000

export function measureConsole(
  options: { readonly jobs: number; readonly rounds: number; readonly dir: string },
  load: Load,
  say: (text: string) => void,
): Promise<RowReport> {
  const { dir } = options
  const alone = { url: '', token: '', dir }
  return measureLoad(
    options,
    load,
    { openOurs: () => openConsole(dir), openOther: () => openOurs(alone), other: 'queue alone' },
    say,
  )
}

/** A control plane whose queue page is open until it is closed. */
async function openConsole(dir: string): Promise<Server> {
  const { server, link } = await startControlPlane(mkdtempSync(join(dir, 'run-')))
  try {
    const page = await openPage(server.url, link)
    return { ...(await withTopics(server)), end: page.close }
  } catch (error) {
    await closeServer(server)
    throw error
  }
}

/** Does what a browser does while it shows the page. */
async function openPage(url: URL, link: URL): Promise<{ readonly close: () => Promise<void> }> {
  const cookie = await signIn(url, link)
  const get = async (path: string): Promise<void> => {
    const response = await fetch(new URL(path, url), { headers: { cookie } })
    await response.text()
    if (response.status !== 200) throw failure(`${path} was answered with ${response.status}`)
  }
  // A page is open when it has been rendered: until then the console is still being loaded.
  await get('/queue')
  const live = new WebSocket(`ws://${url.host}${LIVE.path}`, { headers: { cookie, origin: url.origin } })
  await new Promise((resolve, reject) => {
    live.once('open', resolve)
    live.once('error', reject)
  })
  for (const [id, topic] of ['summary', 'ops'].entries()) live.send(JSON.stringify({ t: 'sub', id, topic }))
  await get('/api/v1/me')
  await get('/api/v1/queue/stats')
  let fault: Error | undefined
  const timer = setInterval(() => {
    get('/api/v1/queue/stats').catch((error: Error) => {
      fault ??= error
    })
  }, PAGE_POLL_MS)
  return {
    close: async () => {
      clearInterval(timer)
      live.terminate()
      if (fault !== undefined) throw fault
    },
  }
}

/** @returns the cookie of the session */
async function signIn(url: URL, link: URL): Promise<string> {
  const response = await fetch(new URL('/api/v1/session/link', url), {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: url.origin },
    body: JSON.stringify({ code: new URLSearchParams(link.hash.slice(1)).get('code') }),
  })
  await response.text()
  const cookie = response.headers.get('set-cookie')?.split(';')[0]
  if (response.status !== 200 || cookie === undefined) throw failure(`signing in was answered with ${response.status}`)
  return cookie
}
