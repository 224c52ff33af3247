/**
 * A separate wall clock for a process, which a test can step while the process runs, with libfaketime, which is
 * installed if missing. Monotonic time stays real, as when the clock of a machine is set.
 */

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { findOrInstall } from '@vacancy/testkit/installed'

export type FakeClock = {
  /** Environment variables for the process. */
  readonly environment: { readonly [name: string]: string }
  /** Sets the clock to true time plus this offset. */
  readonly set: (offsetMs: number) => void
}

/** @param name of the file in the folder that holds the offset */
export function createFakeClock(folder: string, name: string, offsetMs = 0): FakeClock {
  const file = join(folder, `${name}.clock`)
  const set = (offset: number): void => writeFileSync(file, `${offset < 0 ? '-' : '+'}${Math.abs(offset) / 1000}\n`)
  set(offsetMs)
  return {
    environment: {
      LD_PRELOAD: findLibrary(),
      FAKETIME_TIMESTAMP_FILE: file,
      FAKETIME_NO_CACHE: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
      FAKETIME_DONT_RESET: '1',
      NO_FAKE_STAT: '1',
    },
    set,
  }
}

function findLibrary(): string {
  const library = 'libfaketimeMT.so.1'
  const folders = '/usr/{lib/*,lib*}/faketime'
  const folder = findOrInstall({ programs: [library], folders, aptPackage: 'faketime' })
  if (folder !== undefined) return join(folder, library)
  throw new Error(
    'These tests need libfaketime on Linux: install it (Debian: apt-get install faketime) so that libfaketimeMT.so.1 is in /usr/lib/*/faketime.',
  )
}
