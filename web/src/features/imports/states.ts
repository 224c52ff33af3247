/** Levels and progress of import states. */
import type { ImportState, ImportView, Level } from '@vacancy/shared/contract'

export const STATE_LEVELS: Readonly<Record<ImportState, Level>> = {
  uploading: 'info',
  queued: 'info',
  checking: 'info',
  building: 'info',
  verifying: 'info',
  built: 'ok',
  failed: 'crit',
  cancelled: 'unk',
}

/** 0 to 1; null while unknown. */
export function shareOf(view: ImportView): number | null {
  if (view.state === 'built') return 1
  if (view.state === 'uploading') {
    const { properties, packages } = view.files
    const bytes = properties.bytes + packages.bytes
    return bytes === 0 ? null : (properties.received + packages.received) / bytes
  }
  return view.progress ? view.progress.percent / 100 : null
}
