import { readFileSync } from 'node:fs'
import { type CommandName, encodeRequest, LOGIN_OK } from '@vacancy/shared/wire'
import {
  answerTo,
  ask,
  closeClient,
  type NodeProcess,
  openClient,
  readAnswer,
  removeFolder,
  startNodeProcess,
  temporaryFolder,
  type WireClient,
} from '@vacancy/testkit/node'
import { until } from '@vacancy/testkit/until'
import { afterAll, beforeAll, expect, test } from 'vitest'

type Case = {
  readonly name: string
  readonly hex: string
  readonly json: { readonly command: CommandName | null; readonly correlationId: number }
}
type Malformed = {
  readonly name: string
  readonly hex: string
  readonly expect: { readonly reply: 'none' | 'ERROR'; readonly code?: string; readonly connection: 'open' | 'closed' }
}

function read<Content>(file: string): Content {
  return JSON.parse(readFileSync(new URL(`../../../shared/vectors/${file}`, import.meta.url), 'utf8'))
}

const { cases, malformed } = read<{ cases: Case[]; malformed: Malformed[] }>('requests.json')
const extensions = read<{ requests: Case[]; malformed: Malformed[] }>('extensions.json')

const logins = cases.filter(({ json }) => json.command === 'LOGIN')
const requests = cases.filter(({ json }) => json.command !== 'LOGIN')
const commands = requests.filter(({ json }) => json.command !== null)

/** Valid refusals of a well-formed request: dates and names are examples, and no session is open. */
const REFUSALS = ['VALIDATION_ERROR', 'NOT_FOUND', 'UNDERFLOW', 'OVERFLOW', 'CONFLICT', '408']

const folder = temporaryFolder()
let node: NodeProcess
let bystander: WireClient

beforeAll(async () => {
  // Includes long idle connections: no slow client is closed here.
  node = await startNodeProcess({ folder, config: { tcp_user_timeout_ms: 0, max_dates_in_query: 366 } })
  bystander = await openClient(node)
})

afterAll(async () => {
  closeClient(bystander)
  await node.stop()
  removeFolder(folder)
})

const bytesOf = ({ hex }: { hex: string }) => Buffer.from(hex, 'hex')

function sendByteByByte(client: WireClient, bytes: Buffer): void {
  for (const byte of bytes) client.socket.write(Buffer.of(byte))
}

const WAYS: readonly (readonly [string, (client: WireClient, bytes: Buffer) => void])[] = [
  ['whole', (client, bytes) => client.socket.write(bytes)],
  ['byte by byte', sendByteByByte],
]

/** Reads a reply to its command: throws when it is malformed. */
function checkReply(vector: Case, payload: Uint8Array | undefined, client: WireClient): void {
  const reply = readAnswer(client, vector.json.command as CommandName, payload)
  if (!reply.ok) expect(REFUSALS, `${vector.name}: ${reply.code}: ${reply.message}`).toContain(reply.code)
}

test.each(WAYS)('each of the 76 requests, sent %s, is answered under its correlation id', async (_, send) => {
  expect(cases).toHaveLength(76)
  const client = await openClient(node)

  for (const vector of commands) {
    const answer = answerTo(client, vector.json.correlationId)
    send(client, bytesOf(vector))
    checkReply(vector, await answer, client)
  }

  expect(client.rest).toHaveLength(0)
  expect(client.frames).toHaveLength(commands.length)
  closeClient(client)
})

test('a standalone node understands the extension fields of a shard', async () => {
  const client = await openClient(node)

  for (const vector of extensions.requests) {
    const answer = answerTo(client, vector.json.correlationId)
    client.socket.write(bytesOf(vector))
    const reply = readAnswer(client, vector.json.command as CommandName, await answer)
    if (!reply.ok) expect(REFUSALS, `${vector.name}: ${reply.code}`).toContain(reply.code)
  }
  for (const vector of extensions.malformed) {
    const [frame] = await refused(client, vector)
    const answer = readAnswer(client, 'PROPEXIST', frame?.payload)
    expect(answer, vector.name).toMatchObject({ ok: false, code: vector.expect.code })
  }

  closeClient(client)
})

async function refused(client: WireClient, vector: Malformed): Promise<WireClient['frames']> {
  const before = client.frames.length
  client.socket.write(bytesOf(vector))
  await until('it is refused', () => client.frames.length > before || undefined)
  return client.frames.slice(before)
}

test('all requests in one write are answered, each once', async () => {
  const client = await openClient(node)

  client.socket.write(Buffer.concat(requests.map(bytesOf)))
  await until('all replies are there', () => client.frames.length >= commands.length || undefined)
  await ask(client, 'GETCODECS', {})

  const ids = (list: readonly { correlationId: number }[]) => list.map(({ correlationId }) => correlationId).sort()
  expect(ids(client.frames.slice(0, -1))).toEqual(ids(commands.map(({ json }) => json)))
  expect(client.rest).toHaveLength(0)
  closeClient(client)
})

test.each(WAYS)('a LOGIN, sent %s, is answered with bare text', async (_, send) => {
  for (const vector of logins) {
    const client = await openClient(node)
    send(client, bytesOf(vector))

    await until('the answer is there', () => client.rest.length >= LOGIN_OK.length || undefined)

    expect(client.rest.toString()).toBe('LOGIN OK')
    closeClient(client)
  }
})

test.each(malformed.flatMap((vector) => WAYS.map(([way, send]) => [vector.name, way, vector, send] as const)))(
  'malformed %s, sent %s, gets the reply of the vector without effect on other clients',
  async (_name, _way, vector, send) => {
    const { reply, code, connection } = vector.expect
    const client = await openClient(node)

    send(client, bytesOf(vector))
    if (reply === 'ERROR') {
      const frame = await until('the reply is there', () => client.frames[0])
      const answer = readAnswer(client, 'GETCODECS', frame.payload)
      expect(answer.ok ? '' : answer.code).toBe(code)
    }

    if (connection === 'closed') await until('the connection is closed', () => client.isClosed || undefined)
    else expect((await ask(client, 'GETCODECS', {})).ok).toBe(true)
    expect(client.frames).toHaveLength((reply === 'ERROR' ? 1 : 0) + (connection === 'closed' ? 0 : 1))
    expect(client.rest).toHaveLength(0)
    expect((await ask(bystander, 'GETCODECS', {})).ok).toBe(true)
    closeClient(client)
  },
)

test.each(malformed.map((vector) => [vector.name, vector] as const))(
  'malformed %s between other requests: earlier ones are answered, later ones if the connection stays',
  async (_name, vector) => {
    const client = await openClient(node)
    const before = answerTo(client, 70_001)
    const behind = answerTo(client, 70_002)
    const codecs = (correlationId: number) => encodeRequest({ command: 'GETCODECS', correlationId, fields: {} })

    client.socket.write(Buffer.concat([codecs(70_001), bytesOf(vector), codecs(70_002)]))

    expect(await before).toBeDefined()
    const isAnswered = (await behind) !== undefined
    // Data after an announced 4 GiB belongs to it. Data after a broken stream is not read.
    expect(isAnswered).toBe(vector.expect.connection === 'open')
    closeClient(client)
  },
)

test('there are 28 malformed vectors', () => {
  expect(malformed).toHaveLength(28)
})
