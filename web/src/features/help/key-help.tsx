'use client'
import { useShortcuts } from '../../lib/keys.ts'
import { routes } from '../../lib/routes.ts'
import { useMe } from '../../lib/session.ts'
import { Dialog } from '../../ui/dialog.tsx'
import { Link } from '../../ui/link.tsx'
import * as copy from './copy.ts'

const ROWS = '#content tr[data-key]'

type Key = { readonly keys: string; readonly label: string; readonly on?: string | undefined }

/** Keys of the focused element rather than the page. */
const IN_PLACE: readonly Key[] = [
  { keys: 'Enter', label: copy.help.open, on: ROWS },
  { keys: 'Space', label: copy.help.select, on: `${ROWS} input[type="checkbox"]` },
  { keys: 'mod+Enter', label: copy.help.confirm },
  { keys: 'mod+Enter', label: copy.help.newTab },
  { keys: 'Esc', label: copy.help.close },
]

/** Only what this page has. */
const isHere = ({ on }: Key) =>
  on === undefined || [...document.querySelectorAll(on)].some((element) => element.checkVisibility())

export default function KeyHelp({ onClose }: { readonly onClose: () => void }) {
  const me = useMe()
  const shortcuts = useShortcuts()
  return (
    <Dialog open title={copy.help.title} onClose={onClose}>
      {!me.preferences.keys && (
        <p className="pb-3 text-text-2">
          {copy.help.singleKeysOff} <Link href={routes.appearance()}>{copy.help.settings}</Link>
        </p>
      )}
      <KeyList title={copy.help.onPage} keys={shortcuts.filter(isHere)} />
      <KeyList title={copy.help.inPlace} keys={IN_PLACE.filter(isHere)} />
    </Dialog>
  )
}

function KeyList({ title, keys }: { title: string; keys: readonly Key[] }) {
  return (
    <section className="pb-4">
      <h3 className="pb-1 font-semibold">{title}</h3>
      <dl className="grid grid-cols-[8rem_1fr] gap-y-1">
        {keys.map((one) => (
          <div key={`${one.keys} ${one.label}`} className="contents">
            <dt className="flex flex-wrap gap-1">
              {one.keys.split(' ').map((key) => (
                <kbd
                  key={key}
                  className="inline-flex h-6 min-w-6 items-center justify-center rounded-control border border-line-strong bg-surface px-1.5 font-sans text-small"
                >
                  {key
                    .replace('mod+', 'Ctrl ')
                    .replace('shift+', 'Shift ')
                    .replace(/ (\w)$/, (letter) => letter.toUpperCase())}
                </kbd>
              ))}
            </dt>
            <dd className="py-0.5">{one.label}</dd>
          </div>
        ))}
      </dl>
    </section>
  )
}
