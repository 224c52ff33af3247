/** Thread entry of the log: blocking writes and syncs, away from everything else. It has no turns of an event loop. */

import { parentPort } from 'node:worker_threads'
import { failureOf } from '../failure.ts'
import { createReceiver, createSender, type PipeEnd, rings, waitForRing } from '../pipe.ts'
import { PIECE_BYTES, prepareNext } from './wal.ts'
import { FROM_WAL, TO_WAL } from './wal-pipe.ts'
import {
  type FromWal,
  handleWalMessages,
  type ToWal,
  unpackWal,
  type WalOptionsOfThread,
  type WalThread,
} from './wal-thread.ts'

/** The only message to the thread, with which it begins. */
export type LogOfThread = WalOptionsOfThread & { readonly replica: PipeEnd }

function run(thread: WalThread, replica: PipeEnd): void {
  const receive = createReceiver(replica, TO_WAL)
  let isOpen = true
  const handle = (queue: readonly ToWal[]) => {
    handleWalMessages(thread, queue)
    if (queue.at(-1)?.type === 'close') isOpen = false
  }
  while (isOpen) {
    const heard = rings(replica.bell)
    receive(handle)
    // Between groups, a piece at a time: a commit never waits for more than one piece.
    if (isOpen && !prepareNext(thread.wal, PIECE_BYTES)) waitForRing(replica.bell, heard)
  }
}

function start({ replica, state, flushThreshold, lends }: LogOfThread): void {
  const send = createSender<FromWal>(replica, FROM_WAL)
  const monotonicMs = () => performance.now()
  const thread = { wal: unpackWal(state), flushThreshold, lends, send, monotonicMs, isRefusing: false, refusals: 0 }
  try {
    run(thread, replica)
  } catch (error) {
    // After a failed write or sync nothing more is written: the node ends (docs/design/storage.md#disk-errors).
    send({ type: 'failed', failure: failureOf(error) })
  }
  replica.port.close()
}

parentPort?.once('message', start)
