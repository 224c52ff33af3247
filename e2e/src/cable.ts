/** A network link between two programs that can be cut: a TCP relay in the process of the test. */

import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

export type Cable = {
  /** The address to connect to instead of the target. */
  readonly host: string
  readonly port: number
  /** Drops all data without closing connections, like a dead switch. */
  cut(): void
  /** Delivers the held data, as TCP retransmits it. */
  mend(): void
  close(): Promise<void>
}

/** @param url of the target program */
export async function openCable(url: string): Promise<Cable> {
  const { hostname, port } = new URL(url)
  const sockets = new Set<Socket>()
  let isCut = false
  const hold = (socket: Socket) => (isCut ? socket.pause() : socket.resume())
  const join = (from: Socket, to: Socket) => {
    sockets.add(from)
    from.on('data', (piece) => to.write(piece))
    // When one side closes, the other is closed as well. The reason is not needed.
    from.on('error', () => {})
    from.on('close', () => {
      sockets.delete(from)
      to.destroy()
    })
    hold(from)
  }
  const server = createServer((near) => {
    const far = connect(Number(port), hostname)
    join(near, far)
    join(far, near)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const turn = (cut: boolean) => {
    isCut = cut
    for (const socket of sockets) hold(socket)
  }
  return {
    host: '127.0.0.1',
    port: (server.address() as AddressInfo).port,
    cut: () => turn(true),
    mend: () => turn(false),
    async close() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
