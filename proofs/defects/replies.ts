/** Rules of reading replies that are broken. */
import { type Defect, inFolder } from './defect.ts'

export const REPLY_DEFECTS: readonly Defect[] = inFolder('shared/src', [
  {
    // The nights of a stay are read with the year of the reader's clock.
    name: 'reply/stay-year-of-the-reader',
    edits: [
      [
        'wire/reply.ts',
        'unpackDayBetween(packed, first, first + nights - 1)',
        'unpackDay(packed, new Date().getUTCFullYear())',
      ],
    ],
    foundBy: { tests: 'shared/src/wire/reply.test.ts', named: 'base year' },
  },
  {
    // So are the nights of a search.
    name: 'reply/search-year-of-the-reader',
    edits: [
      [
        'dates.ts',
        '  const known = new Set(days)\n',
        '  return new Date().getUTCFullYear()\n  const known = new Set(days)\n',
      ],
    ],
    foundBy: { tests: 'shared/src/wire/reply.test.ts', named: 'base year' },
  },
])
