/** The servers of the queue benchmark, and the clients that run against them. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Program } from '@vacancy/testkit/program'
import { failure } from '../failure.ts'
import { lastJson, runProgram, startProgram, stopProgram } from '../programs.ts'
import type { ClientPlan, ClientResult } from './clients.ts'

export const TOPICS = ['orders', 'mail', 'prices', 'images']
export const PAYLOAD_BYTES = 1_024
const TOKEN = 'bench-admin-token'

/** A server that is measured. */
export type Server = {
  readonly url: URL
  readonly token: string
  readonly program: Program
  readonly dir: string
  /** Processor time of its database so far. */
  readonly databaseSeconds?: () => number
  /** Resolves when nothing of a run is left to be written. */
  readonly settle?: () => Promise<void>
  /** Ends what was opened with it. */
  readonly end?: () => Promise<void>
}

/** What clients need to know of a server. */
export function clientsOf({ url, token }: Server) {
  return { host: url.hostname, port: Number(url.port), token, topics: TOPICS }
}

export async function runClients(plan: ClientPlan): Promise<ClientResult> {
  return lastJson(await runProgram(['bench/src/queue/clients.ts', JSON.stringify(plan)])) as ClientResult
}

/** @throws when a request was refused */
export function refuseRefused({ statuses }: ClientResult): void {
  const { 200: accepted = 0, ...refused } = statuses
  if (Object.keys(refused).length > 0)
    throw failure(`${accepted} requests were accepted; refused: ${JSON.stringify(refused)}`)
}

/** Our program on the files of a new folder in `dir`. */
export async function openOurs(dir: string): Promise<Server> {
  return await withTopics(await startOurs(mkdtempSync(join(dir, 'run-'))))
}

/** Our program on the files of a folder. @param databaseUrl where its journal is instead */
export async function startOurs(folder: string, databaseUrl = ''): Promise<Server> {
  const authFile = writeAuthFile(folder)
  const settings = ['--listen-port', '0', '--data-dir', join(folder, 'data'), '--auth-file', authFile]
  if (databaseUrl !== '') {
    const file = join(folder, 'database-url')
    writeFileSync(file, databaseUrl)
    settings.push('--database-url', `file:${file}`)
  }
  const program = startProgram(['bin/vacancy.mjs', 'queue', 'serve', ...settings, '--log-level', 'warn'])
  return { url: await servingUrl(program), token: TOKEN, program, dir: folder }
}

/** A control plane with the queue and a console on the files of a folder, and a link that signs in to it. */
export async function startControlPlane(folder: string): Promise<{ readonly server: Server; readonly link: URL }> {
  const authFile = writeAuthFile(folder)
  const settings = ['--listen-port', '0', '--data-dir', join(folder, 'data'), '--queue-auth-file', authFile]
  const args = ['bin/vacancy.mjs', 'control-plane', ...settings, '--sign-in', 'bench', '--log-level', 'warn']
  const program = startProgram(args)
  const server = { url: await servingUrl(program), token: TOKEN, program, dir: folder }
  const [, link = ''] = await program.printed(/^sign-in: (\S+)$/m)
  return { server, link: new URL(link) }
}

/** @returns its path */
function writeAuthFile(folder: string): string {
  const authFile = join(folder, 'auth.yml')
  writeFileSync(authFile, `tokens:\n  - { token: ${TOKEN}, role: admin }\n`)
  return authFile
}

export async function openFloor(kind: 'floor' | 'bare'): Promise<Server> {
  const program = startProgram(['bench/src/queue/floor.ts', kind])
  return await withTopics({ url: await servingUrl(program), token: TOKEN, program, dir: '' })
}

async function servingUrl(program: Program): Promise<URL> {
  const [, url] = await program.printed(/^serving: (\S+)$/m)
  if (url === undefined) throw failure('the server did not print its address')
  return new URL(url)
}

/** Topics may be there already. */
export async function withTopics(server: Server): Promise<Server> {
  for (const topic of TOPICS) {
    const response = await fetch(new URL('/producer/topic', server.url), {
      method: 'POST',
      headers: { authorization: `Bearer ${server.token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ topic }),
    })
    await response.text()
    if (response.status !== 200 && response.status !== 409)
      throw failure(`creating the topic ${topic} was answered with ${response.status}`)
  }
  return server
}

export async function closeServer({ program, dir, end }: Server): Promise<void> {
  await end?.()
  await stopProgram(program)
  if (dir !== '') rmSync(dir, { recursive: true })
}
