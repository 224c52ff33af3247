/** Hosts that are names, as those of pods: their addresses change, and each connection looks them up. */
import dns from 'node:dns'
import { until } from '@vacancy/testkit/until'
import { expect, onTestFinished, test, vi } from 'vitest'
import { createEnv } from '../env.ts'
import { openTlsTransport } from './tls-transport.ts'
import type { Address } from './transport-state.ts'

const quiet = () => undefined
const HOST = 'b.hotels.svc'

type Found = (error: null, address: string | dns.LookupAddress[], family?: number) => void

test('a peer that restarts at another address is found there by its name', async () => {
  let address = '127.0.0.2'
  const lookups: string[] = []
  const lookup = (name: string, { all }: dns.LookupOptions, found: Found) => {
    const now = name === HOST ? address : name
    if (name === HOST) lookups.push(now)
    if (all) found(null, [{ address: now, family: 4 }])
    else found(null, now, 4)
  }
  const spy = vi.spyOn(dns, 'lookup').mockImplementation(lookup as never)
  onTestFinished(() => spy.mockRestore())
  let place: Address | undefined
  const frames: string[] = []
  const openAt = async (node: string, host: string, port = 0) => {
    const transport = await openTlsTransport({
      env: createEnv({ debug: quiet, info: quiet, warn: quiet, error: quiet }),
      ...{ node, host, port, tls: undefined, requireNodeId: undefined, onDuplicate: quiet },
      limits: { retryMsMin: 5, retryMsMax: 20, lossMs: 60_000 },
      addressOf: async () => place as Address,
    })({
      onFrame: (_peer, _stream, frame) => frames.push(Buffer.from(frame).toString()),
      onOpen: quiet,
      onClosed: quiet,
    })
    onTestFinished(async () => await transport.close())
    return transport
  }
  const before = await openAt('b', '127.0.0.2')
  place = { host: HOST, port: before.port }
  const a = await openAt('a', '127.0.0.1')
  a.setPeers(['b'])
  await until('they are connected', () => a.counters().outgoing === 3)
  expect(new Set(lookups)).toEqual(new Set(['127.0.0.2']))

  await before.close()
  await until('the connections are lost', () => a.counters().outgoing === 0)
  address = '127.0.0.3'
  await openAt('b', address, before.port)
  await until('they are connected again', () => a.counters().outgoing === 3)
  a.send('b', 'append', Buffer.from('still b'))

  await until('a frame arrives', () => frames.includes('still b'))
  expect(lookups).toContain('127.0.0.3')
})
