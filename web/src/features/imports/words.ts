/** States of imports in words and colours, in one place for list, page and overview. */
import type { ImportState, ImportView, Level } from '@vacancy/shared/contract'

export const STATE_WORDS: Readonly<Record<ImportState, { readonly word: string; readonly level: Level }>> = {
  uploading: { word: 'Uploading', level: 'info' },
  queued: { word: 'Waits for its turn', level: 'info' },
  checking: { word: 'Reading files', level: 'info' },
  building: { word: 'Building', level: 'info' },
  verifying: { word: 'Reading back', level: 'info' },
  built: { word: 'Built', level: 'ok' },
  failed: { word: 'Failed', level: 'crit' },
  cancelled: { word: 'Cancelled', level: 'unk' },
}

export const PHASE_WORDS: Readonly<Record<NonNullable<ImportView['progress']>['phase'], string>> = {
  settings: 'read files and check settings',
  properties: 'properties',
  packages: 'packages',
  tables: 'sort and link',
  write: 'write',
  verify: 'verify',
  errors: 'look for all errors',
}

/** 0 to 1; null while nobody can say. */
export function shareOf(view: ImportView): number | null {
  if (view.state === 'built') return 1
  if (view.state === 'uploading') {
    const { properties, packages } = view.files
    const bytes = properties.bytes + packages.bytes
    return bytes === 0 ? null : (properties.received + packages.received) / bytes
  }
  return view.progress ? view.progress.percent / 100 : null
}
