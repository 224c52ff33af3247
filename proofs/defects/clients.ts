/** Rules of clients that are broken: how they read replies, and what they remember. */
import { type Defect, inFolder } from './defect.ts'

const inShared = inFolder('shared/src')

export const CLIENT_DEFECTS: readonly Defect[] = [
  ...inShared(
    { tests: 'shared/src/wire/reply.test.ts', named: 'base year' },
    {
      // The nights of a stay are read with the year of the reader's clock.
      'reply/stay-year-of-the-reader':
        'wire/reply.ts: unpackDayBetween(packed, first, first + nights - 1 → unpackDay(packed, new Date().getUTCFullYear()',
      // So are the nights of a search.
      'reply/search-year-of-the-reader':
        'dates.ts: const known = → return new Date().getUTCFullYear()\n  const known =',
    },
  ),
  ...inFolder('client/src')(
    { tests: 'client/src/shard.test.ts', named: 'do not have' },
    {
      // A client believes the index that it knew, although the data are of another life.
      'client/never-forgets': 'client.ts: if (lastIndexes.get(place) === known) lastIndexes.delete(place)\n → \n',
    },
  ),
]
