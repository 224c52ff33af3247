/** Rules of reading replies that are broken. */
import { type Defect, inFolder } from './defect.ts'

const inShared = inFolder('shared/src')

export const REPLY_DEFECTS: readonly Defect[] = [
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
]
