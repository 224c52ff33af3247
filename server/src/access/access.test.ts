import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { turnableClock } from '@vacancy/shared'
import { onBothDatabases } from '@vacancy/testkit/databases'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { callerOf, personOf, startTestControlPlane, type TestControlPlane } from '../testing/control-plane.ts'

const PASSWORD = 'correct horse battery'

onBothDatabases((newDatabase) => {
  const clock = turnableClock(Date.parse('2026-11-22T00:00:00Z'))
  let plane: TestControlPlane

  beforeAll(async () => {
    plane = await startTestControlPlane({ databaseUrl: await newDatabase(), clock })
  })
  afterAll(async () => await plane.stop())

  /** A person with a password. The clock advances, so that attempts of other tests do not count. */
  const withPassword = async (name: string) => {
    clock.advance(120_000)
    const person = await plane.signIn('viewer', name)
    expect((await person.call('PUT', '/api/v1/me/password', { next: PASSWORD })).status).toBe(204)
    return person
  }
  const signIn = (name: string, password: string) =>
    plane.anonymous().call('POST', '/api/v1/session', { name, password })

  test('the set-up code creates the first admin once', async () => {
    expect((await plane.anonymous().call('GET', '/api/v1/sign-in')).body.setUp).toBe(true)
    const code = await plane.people.setUpCode()
    const body = { code, name: 'Ada', password: PASSWORD }

    const answers = await Promise.all([1, 2, 3].map(() => plane.anonymous().call('POST', '/api/v1/set-up', body)))

    expect(answers.map(({ status }) => status).sort()).toEqual([201, 401, 401])
    const [made] = answers.filter(({ status }) => status === 201)
    expect(made?.body.person).toMatchObject({ name: 'Ada', role: 'admin' })
    expect(made?.headers.get('set-cookie')).toMatch(/^vacancy_session=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict$/)
    expect((await plane.anonymous().call('GET', '/api/v1/sign-in')).body.setUp).toBe(false)
    expect(await plane.people.setUpCode()).toBeUndefined()
  })

  test('of concurrent uses of a link one signs in, and a GET does not redeem it', async () => {
    const code = (await plane.people.signInCode('linked', 'viewer')) as string
    for (const path of [`/sign-in?code=${code}`, `/api/v1/session/link?code=${code}`])
      expect((await plane.anonymous().call('GET', path)).status).toBe(404)

    const answers = await Promise.all(
      [1, 2, 3, 4].map(() => plane.anonymous().call('POST', '/api/v1/session/link', { code })),
    )

    expect(answers.map(({ status }) => status).sort()).toEqual([200, 401, 401, 401])
    expect(answers.find(({ status }) => status === 200)?.body).toMatchObject({
      person: { name: 'linked' },
      signedInBy: 'link',
    })
  })

  test('a link is valid for a day, and only the newest link of a person', async () => {
    const first = await plane.people.signInCode('late', 'viewer')
    const second = await plane.people.signInCode('late')
    expect((await plane.anonymous().call('POST', '/api/v1/session/link', { code: first })).status).toBe(401)

    clock.advance(86_400_001)

    expect((await plane.anonymous().call('POST', '/api/v1/session/link', { code: second })).status).toBe(401)
  })

  test('name and password sign in, with the name in any case', async () => {
    await withPassword('Grace')

    const answer = await signIn('gRACE', PASSWORD)

    expect(answer.status).toBe(200)
    expect(answer.body).toMatchObject({ person: { name: 'Grace' }, signedInBy: 'password' })
    expect(answer.text).not.toContain('argon2')
  })

  test('an unknown name, a wrong password, a disabled person and one without password get the same response', async () => {
    await withPassword('known')
    const barred = await withPassword('barred')
    const admin = await plane.signIn('admin')
    await admin.call('PUT', `/api/v1/people/${barred.me?.person.id}`, { disabled: true })
    await plane.signIn('viewer', 'by-link-only')

    const answers = [
      await signIn('unknown-name', PASSWORD),
      await signIn('known', 'not the password'),
      await signIn('barred', PASSWORD),
      await signIn('by-link-only', PASSWORD),
    ].map(({ status, body }) => ({ status, ...body, requestId: '' }))

    expect(answers[0]).toMatchObject({ status: 401, code: 'sign-in-failed' })
    for (const answer of answers) expect(answer).toEqual(answers[0])
  })

  test('after five attempts in a minute a name is locked for the reported time, even with the correct password', async () => {
    await withPassword('guessed')
    const tries = await Promise.all(Array.from({ length: 8 }, () => signIn('guessed', 'not the password')))

    expect(tries.map(({ status }) => status).sort()).toEqual([401, 401, 401, 401, 401, 429, 429, 429])
    const waiting = await signIn('guessed', PASSWORD)
    expect(waiting.status).toBe(429)
    expect(Number(waiting.headers.get('retry-after'))).toBeGreaterThan(0)
    expect(waiting.body).toMatchObject({
      detail: 'Too many sign-in attempts.',
      hint: expect.stringMatching(/^Try again in \d+ s\.$/),
    })

    clock.advance(60_001)
    expect((await signIn('guessed', PASSWORD)).status).toBe(200)
  })

  test('an address that tries many names is locked as well', async () => {
    clock.advance(120_000)
    const statuses: number[] = []
    for (let i = 0; i < 21; i++) statuses.push((await signIn(`name-${i}`, 'not the password')).status)

    expect(statuses.filter((status) => status === 401).length).toBe(20)
    expect(statuses.at(-1)).toBe(429)
    clock.advance(60_001)
  })

  test('signing out ends the session and invalidates its cookie', async () => {
    const person = await plane.signIn('viewer')
    expect((await person.call('GET', '/api/v1/me')).status).toBe(200)

    const out = await person.call('DELETE', '/api/v1/session')

    expect(out.status).toBe(204)
    expect(out.headers.get('set-cookie')).toMatch(/^vacancy_session=; Max-Age=0; /)
    const after = await person.call('GET', '/api/v1/me')
    expect(after.status).toBe(401)
    expect(after.body.code).toBe('session-ended')
  })

  test('a session ends after 12 hours without requests', async () => {
    const person = await plane.signIn('viewer')
    for (let hours = 0; hours < 24; hours += 8) {
      clock.advance(8 * 3_600_000)
      expect((await person.call('GET', '/api/v1/me')).status).toBe(200)
    }

    const { browser } = await withToken('client')
    clock.advance(12 * 3_600_000)

    expect((await person.call('GET', '/api/v1/me')).status).toBe(401)
    expect((await browser.call('GET', '/api/v1/me')).status).toBe(401)
  })

  test('a new password ends the other sessions and requires the old one, except after signing in by link', async () => {
    const first = await withPassword('changing')
    const second = personOf(plane.url, await signIn('changing', PASSWORD))

    const wrong = await second.call('PUT', '/api/v1/me/password', { current: 'a guess', next: 'another password' })
    expect(wrong.status).toBe(403)
    expect(wrong.body).toMatchObject({ code: 'wrong-password', field: 'current' })

    const right = await second.call('PUT', '/api/v1/me/password', { current: PASSWORD, next: 'another password' })
    expect(right.status).toBe(204)
    expect((await first.call('GET', '/api/v1/me')).status).toBe(401)
    expect((await second.call('GET', '/api/v1/me')).status).toBe(200)
    expect((await signIn('changing', PASSWORD)).status).toBe(401)
    expect((await signIn('changing', 'another password')).status).toBe(200)
  })

  test('a changed role applies from the next request, and disabling a person ends the sessions immediately', async () => {
    const admin = await plane.signIn('admin')
    const person = await plane.signIn('admin')
    const path = `/api/v1/people/${person.me?.person.id}`

    expect((await admin.call('PUT', path, { role: 'viewer' })).body.role).toBe('viewer')
    expect((await person.call('GET', '/api/v1/people')).status).toBe(403)

    expect((await admin.call('PUT', path, { disabled: true })).body.disabled).toBe(true)
    expect((await person.call('GET', '/api/v1/me')).status).toBe(401)
    expect((await admin.call('POST', `${path}/link`)).status).toBe(409)
  })

  test('disabling a person revokes an unused sign-in link, also for when the person is enabled again', async () => {
    const admin = await plane.signIn('admin')
    const added = await admin.call('POST', '/api/v1/people', { name: 'Paused', role: 'operator' })
    const code = added.body.link.split('code=')[1]
    const path = `/api/v1/people/${added.body.person.id}`

    expect((await admin.call('PUT', path, { disabled: true })).body.disabled).toBe(true)
    expect((await admin.call('PUT', path, { disabled: false })).body.disabled).toBe(false)

    expect((await plane.anonymous().call('POST', '/api/v1/session/link', { code })).status).toBe(401)
  })

  test('the last admin keeps the role, even when two admins demote each other concurrently', async () => {
    const [one, two] = [await plane.signIn('admin', 'one'), await plane.signIn('admin', 'two')]
    const everybody = (await one.call('GET', '/api/v1/people')).body.people as {
      id: string
      name: string
      role: string
    }[]
    for (const { id, name, role } of everybody)
      if (role === 'admin' && name !== 'one' && name !== 'two')
        await one.call('PUT', `/api/v1/people/${id}`, { role: 'viewer' })

    const answers = await Promise.all([
      one.call('PUT', `/api/v1/people/${two.me?.person.id}`, { role: 'viewer' }),
      two.call('PUT', `/api/v1/people/${one.me?.person.id}`, { disabled: true }),
    ])

    // The second request is refused: the person is no longer admin, is signed out, or the other one is the last admin.
    expect(answers.filter(({ status }) => status === 200).length).toBe(1)
    const left = await Promise.all([one, two].map((person) => person.call('GET', '/api/v1/people')))
    expect(left.filter(({ status }) => status === 200).length).toBe(1)
    const [admin] = [one, two].filter((_, i) => left[i]?.status === 200)
    const refused = await admin?.call('PUT', `/api/v1/people/${admin.me?.person.id}`, { role: 'operator' })
    expect(refused?.status).toBe(409)
    expect(refused?.body.code).toBe('last-admin')
    await plane.people.signInCode('spare-admin', 'admin')
  })

  test('people are added with a sign-in link, and names are unique', async () => {
    const admin = await plane.signIn('admin')

    const added = await admin.call('POST', '/api/v1/people', { name: 'Linus', role: 'operator' })
    expect(added.status).toBe(201)
    expect(added.body.link).toMatch(new RegExp(`^${plane.url}/sign-in#code=[\\w-]{43}$`))
    const code = added.body.link.split('code=')[1]
    const signedIn = await plane.anonymous().call('POST', '/api/v1/session/link', { code })
    expect(signedIn.body.person).toMatchObject({ name: 'Linus', role: 'operator' })

    const again = await admin.call('POST', '/api/v1/people', { name: 'linus', role: 'viewer' })
    expect(again.status).toBe(409)
    expect(again.body.field).toBe('name')
  })

  test('a token is shown once, stored as a hash, used, expires and is revoked', async () => {
    const admin = await plane.signIn('admin')
    const expiresAt = new Date(clock.wallMs() + 3_600_000).toISOString()
    const made = await admin.call('POST', '/api/v1/tokens', { name: 'prometheus', role: 'monitoring', expiresAt })
    expect(made.status).toBe(201)
    const caller = callerOf(plane.url, { authorization: `Bearer ${made.body.value}` })

    expect((await caller.call('GET', '/metrics')).status).toBe(200)
    const listed = await admin.call('GET', '/api/v1/tokens')
    expect(listed.text).not.toContain(made.body.value)
    expect(listed.body.tokens[0]).toMatchObject({ name: 'prometheus', expiresAt, lastUsedFrom: '127.0.0.1' })
    expect(listed.body.tokens[0].lastUsedAt).not.toBeNull()

    clock.advance(3_600_001)
    const late = await caller.call('GET', '/metrics')
    expect(late.status).toBe(401)
    expect(late.body).toMatchObject({ code: 'invalid-token', detail: `The token ended at ${expiresAt}.` })

    const other = await plane.token('client')
    expect((await other.call('GET', '/metrics')).status).toBe(200)
    const again = await plane.signIn('admin')
    expect((await again.call('DELETE', `/api/v1/tokens/${other.id}`)).status).toBe(204)
    expect((await other.call('GET', '/metrics')).status).toBe(401)
    expect((await again.call('DELETE', `/api/v1/tokens/${other.id}`)).status).toBe(404)
    const past = await again.call('POST', '/api/v1/tokens', { name: 'x', role: 'admin', expiresAt })
    expect(past.body).toMatchObject({ status: 400, field: 'expiresAt' })
  })

  /** A new token with a role, its value, and a browser session that began with it. */
  const withToken = async (role: string, expiresAt: string | null = null) => {
    clock.advance(120_000)
    const admin = await plane.signIn('admin')
    const made = await admin.call('POST', '/api/v1/tokens', { name: `console of ${role}`, role, expiresAt })
    const answer = await plane.anonymous().call('POST', '/api/v1/session/token', { token: ` ${made.body.value}\n` })
    expect(answer.status).toBe(200)
    return { id: made.body.token.id as string, answer, admin, browser: personOf(plane.url, answer) }
  }

  test.each([
    ['monitoring', 'viewer', [200, 403, 403, 403]],
    ['client', 'viewer', [200, 200, 403, 403]],
    ['admin', 'admin', [200, 200, 404, 200]],
  ] as const)(
    'a browser that signs in with a %s token sees the pages of a %s and has the permissions of the token',
    async (role, pages, statuses) => {
      const { id, answer, browser } = await withToken(role)

      expect(answer.headers.get('set-cookie')).toMatch(
        /^vacancy_session=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict$/,
      )
      expect((await browser.call('GET', '/api/v1/me')).body).toMatchObject({
        person: { id, name: `console of ${role}`, role: pages },
        signedInBy: 'token',
      })
      const request = [
        await browser.call('GET', '/api/v1/summary'),
        await browser.call('GET', '/api/v1/playground'),
        await browser.call('POST', '/api/v1/attention/x/aside', { until: 'hour' }),
        await browser.call('GET', '/api/v1/people'),
      ]
      expect(request.map(({ status }) => status)).toEqual(statuses)
    },
  )

  test('changes in a token session are audited under the token', async () => {
    const { browser, admin } = await withToken('admin')

    await browser.call('POST', '/api/v1/people', { name: 'by-token', role: 'viewer' })

    const { entries } = (await admin.call('GET', '/api/v1/audit?limit=2')).body
    expect(entries).toMatchObject([
      { actor: 'console of admin', actorKind: 'token', action: 'person.add', target: 'by-token' },
      { actor: 'console of admin', actorKind: 'token', action: 'session.start', detail: 'by token' },
    ])
  })

  test('a token session ends when the token is revoked or expires, or by signing out', async () => {
    const revoked = await withToken('client')
    expect((await revoked.admin.call('DELETE', `/api/v1/tokens/${revoked.id}`)).status).toBe(204)
    expect((await revoked.browser.call('GET', '/api/v1/me')).body.code).toBe('session-ended')

    const expiresAt = new Date(clock.wallMs() + 3_600_000).toISOString()
    const expiring = await withToken('client', expiresAt)
    expect((await expiring.browser.call('GET', '/api/v1/me')).body.endsAt).toBe(expiresAt)
    clock.advance(3_600_001)
    expect((await expiring.browser.call('GET', '/api/v1/me')).status).toBe(401)

    const left = await withToken('client')
    expect((await left.browser.call('DELETE', '/api/v1/session')).status).toBe(204)
    expect((await left.browser.call('GET', '/api/v1/me')).status).toBe(401)
  })

  test('a token session has preferences and no password, and its changes need x-csrf', async () => {
    const { browser } = await withToken('monitoring')
    const chosen = { theme: 'dark', density: 'dense', keys: false }

    expect((await browser.call('PUT', '/api/v1/me/preferences', chosen)).status).toBe(200)

    expect((await browser.call('GET', '/api/v1/me')).body.preferences).toMatchObject(chosen)
    const password = await browser.call('PUT', '/api/v1/me/password', { current: '', next: PASSWORD })
    expect(password.body).toMatchObject({ status: 409, code: 'no-password' })
    const forged = callerOf(plane.url, { cookie: browser.headers['cookie'] as string })
    expect((await forged.call('PUT', '/api/v1/me/preferences', chosen)).body.code).toBe('csrf')
  })

  test('unknown, revoked and expired tokens get the same response, are audited without their value, and are limited to twenty attempts a minute', async () => {
    const gone = await withToken('admin')
    const value = (await gone.admin.call('POST', '/api/v1/tokens', { name: 'gone', role: 'admin' })).body
    await gone.admin.call('DELETE', `/api/v1/tokens/${value.token.id}`)
    const soon = new Date(clock.wallMs() + 1_000).toISOString()
    const late = (await gone.admin.call('POST', '/api/v1/tokens', { name: 'late', role: 'admin', expiresAt: soon }))
      .body
    clock.advance(60_001)
    const tokens = ['vct_forged', value.value as string, late.value as string]

    const answers = []
    for (const token of tokens) answers.push(await plane.anonymous().call('POST', '/api/v1/session/token', { token }))

    const reported = answers.map(({ status, body }) => ({ status, ...body, requestId: '' }))
    expect(reported[0]).toMatchObject({ status: 401, code: 'sign-in-failed' })
    for (const one of reported) expect(one).toEqual(reported[0])
    const audited = await gone.admin.call('GET', '/api/v1/audit?action=session.start&limit=3')
    expect(audited.body.entries.map(({ result }: { result: string }) => result)).toEqual(Array(3).fill('refused'))
    for (const text of [audited.text, ...plane.log]) for (const token of tokens) expect(text).not.toContain(token)
    for (let i = 3; i < 20; i++) await plane.anonymous().call('POST', '/api/v1/session/token', { token: 'vct_forged' })
    expect((await plane.anonymous().call('POST', '/api/v1/session/token', { token: 'vct_forged' })).status).toBe(429)
    clock.advance(60_001)
  })

  test('twenty invalid tokens from an address do not lock out valid ones behind it, as they used to', async () => {
    clock.advance(120_000)
    const admin = await plane.signIn('admin')
    const { value } = (await admin.call('POST', '/api/v1/tokens', { name: 'prometheus', role: 'monitoring' })).body
    const good = callerOf(plane.url, { authorization: `Bearer ${value}` })
    const wrong = callerOf(plane.url, { authorization: 'Bearer vct_forged' })
    for (let i = 0; i < 20; i++) expect((await wrong.call('GET', '/metrics')).status).toBe(401)

    const waiting = await wrong.call('GET', '/metrics')

    expect(waiting.status).toBe(429)
    expect(Number(waiting.headers.get('retry-after'))).toBeGreaterThan(0)
    expect((await good.call('GET', '/metrics')).status).toBe(200)
    clock.advance(60_001)
    expect((await wrong.call('GET', '/metrics')).status).toBe(401)
  })

  test('tokens on open paths are not API tokens: nodes fetch snapshots with tokens of their own', async () => {
    const node = callerOf(plane.url, { authorization: 'Bearer of-the-node' })
    for (let i = 0; i < 25; i++) expect((await node.call('GET', '/health')).status).toBe(200)

    expect((await node.call('GET', '/metrics')).status).toBe(401)
  })

  test('console settings override the configuration and survive a restart', async () => {
    const admin = await plane.signIn('admin')
    const environment = { label: 'EU PROD', kind: 'production' }

    expect((await admin.call('PUT', '/api/v1/settings', { environment, baseUrl: '' })).status).toBe(204)

    expect((await admin.call('GET', '/api/v1/me')).body.environment).toEqual(environment)
    expect((await admin.call('GET', '/api/v1/settings')).body).toMatchObject({ environment, nodes: 0 })
    const chosen = { theme: 'dark', density: 'dense', keys: false }
    expect((await admin.call('PUT', '/api/v1/me/preferences', chosen)).body).toMatchObject(chosen)
    expect((await admin.call('GET', '/api/v1/me')).body.preferences).toMatchObject(chosen)
  })

  test('shard table preferences are stored, and omitted ones keep the value set by another tab', async () => {
    const person = await plane.signIn('viewer')
    const put = (body: unknown) => person.call('PUT', '/api/v1/me/preferences', body)
    const view = { name: 'behind', filter: 'state:behind', sort: 'lag:down', columns: ['shard', 'lag'] }
    const usual = { columns: null, widths: {}, views: [] }
    expect((await person.call('GET', '/api/v1/me')).body.preferences.shards).toEqual(usual)

    await Promise.all([
      put({ shards: { views: [view] } }),
      put({ theme: 'dark' }),
      put({ shards: { widths: { lag: 90 } } }),
      put({ queue: { columns: ['topic', 'dead'] } }),
      put({ jobs: { views: [view] } }),
    ])

    const kept = {
      theme: 'dark',
      density: 'compact',
      keys: true,
      ranges: [],
      shards: { ...usual, widths: { lag: 90 }, views: [view] },
      queue: { ...usual, columns: ['topic', 'dead'] },
      jobs: { ...usual, views: [view] },
    }
    expect((await person.call('GET', '/api/v1/me')).body.preferences).toEqual(kept)
    const refused = [
      { shards: { views: [view, view] } },
      { shards: { views: [{ ...view, name: ' \n ' }] } },
      { shards: { views: Array.from({ length: 21 }, (_, i) => ({ ...view, name: `${i}` })) } },
      { shards: { widths: { lag: 47 } } },
      { shards: { widths: Object.fromEntries(Array.from({ length: 33 }, (_, i) => [`c${i}`, 100])) } },
      { shards: { columns: [] } },
      { shards: { columns: ['<b>'] } },
      { theme: 'pink' },
    ]
    for (const body of refused) expect((await put(body)).status).toBe(400)
    expect((await put({ shards: { views: [], columns: ['shard', 'lag'] } })).body.shards).toEqual({
      ...{ columns: ['shard', 'lag'], widths: { lag: 90 }, views: [] },
    })
  })

  test('no secret is in the log or in clear text on disk', async () => {
    const made = await plane.token('admin')
    const person = await withPassword('secretive')
    await signIn('secretive', PASSWORD)
    const secrets = [PASSWORD, made.headers['authorization']?.slice(7) ?? '', person.headers['cookie']?.slice(16) ?? '']
    for (const secret of secrets) expect(secret.length).toBeGreaterThan(10)

    const onDisk = readdirSync(plane.dataDir)
      .filter((file) => file.includes('sqlite'))
      .map((file) => readFileSync(join(plane.dataDir, file), 'latin1'))
    for (const secret of secrets)
      for (const text of [...plane.log, ...onDisk]) expect(text.includes(secret)).toBe(false)
  })

  test('a token that ends is named on /ready from 14 days before, unless it was made for less or is revoked', async () => {
    const admin = await plane.signIn('admin')
    const made = await Promise.all(
      [20, 10].map(async (days) => {
        const expiresAt = new Date(clock.wallMs() + days * 86_400_000).toISOString()
        return (await admin.call('POST', '/api/v1/tokens', { name: `of ${days} days`, role: 'client', expiresAt })).body
      }),
    )
    const ready = async () => (await plane.anonymous().call('GET', '/ready')).body
    expect(await ready()).toEqual({ ready: true, reasons: [] })
    clock.advance(7 * 86_400_000)
    const [{ token }] = made
    expect(await ready()).toEqual({
      ready: true,
      reasons: [{ name: 'certificate_ends', message: `the token of 20 days ends at ${token.expiresAt}` }],
    })
    await (await plane.signIn('admin')).call('DELETE', `/api/v1/tokens/${token.id}`)
    expect(await ready()).toEqual({ ready: true, reasons: [] })
  })
})
