/** Rules of forwarding that routers and bridges break. */
import { type Defect, inFolder } from './defect.ts'

const foundBy = { proof: ['fabric-model', '--seeds', '200'] }

const inFabric = inFolder('fabric/src')

export const FABRIC_DEFECTS: readonly Defect[] = [
  ...inFabric(foundBy, {
    'a lost write is sent again':
      'forward/decide.ts:     if (tried.isWrite && !tried.isRepeatable) return UNKNOWN\n → ',
    'the 503 of an existing component is taken for a promise':
      'forward/decide.ts:       if (tried.isWrite && !tried.isOurs) return PASS\n → ',
    'a write refused with 500 is sent again': 'forward/decide.ts: !tried.isWrite &&  → ',
    'a hedged read is repeated when one of its tries ends':
      'forward/forwarder.ts: if (!endTry(request, link) → endTry(request, link)\n  if (failure.how.length > 0',
    'the second reply to a hedged read is still waited for': 'forward/forwarder.ts:     abandon(request, false)\n → ',
    'a redirection is passed on to clients':
      'forward/forwarder.ts:   if (code === 308 || code === 405) return 503\n → ',
    'a write in doubt is refused as not executed': 'forward/forwarder.ts:   if (request.isInDoubt) return 408\n → ',
    'a zone router repeats what an existing bridge claims':
      'forward/forwarder.ts: request.isWrite && !isCertain && policy.servesRouters ? 408 :  → ',
    'a request is not ended at its deadline': 'forward/forwarder.ts:     expire(forwarder, forwarder.usual)\n → ',
    'a reply gets the id of the hop': 'forward/forwarder.ts: writeId(frame, 0, request.id)\n  answer → answer',
    'writes of a lane take different connections':
      "forward/lanes.ts: find((entry) => entry.state === 'sent')?.via → length > 1e9 ? lane.entries[0]?.via : undefined",
    'a refused write is sent after a later one that got through':
      'forward/lanes.ts:  = gotThrough ? overtake(lane, lane.entries.slice(0, at)) : → : Item[] =',
    'a late reply is passed to the request that has its id now': 'forward/hops.ts: (id + 1) >>> 0 → 1 + (id % 3)',
    'a wrong component is taken for the hop': "forward/hops.ts: fault !== '' → fault === 'never'",
    'an unfinished frame is kept where the next read overwrites it':
      'forward/frames.ts: collect(reader, chunk, used, chunk.length) → {\n    reader.collected = chunk.subarray(used)\n    reader.collectedBytes = chunk.length - used\n  }',
    'a slab is used again while its bytes are queued': 'forward/outbox.ts: wire.writableLength === 0 &&  → ',
  }),
]
