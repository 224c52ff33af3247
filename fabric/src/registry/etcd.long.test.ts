/** `vacancy registry --storage etcd` as processes. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type Etcd, startEtcd } from '@vacancy/testkit/etcd'
import { type Program, startProgram } from '@vacancy/testkit/program'
import { until } from '@vacancy/testkit/until'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { AUTHORITY, SERVER } from '../testing/certificates.ts'

const PROGRAM = path.join(import.meta.dirname, '../../../bin/vacancy.mjs')

let etcd: Etcd
let folder: string
const inFolder = (name: string) => path.join(folder, name)

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'vacancy-registry-etcd-'))
  writeFileSync(inFolder('codecs.yml'), 'rate_features: [breakfast, refundable]\n')
  writeFileSync(inFolder('other.yml'), 'rate_features: [refundable, breakfast]\n')
  etcd = await startEtcd()
}, 180_000)

afterAll(async () => {
  await etcd.close()
  rmSync(folder, { recursive: true, force: true })
})

function launch(endpoints: string, prefix: string, more: readonly string[] = []): Program {
  const store = ['--storage', 'etcd', '--etcd-endpoints', endpoints, '--etcd-prefix', prefix]
  const args = [PROGRAM, 'registry', '--addr', '127.0.0.1', '--port', '0', ...store, ...more]
  return startProgram(args, { cwd: folder, isBound: true })
}

async function serve(endpoints: string, prefix: string, more: readonly string[] = []) {
  const program = launch(endpoints, prefix, more)
  onTestFinished(() => program.signal('SIGKILL'))
  const where = (await program.printed(/^serving: http (\S+)$/m))[1] as string
  const ask = async (from: string, body?: object) => {
    const answer = await fetch(`http://${where}${from}`, body && { method: 'POST', body: JSON.stringify(body) })
    const text = await answer.text()
    return { status: answer.status, json: text.startsWith('{') ? JSON.parse(text) : undefined }
  }
  return { ...program, where, ask }
}

const node = (id: string) => ({ kind: 'node', id, zone: 'z1', shard: 's1' })

test('of two registries one is killed: the other one has all it acknowledged, and a new one joins', async () => {
  const prefix = etcd.newPrefix()
  const [one, two] = [await serve(etcd.endpoint, prefix), await serve(`http://127.0.0.1:1,${etcd.endpoint}`, prefix)]
  const names: string[] = []
  const pushing = (async () => {
    for (let i = 0; ; i++) {
      const segments = [...names, `segment-${i}`]
      try {
        if ((await one.ask('/shards/s1/segments', { zone: 'z1', segments })).status !== 200) break
      } catch {
        // It was killed: this list has no answer.
        break
      }
      names.push(`segment-${i}`)
    }
  })()
  await until('some lists are acknowledged', () => names.length > 20)
  one.signal('SIGKILL')
  await pushing
  await two.ask('/register', node('n1'))

  await until('the other one has them', async () => {
    const { segments } = (await two.ask('/shards/s1/segments')).json
    return names.every((name) => segments.includes(name))
  })
  expect((await two.ask('/shards/s1/segments', { zone: 'z1', segments: names, term: 1 })).status).toBe(200)
  const three = await serve(etcd.endpoint, prefix)
  expect((await three.ask('/versions')).json.versions).toEqual((await two.ask('/versions')).json.versions)
  expect(await two.stop()).toBe(0)
  expect(await three.stop()).toBe(0)
})

test('another codec list ends the start with 65, unless it is accepted', async () => {
  const prefix = etcd.newPrefix()
  const one = await serve(etcd.endpoint, prefix)
  const two = launch(etcd.endpoint, prefix, ['--codecs-path', 'other.yml'])
  expect(await two.ended).toBe(65)
  expect(two.output()).toContain('--accept-codec-change')
  await serve(etcd.endpoint, prefix, ['--codecs-path', 'other.yml', '--accept-codec-change'])
  await until('the first one follows', async () => (await one.ask('/codecs')).json.rate_features[0] === 'refundable')
})

test('a registry that started without etcd ends with 65 when the list there turns out to be another one', async () => {
  const server = await startEtcd()
  onTestFinished(server.close)
  const prefix = server.newPrefix()
  const one = await serve(server.endpoint, prefix)
  await one.stop()
  await server.kill()
  const two = await serve(server.endpoint, prefix, ['--codecs-path', 'other.yml'])
  expect((await two.ask('/ready')).status).toBe(503)
  await server.start()

  expect(await two.ended).toBe(65)
})

test('with a user and a password, and with TLS', async () => {
  for (const [name, text] of Object.entries({ 'ca.pem': AUTHORITY, 'cert.pem': SERVER.cert, 'key.pem': SERVER.key }))
    writeFileSync(inFolder(name), text)
  writeFileSync(inFolder('user'), 'root:secret-password\n')
  writeFileSync(inFolder('wrong'), 'root:other-password\n')
  const server = await startEtcd([], { cert: inFolder('cert.pem'), key: inFolder('key.pem'), authority: AUTHORITY })
  onTestFinished(server.close)
  await server.call('/v3/auth/user/add', { name: 'root', password: 'secret-password' })
  await server.call('/v3/auth/role/add', { name: 'root' })
  await server.call('/v3/auth/user/grant', { user: 'root', role: 'root' })
  await server.call('/v3/auth/enable', {})
  const prefix = server.newPrefix()

  const one = await serve(server.endpoint, prefix, ['--etcd-ca', 'ca.pem', '--etcd-user-file', 'user'])
  expect((await one.ask('/register', node('n1'))).status).toBe(200)
  expect((await one.ask('/ready')).status).toBe(200)
  const wrong = await serve(server.endpoint, prefix, ['--etcd-ca', 'ca.pem', '--etcd-user-file', 'wrong'])
  expect((await wrong.ask('/ready')).json.reasons[0].message).toContain('authentication failed')
  const noCa = await serve(server.endpoint, prefix, ['--etcd-user-file', 'user'])
  expect((await noCa.ask('/ready')).json.reasons[0].message).toContain('does not answer')
  for (const { output } of [one, wrong, noCa]) expect(output()).not.toContain('-password')
})
