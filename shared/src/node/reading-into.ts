import { Socket } from 'node:net'

/**
 * An accepted connection, of a server with `pauseOnConnect`, as a socket that reads into `buffer`. Listeners of `data` own
 * the bytes until they return. Node offers this to sockets that connect; an accepted one allocates 64 KiB for each read
 * and leaves them to the collector.
 */
export function readingInto(buffer: Buffer, accepted: Socket): Socket {
  const owner = accepted as unknown as { _handle: object | null }
  const handle = owner._handle
  owner._handle = null
  accepted.destroy()
  const callback = (bytes: number) => socket.emit('data', buffer.subarray(0, bytes))
  // `handle` is how Node makes an accepted socket itself.
  const { allowHalfOpen } = accepted
  const options: object = { handle, allowHalfOpen, highWaterMark: buffer.length, onread: { buffer, callback } }
  const socket = new Socket(options)
  return socket
}
