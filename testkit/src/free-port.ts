import { type AddressInfo, createServer } from 'node:net'

/** Below the ephemeral ports (from 32,768 on Linux), and above the ports of well-known programs. */
const FIRST = 10_240
const LAST = 32_767
const TRIES_MAX = 100

/** Ports already returned by this process, even if no server listens on them yet. */
const given = new Set<number>()

/**
 * A port of 127.0.0.1 for a program that needs its port before it starts. An ephemeral port could be taken by any
 * connection in the meantime. Ports from this range are taken only on request.
 */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const port = FIRST + Math.floor(Math.random() * (LAST - FIRST + 1))
    if (given.has(port)) continue
    given.add(port)
    if (await isFree(port)) return port
  }
  throw new Error(`none of ${TRIES_MAX} ports from ${FIRST} to ${LAST} was free`)
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen({ host: '127.0.0.1', port, exclusive: true }, () => server.close(() => resolve(true)))
  })
}

/** Holds a port of 127.0.0.1 until it is closed; by default any free one. */
export function takePort(wanted = 0): Promise<{ readonly port: number; readonly close: () => void }> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(wanted, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo
      resolve({ port, close: () => server.close() })
    })
  })
}
