/** Which requests are admitted: by host, by page, by credentials and by role; and what a refusal records. */

import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { FastifyRequest } from 'fastify'
import { expect, test } from 'vitest'
import type { Visitor } from '../access/access.ts'
import { admit, admitUpgrade, isOwnHost } from './admission.ts'
import type { HttpOptions } from './options.ts'
import type { ProblemError } from './route.ts'

type Access = Parameters<typeof admit>[2]

const ANONYMOUS: Visitor = {
  principal: { kind: 'anonymous', id: '', name: '', role: undefined },
  ...{ key: '', session: undefined, fault: '' },
}
const signedIn = (role: string): Visitor => ({
  principal: { kind: 'person', id: 'p1', name: 'Ana', role } as Visitor['principal'],
  ...{ key: 'k', session: { csrf: 'secret' } as Visitor['session'], fault: '' },
})
const withToken = (role: string): Visitor => ({
  principal: { kind: 'token', id: 't1', name: 'bot', role } as Visitor['principal'],
  ...{ key: 'k', session: undefined, fault: '' },
})

type Given = {
  readonly visitor?: Visitor
  readonly baseUrl?: string
  readonly allowedHosts?: readonly string[]
  readonly waitSeconds?: number
}

function optionsOf({ visitor = ANONYMOUS, baseUrl = '', allowedHosts = [], waitSeconds = 0 }: Given = {}) {
  const refusals: string[] = []
  const audit: Record<string, unknown>[] = []
  const failed: string[] = []
  const options = {
    ...{ onRefusal: (reason: string) => refusals.push(reason), baseUrl: () => baseUrl },
    ...{ allowedHosts: () => allowedHosts, identify: async () => visitor },
    audit: async (entry: Record<string, unknown>) => void audit.push(entry),
    upgradeFailures: { waitSeconds: () => waitSeconds, failed: (address: string) => failed.push(address) },
  } as unknown as HttpOptions
  return { options, refusals, audit, failed }
}

/** How a request to a route is answered: '' when it is admitted. */
async function admitted(
  visitor: Visitor,
  access: Access,
  method = 'GET',
  headers: IncomingHttpHeaders = {},
  given: Given = {},
) {
  const { options, refusals, audit } = optionsOf(given)
  const url = '/api/v1/x?q=1'
  const request = { visitor, method, headers, ip: '10.0.0.1', id: 'r1', url } as unknown as FastifyRequest
  let error: ProblemError | undefined
  try {
    await admit(request, `${method} /api/v1/x`, access, options)
  } catch (thrown) {
    error = thrown as ProblemError
  }
  return { code: error?.code ?? '', error, refusals, audit }
}

const CSRF = { 'x-csrf': 'secret' }

// Roles

test.each<[string, Visitor, Access, string]>([
  ['anyone on an open route', ANONYMOUS, 'open', ''],
  ['an anonymous request', ANONYMOUS, 'viewer', 'not-signed-in'],
  ['an invalid token', { ...ANONYMOUS, fault: 'token' }, 'viewer', 'invalid-token'],
  ['an ended session', { ...ANONYMOUS, fault: 'session' }, 'viewer', 'session-ended'],
  ['an ended session on an open route', { ...ANONYMOUS, fault: 'session' }, 'open', ''],
  ['a viewer', signedIn('viewer'), 'viewer', ''],
  ['a viewer on a route of operators', signedIn('viewer'), 'operator', 'forbidden'],
  ['an operator', signedIn('operator'), 'operator', ''],
  ['an operator on a route of admins', signedIn('operator'), 'admin', 'forbidden'],
  ['an admin', signedIn('admin'), 'admin', ''],
  ['a person on a route of sessions', signedIn('viewer'), 'session', ''],
  ['a token on a route of sessions', withToken('admin'), 'session', 'forbidden'],
])('%s', async (_, visitor, access, code) => {
  expect((await admitted(visitor, access)).code).toBe(code)
})

test.each<[Visitor, string, string]>([
  [ANONYMOUS, 'unauthenticated', 'missing authorization header'],
  [{ ...ANONYMOUS, fault: 'token' }, 'unauthenticated', 'invalid token'],
  [signedIn('viewer'), 'forbidden', 'insufficient permissions'],
])('a refusal is counted, and has the text of a node', async (visitor, reason, text) => {
  const { refusals, error, audit } = await admitted(visitor, 'admin')

  expect([refusals, error?.more]).toEqual([[reason], { error: text }])
  // A read is not written to the audit log.
  expect(audit).toEqual([])
})

test.each<[Access, string, string]>([
  ['session', 'This needs a signed-in person; your role is producer.', 'Sign in as a person.'],
  ['viewer', 'This needs the viewer role; your role is producer.', 'Ask an admin for the role.'],
  ['query', 'This needs the viewer role or a client token; your role is producer.', 'Ask an admin for the role.'],
  ['operator', 'This needs the operator role; your role is producer.', 'Ask an admin for the role.'],
  ['admin', 'This needs the admin role; your role is producer.', 'Ask an admin for the role.'],
])('a refusal of access %s names what is needed', async (access, message, hint) => {
  expect((await admitted(withToken('producer'), access)).error).toMatchObject({ message, hint, status: 403 })
})

test('a refused change is written to the audit log', async () => {
  const visitor = signedIn('viewer')

  const { audit, code } = await admitted(visitor, 'operator', 'POST', CSRF)

  expect(code).toBe('forbidden')
  expect(audit).toEqual([
    {
      ...{ principal: visitor.principal, address: '10.0.0.1', requestId: 'r1', action: 'POST /api/v1/x' },
      ...{ target: '/api/v1/x?q=1', result: 'refused', detail: 'needs operator, is viewer' },
    },
  ])
})

// Forged requests

test.each<[string, string, IncomingHttpHeaders, string]>([
  ['GET', 'without the header', {}, ''],
  ['HEAD', 'without the header', {}, ''],
  ['POST', 'with the header', CSRF, ''],
  ['POST', 'without the header', {}, 'csrf'],
  ['DELETE', 'without the header', {}, 'csrf'],
  ['PATCH', 'with another value', { 'x-csrf': 'secreT' }, 'csrf'],
  ['POST', 'with a longer value', { 'x-csrf': 'secret1' }, 'csrf'],
  ['POST', 'with a part of the value', { 'x-csrf': 'secre' }, 'csrf'],
  ['POST', 'with an empty value', { 'x-csrf': '' }, 'csrf'],
  ['POST', 'with the value twice', { 'x-csrf': ['secret', 'secret'] }, 'csrf'],
])('a %s of a session %s', async (method, _, headers, code) => {
  const found = await admitted(signedIn('admin'), 'admin', method, headers)

  expect(found.code).toBe(code)
  expect(found.refusals).toEqual(code === '' ? [] : ['cross-site'])
  expect(found.audit.map(({ detail }) => detail)).toEqual(code === '' ? [] : ['csrf: x-csrf is missing or wrong'])
})

test('a token needs no x-csrf header', async () => {
  expect((await admitted(withToken('admin'), 'viewer', 'POST')).code).not.toBe('csrf')
})

const HOST = { host: 'vacancy.test:8080' }

test.each<[string, IncomingHttpHeaders, string, boolean]>([
  ['a program', HOST, '', true],
  ['its own page', { ...HOST, origin: 'http://vacancy.test:8080' }, '', true],
  ['its own page over TLS', { host: 'vacancy.test', origin: 'https://vacancy.test:443' }, '', true],
  ['another port', { ...HOST, origin: 'http://vacancy.test:8081' }, '', false],
  ['another host', { ...HOST, origin: 'http://evil.test:8080' }, '', false],
  ['a page without an origin', { ...HOST, origin: 'null' }, '', false],
  ['a request without a host', { origin: 'http://vacancy.test' }, '', false],
  ['the page at its base address', { ...HOST, origin: 'https://console.test' }, 'https://console.test', true],
  ['a page of the same host without TLS', { ...HOST, origin: 'http://console.test' }, 'https://console.test', false],
  ['another page than that of its base address', { ...HOST, origin: 'https://evil.test' }, 'https://c.test', false],
  ['the same origin', { ...HOST, 'sec-fetch-site': 'same-origin' }, '', true],
  ['the address bar', { ...HOST, 'sec-fetch-site': 'none' }, '', true],
  ['another site', { ...HOST, 'sec-fetch-site': 'cross-site' }, '', false],
  ['a sibling of its host', { ...HOST, 'sec-fetch-site': 'same-site', origin: 'http://vacancy.test:8080' }, '', false],
])('a change that comes from %s', async (_, headers, baseUrl, isAdmitted) => {
  const found = await admitted(ANONYMOUS, 'open', 'POST', headers, { baseUrl })

  expect([found.code, found.refusals]).toEqual(isAdmitted ? ['', []] : ['cross-site', ['cross-site']])
  // Reads are protected by the browser.
  expect((await admitted(ANONYMOUS, 'open', 'GET', headers, { baseUrl })).code).toBe('')
})

// Hosts

const requestTo = (host: string | undefined, localAddress: string | undefined, headers: IncomingHttpHeaders = {}) =>
  ({ headers: { host, ...headers }, socket: { localAddress, remoteAddress: '10.0.0.9' } }) as unknown as IncomingMessage

test.each<[string | undefined, string | undefined, Given, boolean]>([
  ['10.0.0.1:8080', '10.0.0.1', {}, true],
  ['10.0.0.2:8080', '10.0.0.1', {}, false],
  ['10.0.0.1', '::ffff:10.0.0.1', {}, true],
  ['[fe80::1]:8080', 'fe80::1', {}, true],
  ['localhost:8080', '127.0.0.1', {}, true],
  ['localhost', '::1', {}, true],
  ['127.0.0.5', '127.0.0.1', {}, true],
  ['[::1]', '127.0.0.1', {}, true],
  ['localhost', '::ffff:127.0.0.1', {}, true],
  ['localhost', '10.0.0.1', {}, false],
  ['127.0.0.1', '10.0.0.1', {}, false],
  ['10.0.0.1', '127.0.0.1', {}, false],
  ['127.evil.test', '127.0.0.1', {}, false],
  ['evil.test', '127.0.0.1', {}, false],
  ['vacancy.test:1', '10.0.0.1', { baseUrl: 'https://vacancy.test' }, true],
  ['evil.test', '10.0.0.1', { baseUrl: 'https://vacancy.test' }, false],
  ['a.test', '10.0.0.1', { allowedHosts: ['b.test', 'a.test'] }, true],
  ['c.test', '10.0.0.1', { allowedHosts: ['b.test', 'a.test'] }, false],
  ['', '10.0.0.1', {}, false],
  [undefined, '10.0.0.1', {}, false],
  ['a b', '10.0.0.1', { allowedHosts: ['a b'] }, false],
  ['evil.test', undefined, {}, false],
])('the host %o at the address %o with %j', (host, address, given, isOwn) => {
  expect(isOwnHost(requestTo(host, address), optionsOf(given).options)).toBe(isOwn)
})

// Live channels

async function upgraded(request: IncomingMessage, given: Given) {
  const { options, refusals, failed } = optionsOf(given)
  const result = await admitUpgrade(request, options).catch((error: ProblemError) => error)
  return { result, refusals, failed }
}
const OWN = '10.0.0.1'

test('a live channel of a viewer is admitted', async () => {
  const visitor = signedIn('viewer')

  expect(await upgraded(requestTo(OWN, OWN), { visitor })).toEqual({ result: visitor, refusals: [], failed: [] })
})

test.each<[string, IncomingMessage, Given, object, string[], string[]]>([
  [
    'of a foreign host',
    requestTo('evil.test', OWN),
    {},
    { code: 'foreign-host', message: 'This control plane does not serve the host evil.test.' },
    ['host'],
    [],
  ],
  [
    'of another page',
    requestTo(OWN, OWN, { origin: 'http://evil.test' }),
    {},
    { code: 'cross-site' },
    ['cross-site'],
    [],
  ],
  [
    'after too many refusals',
    requestTo(OWN, OWN),
    { visitor: signedIn('viewer'), waitSeconds: 1 },
    { code: 'too-many-tries', message: 'Too many refused live channels.', hint: 'Try again in 1 s.' },
    ['too-many'],
    [],
  ],
  ['without credentials', requestTo(OWN, OWN), {}, { code: 'not-signed-in' }, ['unauthenticated'], ['10.0.0.9']],
  [
    'of a token of producers',
    requestTo(OWN, OWN),
    { visitor: withToken('producer') },
    { code: 'not-signed-in' },
    ['unauthenticated'],
    ['10.0.0.9'],
  ],
])('a live channel %s is refused', async (_, request, given, error, refusals, failed) => {
  const found = await upgraded(request, given)

  expect(found.result).toMatchObject(error)
  expect([found.refusals, found.failed]).toEqual([refusals, failed])
})
