/** Rules of forwarding that routers and bridges break. */
import { type Defect, inFolder } from './defect.ts'

const foundBy = { proof: ['fabric-model', '--seeds', '200'] }

export const FABRIC_DEFECTS: readonly Defect[] = inFolder('fabric/src', [
  {
    name: 'a lost write is sent again',
    edits: [['forward/decide.ts', '    if (tried.isWrite && !tried.isRepeatable) return UNKNOWN\n', '']],
    foundBy,
  },
  {
    name: 'the 503 of an existing component is taken for a promise',
    edits: [['forward/decide.ts', '      if (tried.isWrite && !tried.isOurs) return PASS\n', '']],
    foundBy,
  },
  {
    name: 'a write refused with 500 is sent again',
    edits: [
      [
        'forward/decide.ts',
        'return !tried.isWrite && tried.tries < BUSY_TRIES_MAX ? AGAIN : PASS',
        'return tried.tries < BUSY_TRIES_MAX ? AGAIN : PASS',
      ],
    ],
    foundBy,
  },
  {
    name: 'a hedged read is repeated when one of its tries ends',
    edits: [
      [
        'forward/forwarder.ts',
        '  if (!endTry(request, link)) return failed(forwarder, request, link.hop, failure)\n',
        '  endTry(request, link)\n  if (failure.how.length > 0) return failed(forwarder, request, link.hop, failure)\n',
      ],
    ],
    foundBy,
  },
  {
    name: 'the second reply to a hedged read is still waited for',
    edits: [['forward/forwarder.ts', '    abandon(request, false)\n', '']],
    foundBy,
  },
  {
    name: 'a redirection is passed on to clients',
    edits: [['forward/forwarder.ts', '  if (code === 308 || code === 405) return 503\n', '']],
    foundBy,
  },
  {
    name: 'a write in doubt is refused as not executed',
    edits: [['forward/forwarder.ts', '  if (request.isInDoubt) return 408\n', '']],
    foundBy,
  },
  {
    name: 'a zone router repeats what an existing bridge claims',
    edits: [
      [
        'forward/forwarder.ts',
        'return request.isWrite && !isCertain && policy.servesRouters ? 408 : code',
        'return code',
      ],
    ],
    foundBy,
  },
  {
    name: 'a request is not ended at its deadline',
    edits: [['forward/forwarder.ts', '    expire(forwarder, forwarder.usual)\n', '']],
    foundBy,
  },
  {
    name: 'a reply gets the id of the hop',
    edits: [['forward/forwarder.ts', '  writeId(frame, 0, request.id)\n  answer(', '  answer(']],
    foundBy,
  },
  {
    name: 'writes of a lane take different connections',
    edits: [
      [
        'forward/lanes.ts',
        "  return lane.entries.find((entry) => entry.state === 'sent')?.via\n",
        '  return lane.entries.length > 1e9 ? lane.entries[0]?.via : undefined\n',
      ],
    ],
    foundBy,
  },
  {
    name: 'a refused write is sent after a later one that got through',
    edits: [
      [
        'forward/lanes.ts',
        '  const overtaken = gotThrough ? overtake(lane, lane.entries.slice(0, at)) : []\n',
        '  const overtaken: Item[] = []\n',
      ],
    ],
    foundBy,
  },
  {
    name: 'a late reply is passed to the request that has its id now',
    edits: [['forward/hops.ts', '  link.nextId = (id + 1) >>> 0\n', '  link.nextId = 1 + (id % 3)\n']],
    foundBy,
  },
  {
    name: 'a wrong component is taken for the hop',
    edits: [['forward/hops.ts', "    if (fault !== '') {\n", "    if (fault === 'never') {\n"]],
    foundBy,
  },
  {
    name: 'an unfinished frame is kept where the next read overwrites it',
    edits: [
      [
        'forward/frames.ts',
        '  if (used < chunk.length && !reader.isClosed) collect(reader, chunk, used, chunk.length)\n',
        '  if (used < chunk.length && !reader.isClosed) {\n    reader.collected = chunk.subarray(used)\n    reader.collectedBytes = chunk.length - used\n  }\n',
      ],
    ],
    foundBy,
  },
  {
    name: 'a slab is used again while its bytes are queued',
    edits: [
      [
        'forward/outbox.ts',
        '  if (wire.writableLength === 0 && free.length < SLABS_MAX) free.push(slab)\n',
        '  if (free.length < SLABS_MAX) free.push(slab)\n',
      ],
    ],
    foundBy,
  },
])
