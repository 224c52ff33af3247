/** Thread entry that answers each message of a pipe with it, from its event loop or waiting on shared memory. */

import { parentPort, workerData } from 'node:worker_threads'
import { createReceiver, createSender, type PipeEnd, rings, waitForRing } from '../pipe.ts'
import { atRest, listen } from '../threads/attend.ts'
import { ANSWERS } from '../threads/serving-pipe.ts'

export type EchoOptions = { readonly end: PipeEnd; readonly hasEventLoop: boolean }

function echo({ end, hasEventLoop }: EchoOptions): void {
  const send = createSender(end, ANSWERS)
  if (hasEventLoop) {
    listen(atRest(end.bell), end, ANSWERS, (each) => send(each))
    return
  }
  const receive = createReceiver(end, ANSWERS)
  const answer = (messages: readonly ArrayBuffer[]) => {
    for (const each of messages) send(each)
  }
  for (;;) {
    const heard = rings(end.bell)
    if (receive(answer) === 0) waitForRing(end.bell, heard)
  }
}

if (parentPort) echo(workerData as EchoOptions)
