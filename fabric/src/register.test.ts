import { systemClock } from '@vacancy/shared'
import { systemSchedule } from '@vacancy/shared/schedule'
import { eventually } from '@vacancy/testkit/until'
import { expect, onTestFinished, test } from 'vitest'
import { type RegistrationOptions, startRegistration } from './register.ts'
import { openRegistryClient } from './registry-client.ts'
import { startExistingRegistry } from './testing/existing/registry.ts'
import { bodyOf, keepingLog, stub } from './testing/http.ts'
import { runningRegistry } from './testing/registries.ts'

function open(addr: string, more: Partial<RegistrationOptions> = {}) {
  const log = keepingLog()
  const registry = openRegistryClient({ addr, clock: systemClock, log })
  const registration = startRegistration({
    registry,
    kind: 'bridge',
    id: 'b1',
    zone: 'z1',
    shard: 's1',
    intervalMs: 10_000,
    instance: 'i1',
    version: '0.1.0',
    startedAt: '2026-11-20T08:00:00Z',
    clock: systemClock,
    schedule: systemSchedule,
    random: () => 0.5,
    log,
    ...more,
  })
  onTestFinished(async () => {
    await registration.stop()
    registry.close()
  })
  return { registration, registry, log }
}

test('a bridge registers at once with what it reports, and deregisters when it stops', async () => {
  const registry = await runningRegistry()
  const { registration } = open(registry.addr, { apiUrl: 'http://b1:9100', health: () => 'ready' })

  const bridges = await eventually(async () => {
    const { bridges } = await registry.topology()
    expect(bridges).toHaveLength(1)
    return bridges
  })

  expect(bridges[0]).toMatchObject({
    id: 'b1',
    zone: 'z1',
    shard: 's1',
    instance: 'i1',
    version: '0.1.0',
    api_url: 'http://b1:9100',
    health: 'ready',
  })
  await eventually(() => expect(registration.ageMs()).toBeLessThan(5_000))
  await registration.stop()
  expect((await registry.topology()).bridges).toEqual([])
})

test('heartbeats are repeated', async () => {
  const registry = await startExistingRegistry()
  onTestFinished(registry.close)
  open(registry.addr, { intervalMs: 20, kind: 'router', id: 'r1' })

  await eventually(() => expect(registry.requests.length).toBeGreaterThan(2))

  expect(registry.routers.get('r1')).toMatchObject({ zone: 'z1', shard: 's1' })
  expect(new Set(registry.requests)).toEqual(new Set(['POST /register']))
})

test('an existing registry answers without a body, and does not know deregistration', async () => {
  const registry = await startExistingRegistry()
  onTestFinished(registry.close)
  const { registration, log } = open(registry.addr)
  await eventually(() => expect(registration.ageMs()).toBeDefined())

  await registration.stop()

  expect(registry.requests).toEqual(['POST /register', 'DELETE /register/bridge/b1'])
  expect(log.lines.filter(({ level }) => level !== 'info')).toEqual([])
})

test('an interval of more than a third of the timeout is warned about once', async () => {
  const registry = await runningRegistry({ heartbeatTimeoutMs: 1_000 })
  const { log } = open(registry.addr, { intervalMs: 400 })

  await eventually(() => expect(log.lines.some(({ text }) => text.includes('third'))).toBe(true))
  await eventually(async () => expect((await registry.topology()).bridges[0]?.age_secs).toBeLessThan(0.3))

  expect(log.lines.filter(({ text }) => text.includes('third'))).toHaveLength(1)
})

test('a registry that fails is left for the next one, and one that refuses is reported', async () => {
  const down = await stub((_, response) => {
    response.writeHead(503)
    response.end()
  })
  onTestFinished(down.stop)
  const bodies: string[] = []
  const refusing = await stub(async (request, response) => {
    bodies.push(await bodyOf(request))
    response.writeHead(403)
    response.end('{"error":"not of this zone"}')
  })
  onTestFinished(refusing.stop)

  const { registration, registry } = open(`${down.addr},${refusing.addr}`)

  await eventually(() => expect(registration.refusal()).toBe('not of this zone (403)'))
  expect(registry.health()).toMatchObject({ address: `http://${refusing.addr}`, isUp: true, fault: '' })
  expect(JSON.parse(bodies[0] ?? '')).not.toHaveProperty('api_url')
  expect(registration.ageMs()).toBe(undefined)
})

test('a registry that is down is tried again with growing pauses, and gets no deregistration', async () => {
  const pauses: number[] = []
  const schedule = {
    after: (ms: number, run: () => void) => {
      pauses.push(ms)
      return systemSchedule.after(Math.min(ms, 1), run)
    },
  }
  const { registration, registry } = open('127.0.0.1:1', { schedule })

  await eventually(() => expect(pauses.length).toBeGreaterThan(8))

  expect(pauses.slice(0, 8)).toEqual([100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000])
  expect(registry.health().isUp).toBe(false)
  await registration.stop()
})
