import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import type { IncomingHttpHeaders } from 'node:http'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { LIVE } from '@vacancy/shared/contract'
import { runVacancy } from '@vacancy/testkit/node'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { sendBytes, startTestControlPlane, type TestControlPlane } from '../testing/control-plane.ts'

const folder = mkdtempSync(join(tmpdir(), 'vacancy-control-tls-'))
const [cert, key] = [join(folder, 'console.pem'), join(folder, 'console.key')]
let ca: string
let plane: TestControlPlane

/** A self-signed certificate for the names of this machine, created as operators create them. */
async function makeCertificate(out: string): Promise<void> {
  const args = ['--ca', folder, '--node-id', 'console', '--host', 'localhost,127.0.0.1', '--out', out, '--force']
  const { code, output } = await runVacancy(['certs', 'node', ...args])
  if (code !== 0) throw new Error(output)
}

beforeAll(async () => {
  const { code, output } = await runVacancy(['certs', 'init', '--out', folder])
  if (code !== 0) throw new Error(output)
  await makeCertificate(folder)
  ca = readFileSync(join(folder, 'ca.pem'), 'utf8')
})
afterEach(async () => await plane.stop())
afterAll(() => rmSync(folder, { recursive: true, force: true }))

type Answer = { readonly status: number | undefined; readonly headers: IncomingHttpHeaders; readonly text: string }

function ask(method: string, path: string, headers: { [name: string]: string } = {}, body?: object): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const outgoing = request(`${plane.url}${path}`, { method, headers, ca, agent: false }, (answer) => {
      let text = ''
      answer.on('data', (chunk) => {
        text += chunk
      })
      answer.on('end', () => resolve({ status: answer.statusCode, headers: answer.headers, text }))
    })
    outgoing.on('error', reject)
    if (body) outgoing.setHeader('content-type', 'application/json')
    outgoing.end(body && JSON.stringify(body))
  })
}

function fingerprint(): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port: Number(new URL(plane.url).port), host: '127.0.0.1', ca }, () => {
      resolve(socket.getPeerCertificate().fingerprint256)
      socket.end()
    })
    socket.on('error', reject)
  })
}

test('with a certificate everything uses https: pages, secure cookies, the live channel', async () => {
  plane = await startTestControlPlane({ config: { tlsCert: cert, tlsKey: key } })
  const code = await plane.people.signInCode('ada', 'admin')

  const signedIn = await ask('POST', '/api/v1/session/link', { origin: plane.url }, { code })

  expect(plane.url).toMatch(/^https:/)
  expect(plane.origin).toBe(plane.url)
  expect(signedIn.status).toBe(200)
  const cookie = String(signedIn.headers['set-cookie'])
  for (const part of ['HttpOnly', 'Secure', 'SameSite=Strict', 'Path=/']) expect(cookie).toContain(`; ${part}`)
  expect(signedIn.headers['strict-transport-security']).toBe('max-age=15552000')
  const headers = { cookie: cookie.split(';')[0] as string, origin: plane.url }
  const { csrf } = JSON.parse(signedIn.text)
  const added = await ask('POST', '/api/v1/people', { ...headers, 'x-csrf': csrf }, { name: 'bob', role: 'viewer' })
  expect(JSON.parse(added.text).link).toMatch(/^https:\/\/127\.0\.0\.1:\d+\/sign-in#code=/)
  const socket = new WebSocket(`${plane.url.replace('https', 'wss')}${LIVE.path}`, { headers, ca })
  const hello = await new Promise((resolve, reject) => {
    socket.once('message', (data) => resolve(JSON.parse(String(data)).t))
    socket.once('error', reject)
  })
  socket.terminate()
  expect(hello).toBe('hello')
})

test('a client without TLS, or that does not trust the certificate, gets no data', async () => {
  plane = await startTestControlPlane({ config: { tlsCert: cert, tlsKey: key } })

  const plain = await sendBytes(plane.url, 'GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n').catch(
    (error: NodeJS.ErrnoException) => error.code,
  )

  expect(plain).not.toContain('200')
  await expect(fetch(`${plane.url}/health`)).rejects.toThrow('fetch failed')
})

test('a new certificate applies to new connections; mismatched files keep the previous one', async () => {
  const [own, ownKey] = [join(folder, 'own.pem'), join(folder, 'own.key')]
  copyFileSync(cert, own)
  copyFileSync(key, ownKey)
  plane = await startTestControlPlane({ config: { tlsCert: own, tlsKey: ownKey } })
  const before = await fingerprint()
  const other = mkdtempSync(join(folder, 'other-'))
  await makeCertificate(other)

  writeFileSync(own, readFileSync(join(other, 'console.pem')))
  expect(() => plane.reload()).toThrow('is not the key of the certificate')
  expect(await fingerprint()).toBe(before)
  writeFileSync(ownKey, readFileSync(join(other, 'console.key')))
  plane.reload()

  expect(await fingerprint()).not.toBe(before)
  expect((await ask('GET', '/health')).status).toBe(200)
  const token = await ask('POST', '/api/v1/session/link', {}, { code: await plane.people.signInCode('ada', 'admin') })
  const metrics = await ask('GET', '/metrics', { cookie: String(token.headers['set-cookie']).split(';')[0] as string })
  expect(metrics.text).toMatch(/^tls_cert_not_after_seconds\{listener="http"\} 1\.?\d+/m)
})

test('hsts_days: 0 sends no HSTS header', async () => {
  plane = await startTestControlPlane({ config: { tlsCert: cert, tlsKey: key, hstsDays: 0 } })

  expect((await ask('GET', '/health')).headers['strict-transport-security']).toBeUndefined()
})
