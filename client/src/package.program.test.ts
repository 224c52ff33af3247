/** The package as users get it: packed, unpacked beside its dependencies, and run by another Node version. */

import { execFile, execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { assert } from '@vacancy/shared'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startScriptedQueue } from './queue/testing/scripted-queue.ts'
import { CODECS, startScriptedNode } from './testing/scripted-node.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const run = promisify(execFile)

const app = mkdtempSync(path.join(tmpdir(), 'vacancy-client-'))
const installed = path.join(app, 'node_modules/@vacancy/client')
afterAll(() => rmSync(app, { recursive: true, force: true }))

beforeAll(() => {
  const source = path.join(app, 'source')
  execFileSync(process.execPath, [path.join(ROOT, 'client/build-package.mjs'), source])
  const packed = execFileSync('npm', ['pack', '--json', '--pack-destination', app], { cwd: source, encoding: 'utf8' })
  const [tarball] = JSON.parse(packed) as { filename: string }[]
  assert(tarball, 'npm names the tarball')
  mkdirSync(installed, { recursive: true })
  execFileSync('tar', ['-xzf', path.join(app, tarball.filename), '-C', installed, '--strip-components=1'])
  for (const name of ['@noble', 'ws'])
    cpSync(path.join(ROOT, 'node_modules', name), path.join(app, 'node_modules', name), { recursive: true })
  rmSync(source, { recursive: true })
  writeFileSync(path.join(app, 'package.json'), '{ "type": "module" }')
})

/** The Node that runs the package: one on the PATH that is not the pinned one; else this one. */
function usersNode(): string {
  const found = (process.env['PATH'] ?? '')
    .split(path.delimiter)
    .filter((folder) => folder !== '' && !folder.includes('node_modules'))
    .map((folder) => path.join(folder, 'node'))
    .find((file) => existsSync(file) && !file.startsWith(ROOT))
  return found ?? process.execPath
}

test('it depends only on the hash library and on ws, and contains no tests', () => {
  const manifest = JSON.parse(readFileSync(path.join(installed, 'package.json'), 'utf8')) as { [key: string]: unknown }

  expect(manifest['dependencies']).toEqual({ '@noble/hashes': expect.any(String), ws: expect.any(String) })
  expect(manifest['private']).toBeUndefined()
  expect(existsSync(path.join(installed, 'client/src/testing'))).toBe(false)
  expect(existsSync(path.join(installed, 'README.md'))).toBe(true)
})

test('it searches from plain JavaScript', async () => {
  const node = await startScriptedNode()
  const script = path.join(app, 'search.js')
  writeFileSync(
    script,
    `import { connect, VacancyRequestError } from '@vacancy/client'
     const client = await connect({ port: ${node.port} })
     const stays = await client.searchAvailability({ segment: 's', roomType: 'suite', dates: ['2026-12-24'] })
     const failure = await client.decreaseAvailability({ propertyId: 'p', roomType: 'suite', date: '2026-12-24', amount: 1 })
       .catch((error) => error)
     console.log(JSON.stringify({ stays, refused: failure instanceof VacancyRequestError, names: client.rateFeatures }))
     await client.close()`,
  )

  const running = run(usersNode(), [script], { encoding: 'utf8' })
  const search = await node.next()
  const days = [{ date: '2026-12-24', availability: 1, finalPrice: 9, rateFeatures: ['sea_view'] }]
  search.answer({ numDays: 1, properties: [{ propertyId: 'p', days }] })
  const write = await node.next()
  write.refuse('UNDERFLOW: availability would drop below 0')
  const { stdout } = await running
  await node.close()

  expect(JSON.parse(stdout)).toEqual({ stays: [{ propertyId: 'p', days }], refused: true, names: CODECS.names })
})

test('it submits a job, and consumes it, from plain JavaScript', async () => {
  const queue = await startScriptedQueue()
  const script = path.join(app, 'work.js')
  writeFileSync(
    script,
    `import { createConsumer, createProducer } from '@vacancy/client/queue'
     const producer = createProducer({ url: '${queue.url}', token: 't' })
     const stored = await producer.submit({ topic: 'orders', id: 'order-1', data: { order: 1 } })
     await producer.close()
     const job = await new Promise((resolve) => {
       const consumer = createConsumer({ url: '${queue.url}', token: 't', topic: 'orders', handler: (job) => {
         setImmediate(async () => { await consumer.close(); resolve(job) })
       } })
     })
     console.log(JSON.stringify({ stored, data: job.data }))`,
  )

  const { stdout } = await run(usersNode(), [script], { encoding: 'utf8' })
  await queue.close()

  expect(JSON.parse(stdout)).toEqual({
    stored: { topic: 'orders', id: 'order-1', outcome: 'accepted' },
    data: { order: 1 },
  })
})

test('its types compile, and reject an unknown field', async () => {
  cpSync(path.join(ROOT, 'node_modules/@types'), path.join(app, 'node_modules/@types'), { recursive: true })
  cpSync(path.join(ROOT, 'node_modules/undici-types'), path.join(app, 'node_modules/undici-types'), { recursive: true })
  writeFileSync(
    path.join(app, 'typed.ts'),
    `import { connect } from '@vacancy/client'
     import { createConsumer, createProducer } from '@vacancy/client/queue'
     const producer = createProducer({ url: 'http://localhost:8080' })
     const id: string = (await producer.submit({ topic: 'orders', data: 1 })).id
     createConsumer({ url: 'http://localhost:8080', topic: 'orders', handler: async ({ attempt }) => attempt + 1 })
     // @ts-expect-error
     await producer.submit({ topic: 'orders', colour: 'blue' })
     const client = await connect({ host: 'localhost' })
     const left: number = await client.decreaseAvailability({ propertyId: 'p', roomType: 'r', date: '2026-12-24', amount: 1 })
     const [stay] = await client.searchAvailability({ segment: 's', roomType: 'r', dates: ['2026-12-24'] })
     const price: number | undefined = stay?.days[0]?.finalPrice
     // @ts-expect-error
     await client.searchProperties({ segment: 's', colour: 'blue' })
     export { id, left, price }`,
  )
  const tsc = path.join(ROOT, 'node_modules/typescript/bin/tsc')
  const options = ['--strict', '--noEmit', '--module', 'nodenext', '--target', 'es2023', '--types', 'node']

  const compiled = await run(process.execPath, [tsc, ...options, path.join(app, 'typed.ts')], { cwd: app }).then(
    ({ stdout }) => stdout,
    (error: { stdout: string }) => error.stdout,
  )

  expect(compiled).toBe('')
})
