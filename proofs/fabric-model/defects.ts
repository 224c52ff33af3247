/** Planted defects of forwarding, which the model must find. Files are below `fabric/src`. */

import type { Defect } from '@vacancy/testkit/plant'

export const DEFECTS: readonly Defect[] = [
  {
    name: 'a lost write is sent again',
    file: 'forward/decide.ts',
    from: '    if (tried.isWrite && !tried.isRepeatable) return UNKNOWN\n',
    to: '',
  },
  {
    name: 'the 503 of an existing component is taken for a promise',
    file: 'forward/decide.ts',
    from: '      if (tried.isWrite && !tried.isOurs) return PASS\n',
    to: '',
  },
  {
    name: 'a write refused with 500 is sent again',
    file: 'forward/decide.ts',
    from: 'return !tried.isWrite && tried.tries < BUSY_TRIES_MAX ? AGAIN : PASS',
    to: 'return tried.tries < BUSY_TRIES_MAX ? AGAIN : PASS',
  },
  {
    name: 'a hedged read is repeated when one of its tries ends',
    file: 'forward/forwarder.ts',
    from: '  if (!endTry(request, link)) return failed(forwarder, request, link.hop, failure)\n',
    to: '  endTry(request, link)\n  if (failure.how.length > 0) return failed(forwarder, request, link.hop, failure)\n',
  },
  {
    name: 'the second reply to a hedged read is still waited for',
    file: 'forward/forwarder.ts',
    from: '    abandon(request, false)\n',
    to: '',
  },
  {
    name: 'a redirection is passed on to clients',
    file: 'forward/forwarder.ts',
    from: '  if (code === 308 || code === 405) return 503\n',
    to: '',
  },
  {
    name: 'a write in doubt is refused as not executed',
    file: 'forward/forwarder.ts',
    from: '  if (request.isInDoubt) return 408\n',
    to: '',
  },
  {
    name: 'a zone router repeats what an existing bridge claims',
    file: 'forward/forwarder.ts',
    from: 'return request.isWrite && !isCertain && policy.servesRouters ? 408 : code',
    to: 'return code',
  },
  {
    name: 'a request is not ended at its deadline',
    file: 'forward/forwarder.ts',
    from: '    expire(forwarder, forwarder.usual)\n',
    to: '',
  },
  {
    name: 'a reply gets the id of the hop',
    file: 'forward/forwarder.ts',
    from: '  writeId(frame, 0, request.id)\n  answer(',
    to: '  answer(',
  },
  {
    name: 'writes of a lane take different connections',
    file: 'forward/lanes.ts',
    from: "  return lane.entries.find((entry) => entry.state === 'sent')?.via\n",
    to: '  return lane.entries.length > 1e9 ? lane.entries[0]?.via : undefined\n',
  },
  {
    name: 'a refused write is sent after a later one that got through',
    file: 'forward/lanes.ts',
    from: '  const overtaken = gotThrough ? overtake(lane, lane.entries.slice(0, at)) : []\n',
    to: '  const overtaken: Item[] = []\n',
  },
  {
    name: 'a late reply is passed to the request that has its id now',
    file: 'forward/hops.ts',
    from: '  link.nextId = (id + 1) >>> 0\n',
    to: '  link.nextId = 1 + (id % 3)\n',
  },
  {
    name: 'a wrong component is taken for the hop',
    file: 'forward/hops.ts',
    from: "    if (fault !== '') {\n",
    to: "    if (fault === 'never') {\n",
  },
  {
    name: 'an unfinished frame is kept where the next read overwrites it',
    file: 'forward/frames.ts',
    from: '  if (used < chunk.length && !reader.isClosed) collect(reader, chunk, used, chunk.length)\n',
    to: '  if (used < chunk.length && !reader.isClosed) {\n    reader.collected = chunk.subarray(used)\n    reader.collectedBytes = chunk.length - used\n  }\n',
  },
  {
    name: 'a slab is used again while its bytes are queued',
    file: 'forward/outbox.ts',
    from: '  if (wire.writableLength === 0 && free.length < SLABS_MAX) free.push(slab)\n',
    to: '  if (free.length < SLABS_MAX) free.push(slab)\n',
  },
]
