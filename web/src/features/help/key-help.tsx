'use client'
import { useShortcuts } from '../../lib/keys.ts'
import { routes } from '../../lib/routes.ts'
import { useMe } from '../../lib/session.ts'
import { Dialog } from '../../ui/dialog.tsx'
import { Link } from '../../ui/link.tsx'

/** Keys that belong to what has the focus, not to the page. */
const IN_PLACE = [
  { keys: 'j k', label: 'Next and previous row of a table; arrows do the same' },
  { keys: 'Enter', label: 'Open the row' },
  { keys: 'Space', label: 'Select the row' },
  { keys: 'Esc', label: 'Close one layer' },
  { keys: 'mod+Enter', label: 'In the palette: open in a new tab' },
] as const

export default function KeyHelp({ onClose }: { readonly onClose: () => void }) {
  const me = useMe()
  const shortcuts = useShortcuts()
  return (
    <Dialog open title="Keys" onClose={onClose}>
      {!me.preferences.keys && (
        <p className="pb-3 text-text-2">
          Keys of one letter are turned off in your <Link href={routes.setting('appearance')}>settings</Link>.
        </p>
      )}
      <KeyList title="On this page" keys={shortcuts} />
      <KeyList title="In tables and layers" keys={IN_PLACE} />
    </Dialog>
  )
}

function KeyList({
  title,
  keys,
}: {
  title: string
  keys: readonly { readonly keys: string; readonly label: string }[]
}) {
  return (
    <section className="pb-4">
      <h3 className="pb-1 font-semibold">{title}</h3>
      <dl className="grid grid-cols-[8rem_1fr] gap-y-1">
        {keys.map((one) => (
          <div key={one.keys} className="contents">
            <dt className="flex flex-wrap gap-1">
              {one.keys.split(' ').map((key) => (
                <kbd
                  key={key}
                  className="inline-flex h-6 min-w-6 items-center justify-center rounded-control border border-line-strong bg-surface px-1.5 font-sans text-small"
                >
                  {key.replace('mod+', 'Ctrl ').replace(/ (\w)$/, (letter) => letter.toUpperCase())}
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
