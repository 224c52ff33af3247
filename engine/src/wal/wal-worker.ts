/** Thread entry of the log: blocking writes and syncs, away from everything else. */

import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import { failureOf } from '../failure.ts'
import { PIECE_BYTES, prepareNext } from './wal.ts'
import {
  type FromWal,
  handleWalMessages,
  type ToWal,
  unpackWal,
  type WalOptionsOfThread,
  type WalThread,
} from './wal-thread.ts'

function run(port: MessagePort, options: WalOptionsOfThread): void {
  const thread: WalThread = {
    wal: unpackWal(options.state),
    flushThreshold: options.flushThreshold,
    send: (message) => port.postMessage(message),
    monotonicMs: () => performance.now(),
    isRefusing: false,
    refusals: 0,
  }
  let filling: NodeJS.Immediate | undefined
  let isOpen = true
  const guard = (work: () => boolean): boolean => {
    try {
      return work()
    } catch (error) {
      // After a failed write or sync nothing more is written: the node ends (docs/design/storage.md#disk-errors).
      isOpen = false
      clearImmediate(filling)
      port.postMessage({ type: 'failed', failure: failureOf(error) } satisfies FromWal)
      port.close()
      return false
    }
  }
  const fill = () => {
    filling = undefined
    // Between groups, a piece at a time: a commit never waits for more than one piece.
    if (guard(() => prepareNext(thread.wal, PIECE_BYTES))) filling = setImmediate(fill)
  }
  port.on('message', (first: ToWal) => {
    const queue = [first]
    for (let more = receiveMessageOnPort(port); more; more = receiveMessageOnPort(port))
      queue.push(more.message as ToWal)
    guard(() => {
      handleWalMessages(thread, queue)
      return true
    })
    if (queue.at(-1)?.type === 'close') {
      isOpen = false
      clearImmediate(filling)
      port.close()
    }
    if (isOpen) filling ??= setImmediate(fill)
  })
}

if (parentPort) {
  const { port, ...options } = workerData as WalOptionsOfThread & { port: MessagePort }
  run(port, options)
}
