import { expect, onTestFinished, test } from 'vitest'
import { connectIn } from './client.ts'
import { startScriptedNode } from './testing/scripted-node.ts'
import { turnedWorld } from './testing/turned-world.ts'

test('without retries the first refusal, a lost connection and a failed connect are reported at once', async () => {
  const node = await startScriptedNode()
  onTestFinished(() => node.close())
  const client = await connectIn(turnedWorld(), { port: node.port, retry: false })
  const peer = await node.nextPeer()
  const read = () => client.listRoomTypes({ propertyId: 'h1' })
  const write = () => client.setAvailability({ propertyId: 'h1', roomType: 'suite', date: '2026-12-24', amount: 1 })

  const refused = expect(read()).rejects.toMatchObject({ name: 'VacancyRetryError', code: '503' })
  ;(await node.next()).refuse('503')
  await refused

  const lost = expect(read()).rejects.toMatchObject({ name: 'VacancyRetryError', code: 'connection_lost' })
  const inDoubt = { name: 'VacancyUnknownOutcomeError', code: 'connection_lost' }
  const doubtful = expect(write()).rejects.toMatchObject(inDoubt)
  await node.next()
  await node.next()
  peer.socket.destroy()
  await Promise.all([lost, doubtful])

  await node.close()
  const failed = connectIn(turnedWorld(), { port: node.port, retry: false })
  await expect(failed).rejects.toMatchObject({ code: 'connection_failed' })
})
