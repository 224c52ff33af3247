import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { createCodecList } from '@vacancy/shared'
import { dateIn, runVacancy, temporaryFolder } from '@vacancy/testkit/node'
import { eventually } from '@vacancy/testkit/until'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { BootstrapStatus } from '../status.ts'
import type { ClusterAnswer, ClusterRequest } from './handle.ts'
import { createPuller, type PullParts } from './snapshot-download.ts'

const CODECS = createCodecList(['breakfast'])
const WAITING: BootstrapStatus = { waitsFor: 'voters', why: '', needed: 2, voters: [] }
const silent = { debug() {}, info() {}, warn() {}, error() {} } as unknown as PullParts['log']

let server: Server
let url: string
let file: Buffer
let digest: string
let answer: (request: IncomingMessage, response: ServerResponse) => void

beforeAll(async () => {
  const folder = temporaryFolder()
  writeFileSync(join(folder, 'codecs.yml'), 'rate_features:\n  - breakfast\n')
  writeFileSync(join(folder, 'properties.csv'), 'hotel_1,alpine,valley,hotel,standard,3,47,11,wifi\n')
  writeFileSync(join(folder, 'packages.csv'), `hotel_1,double,${dateIn(3)},2,120,breakfast\n`)
  const { output } = await runVacancy(['build-snapshot', '--shard-id', 's1', '--input-path', folder])
  digest = /snapshot ([0-9a-f]{64})/.exec(output)?.[1] ?? ''
  file = readFileSync(join(folder, 'seed.snapshot'))
  server = createServer((request, response) => answer(request, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/x`
})
afterAll(() => server.close())

const whole = (_: IncomingMessage, response: ServerResponse) =>
  void response.writeHead(200, { 'content-length': file.length }).end(file)

function puller(differs: Partial<PullParts> = {}) {
  const dataDir = temporaryFolder()
  const requests: ClusterRequest[] = []
  const request = async (sent: ClusterRequest): Promise<ClusterAnswer> => {
    requests.push(sent)
    return { status: 202, text: '' }
  }
  const parts: PullParts = {
    ...{ dataDir, shardId: 's1', codecs: CODECS, urls: 'any', log: silent, wallMs: () => 0 },
    ...{ waiting: () => undefined, isMember: () => true, request },
    ...differs,
  }
  const made = createPuller(parts)
  const ends = () =>
    eventually(() => {
      const status = made.status()
      if (!status || status.state === 'pulling' || status.state === 'checking') throw new Error('not over')
      return status
    })
  return { ...made, dataDir, requests, ends }
}

test('a member requests a load of the file from its shard, and deletes the file', async () => {
  answer = whole
  const { start, ends, requests, dataDir } = puller()

  expect(start({ url, digest })).toEqual({ status: 202, text: 'begun' })

  expect(await ends()).toMatchObject({ state: 'asked', bytesDone: file.length, bytesTotal: file.length })
  expect(requests).toEqual([{ kind: 'load', file: join(dataDir, 'pulled', `${digest}.snapshot`) }])
  expect(readdirSync(join(dataDir, 'pulled'))).toEqual([])
})

test('a waiting node gets it as its seed, once; a second one is refused', async () => {
  answer = whole
  const { start, ends, dataDir } = puller({ waiting: () => WAITING })
  start({ url, digest })
  expect(await ends()).toMatchObject({ state: 'placed' })
  expect(existsSync(join(dataDir, 'seed.snapshot'))).toBe(true)

  start({ url, digest })
  expect(await ends()).toMatchObject({ state: 'placed' })
  writeFileSync(join(dataDir, 'seed.snapshot'), 'something else')
  start({ url, digest })
  expect(await ends()).toMatchObject({ state: 'failed', error: expect.stringContaining('seed.snapshot') })
})

test.each<[string, (request: IncomingMessage, response: ServerResponse) => void, RegExp]>([
  ['another file', (_, response) => void response.writeHead(200, { 'content-length': 5 }).end('hello'), /snapshot/],
  ['a redirect', (_, response) => void response.writeHead(302, { location: '/y' }).end(), /returned 302/],
  ['a refusal', (_, response) => void response.writeHead(403).end(), /returned 403/],
  ['no length', (_, response) => void response.writeHead(200).end(file), /a file of NaN bytes/],
  [
    'a length beyond all disks',
    (_, response) => void response.writeHead(200, { 'content-length': 2 ** 45 }).flushHeaders(),
    /cannot be downloaded/,
  ],
])('%s ends the download without a request to the shard', async (_, how, reason) => {
  answer = how
  const { start, ends, requests } = puller()

  start({ url, digest })

  expect(await ends()).toMatchObject({ state: 'failed', error: expect.stringMatching(reason) })
  expect(requests).toEqual([])
})

test.each<[string, Partial<PullParts>, string, number, RegExp]>([
  ['no URL', {}, 'nonsense', 400, /is not a URL/],
  ['a file', {}, 'file:///etc/passwd', 400, /must be http or https/],
  ['a password', {}, 'http://a:b@host/', 400, /must not carry a password/],
  ['plain http where https is required', { urls: 'https' }, 'http://host/', 400, /must be https/],
  ['any URL where downloads are disabled', { urls: 'none' }, 'https://host/', 400, /load_urls: none/],
  ['a node that joins', { waiting: () => ({ ...WAITING, waitsFor: 'join' }) }, 'http://host/', 409, /ask its leader/],
  ['a node that is starting', { isMember: () => false }, 'http://host/', 503, /is starting/],
])('%s is refused at once', (_, differs, given, status, reason) => {
  expect(puller(differs).start({ url: given, digest: 'a'.repeat(64) })).toEqual({
    status,
    text: expect.stringMatching(reason),
  })
})

test('a snapshot of another shard, or of another codec list, is refused before the shard gets a request', async () => {
  answer = whole
  for (const differs of [{ shardId: 's2' }, { codecs: createCodecList(['sea_view']) }]) {
    const { start, ends, requests, dataDir } = puller(differs)
    mkdirSync(join(dataDir, 'pulled'), { recursive: true })
    start({ url, digest })

    expect(await ends()).toMatchObject({ state: 'failed' })
    expect([requests, readdirSync(join(dataDir, 'pulled'))]).toEqual([[], []])
  }
})
