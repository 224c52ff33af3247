import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { connect, createServer, type TLSSocket } from 'node:tls'
import { afterEach, expect, test } from 'vitest'
import { makeCertificate } from '../testing/certificates.ts'
import { decodeReply } from '../wire/reply.ts'
import { DECIDES_ITSELF, refuseClient } from './client-certificate.ts'

const cleanUp: (() => void)[] = []
afterEach(() => {
  for (const step of cleanUp.splice(0)) step()
})

const authority = makeCertificate({ subject: 'authority', isAuthority: true })
const pair = makeCertificate({ subject: 'node' })

/** Connects with a certificate: what the listener found, and what the client received until the end. */
async function dial(identity: { cert?: string; key?: string }): Promise<{ fault: string; bytes: Buffer }> {
  const found = Promise.withResolvers<string>()
  const server = createServer(
    { cert: pair.cert, key: pair.key, ca: authority.cert, requestCert: true, ...DECIDES_ITSELF },
    (socket: TLSSocket) => {
      const fault = refuseClient(socket)
      if (fault === '') socket.end('welcome')
      found.resolve(fault)
    },
  )
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  cleanUp.push(() => server.close())
  const socket = connect({
    port: (server.address() as AddressInfo).port,
    host: '127.0.0.1',
    ca: pair.cert,
    ...identity,
  })
  cleanUp.push(() => socket.destroy())
  const chunks: Buffer[] = []
  for await (const chunk of socket) chunks.push(chunk)
  return { fault: await found.promise, bytes: Buffer.concat(chunks) }
}

test('a client with a certificate of the authorities is accepted', async () => {
  const { cert, key } = makeCertificate({ subject: 'client', issuer: authority })

  const { fault, bytes } = await dial({ cert, key })

  expect(fault).toBe('')
  expect(bytes.toString()).toBe('welcome')
})

test.each([
  ['no certificate', {}, 'a client certificate is required'],
  [
    'a certificate of its own',
    makeCertificate({ subject: 'stranger' }),
    'the client certificate is refused (DEPTH_ZERO_SELF_SIGNED_CERT)',
  ],
])('a client with %s gets an error frame, then the end', async (_, identity, text) => {
  const { fault, bytes } = await dial(identity)

  expect(fault).toBe(text)
  // Magic byte, correlation id 0, length of the payload.
  expect([...bytes.subarray(0, 5)]).toEqual([0xff, 0, 0, 0, 0])
  expect(decodeReply('LOGIN', bytes.subarray(9), { baseYear: 2026, codecs: undefined })).toEqual({
    ok: false,
    code: 'AUTH_ERROR',
    message: text,
  })
})
