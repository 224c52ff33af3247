/** A network cable between two programs that can be cut: a TCP relay in the process of the test. */

import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

export type Cable = {
  /** Where to connect instead of the other end. */
  readonly host: string
  readonly port: number
  /** Nothing arrives any more, and neither side is told: what a dead switch does. */
  cut(): void
  /** What was on its way arrives after all, as TCP repeats it. */
  mend(): void
  close(): Promise<void>
}

/** @param url of the program at the other end */
export async function openCable(url: string): Promise<Cable> {
  const { hostname, port } = new URL(url)
  const sockets = new Set<Socket>()
  let isCut = false
  const hold = (socket: Socket) => (isCut ? socket.pause() : socket.resume())
  const join = (from: Socket, to: Socket) => {
    sockets.add(from)
    from.on('data', (piece) => to.write(piece))
    // Whichever end goes, the other is told; why stands in nobody's log.
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
