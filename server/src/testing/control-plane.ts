/** A whole control plane on a free port, and callers over real sockets. */
import { mkdtempSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '@vacancy/shared'
import type { Me, PersonRole, TokenRole } from '@vacancy/shared/contract'
import { createLogger } from '@vacancy/shared/node'
import { type ControlPlane, startControlPlane } from '../app.ts'
import { type ControlConfig, loadControlConfig } from '../config.ts'
import { databaseOf } from '../data-folder.ts'
import { openDatabase } from '../database/database.ts'
import type { Tables } from '../parts.ts'

export type TestControlPlane = ControlPlane & {
  /** Its log lines so far. */
  readonly log: readonly string[]
  readonly dataDir: string
  /** A new signed-in person with a role. */
  signIn(role: PersonRole, name?: string): Promise<Caller>
  /** A new API token, created by an admin. */
  token(role: TokenRole, expiresAt?: string): Promise<Caller & { readonly id: string }>
  anonymous(): Caller
  /** Corrupts the stored preferences of a person. */
  spoil(person: string): Promise<void>
}

export type Caller = {
  readonly headers: { readonly [name: string]: string }
  readonly me: Me | undefined
  call(method: string, path: string, body?: unknown, headers?: { readonly [name: string]: string }): Promise<Answer>
}

// biome-ignore lint/suspicious/noExplicitAny: tests know the shape of each response.
export type Answer = { readonly status: number; readonly headers: Headers; readonly text: string; readonly body: any }

export async function startTestControlPlane(
  options: {
    readonly databaseUrl?: string
    readonly dataDir?: string
    readonly config?: Partial<ControlConfig>
    readonly clock?: typeof systemClock
  } = {},
): Promise<TestControlPlane> {
  const dataDir = options.dataDir ?? mkdtempSync(join(tmpdir(), 'vacancy-control-'))
  const { values } = loadControlConfig({ file: undefined })
  const config: ControlConfig = {
    ...values,
    listenPort: 0,
    dataDir,
    databaseUrl: options.databaseUrl ?? '',
    web: false,
    drainSecs: 2,
    ...options.config,
  }
  const lines: string[] = []
  const log = createLogger({
    level: 'debug',
    format: 'json',
    component: 'control-plane',
    write: (line) => lines.push(line),
  })
  const clock = options.clock ?? systemClock
  const plane = await startControlPlane({ config, clock, log, isProduction: false })
  let people = 0
  let admin: Promise<Caller> | undefined

  const signIn = async (role: PersonRole, name = `${role}-${++people}`): Promise<Caller> => {
    const code = await plane.people.signInCode(name, role)
    const answer = await callerOf(plane.url, {}).call('POST', '/api/v1/session/link', { code })
    if (answer.status !== 200) throw new Error(`sign-in failed: ${answer.text}`)
    return personOf(plane.url, answer)
  }
  return {
    ...plane,
    log: lines,
    dataDir,
    signIn,
    async token(role, expiresAt) {
      admin ??= signIn('admin')
      const made = await (await admin).call('POST', '/api/v1/tokens', {
        name: role,
        role,
        expiresAt: expiresAt ?? null,
      })
      if (made.status !== 201) throw new Error(`no token: ${made.text}`)
      return { ...callerOf(plane.url, { authorization: `Bearer ${made.body.value}` }), id: made.body.token.id }
    },
    anonymous: () => callerOf(plane.url, {}),
    async spoil(person) {
      const database = await openDatabase<Tables>(databaseOf(config))
      await database.updateTable('people').set({ preferences: 'no JSON' }).where('id', '=', person).execute()
      await database.destroy()
    },
    async stop() {
      await plane.stop()
      if (options.dataDir === undefined) rmSync(dataDir, { recursive: true, force: true })
    },
  }
}

/** The caller that a sign-in response has signed in. */
export function personOf(url: string, answer: Answer): Caller {
  const cookie = answer.headers.get('set-cookie')?.split(';')[0] ?? ''
  return callerOf(url, { cookie, 'x-csrf': answer.body.csrf }, answer.body)
}

export function callerOf(url: string, own: { readonly [name: string]: string }, me?: Me): Caller {
  return {
    headers: own,
    me,
    async call(method, path, body, headers = {}) {
      const response = await fetch(`${url}${path}`, {
        method,
        headers: { ...own, ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
        ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      })
      const text = await response.text()
      const isJson = /[/+]json/.test(response.headers.get('content-type') ?? '')
      return { status: response.status, headers: response.headers, text, body: isJson ? JSON.parse(text) : undefined }
    },
  }
}

/** Sends raw bytes; returns the response until the connection ended. */
export function sendBytes(url: string, bytes: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url)
    const socket = connect(Number(port), hostname, () => socket.write(bytes))
    let text = ''
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1')
    })
    socket.on('close', () => resolve(text))
    socket.on('error', reject)
  })
}
