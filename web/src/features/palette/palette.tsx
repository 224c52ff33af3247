'use client'
/** Everywhere and everything by a few letters (console.md §3): a combobox over a listbox in groups. */
import { useQuery } from '@tanstack/react-query'
import clsx from 'clsx'
import * as Primitive from 'radix-ui/dialog'
import { type KeyboardEvent, useEffect, useMemo, useRef, useState } from 'react'
import { Icon } from '../../icons/icon.tsx'
import { call } from '../../lib/api.ts'
import { go } from '../../lib/go.ts'
import { pauseLive, resumeLive, useLive, useLiveStatus } from '../../lib/live.ts'
import { useMe } from '../../lib/session.ts'
import { giveBackFocus } from '../../ui/give-back-focus.ts'
import { signOut } from '../session/sign-out.ts'
import { useSavePreferences } from '../settings/preferences.ts'
import { clusterEntries, type Entry, found, pageEntries, savedEntries, viewEntries } from './entries.ts'
import { takeTyped } from './typed-ahead.ts'

const RECENT_KEPT = 20
/** Of this tab; newest first. */
let recent: readonly string[] = []

export default function Palette({ onClose }: { readonly onClose: () => void }) {
  const [typed, setTyped] = useState('')
  const [chosen, setChosen] = useState<string>()
  const list = useRef<HTMLDivElement>(null)
  const [opener] = useState(() => document.activeElement)
  const entries = useEntries()
  const groups = useMemo(() => found(typed, entries, recent), [typed, entries])
  const rows = groups.flatMap((group) => group.entries.map((entry) => ({ entry, id: `${group.name} ${entry.id}` })))
  // By its id, not its place: rows that join later do not move the highlight.
  const at = Math.max(
    0,
    rows.findIndex(({ id }) => id === chosen),
  )
  const active = rows[at]

  useEffect(() => {
    list.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: 'nearest' })
  }, [active?.id])

  const run = (entry: Entry, isNewTab: boolean) => {
    recent = [entry.id, ...recent.filter((id) => id !== entry.id)].slice(0, RECENT_KEPT)
    onClose()
    if (entry.act) entry.act()
    else if (entry.href && isNewTab) open(entry.href, '_blank', 'noopener')
    else if (entry.href) go(entry.href)
  }
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (step !== undefined && rows.length > 0) {
      event.preventDefault()
      setChosen(rows[(at + step + rows.length) % rows.length]?.id)
    } else if (event.key === 'Enter' && active) {
      event.preventDefault()
      run(active.entry, event.ctrlKey || event.metaKey)
    }
  }
  return (
    <Primitive.Root open onOpenChange={(isOpen) => !isOpen && onClose()}>
      <Primitive.Portal>
        <Primitive.Overlay className="fixed inset-0 z-40 bg-[rgb(11_13_18/0.45)]" />
        <Primitive.Content
          aria-describedby={undefined}
          onCloseAutoFocus={(event) => giveBackFocus(event, opener)}
          className="enter fixed inset-x-0 top-0 z-50 mx-auto flex max-h-dvh w-full flex-col border-line bg-overlay shadow-layer outline-none sm:top-[10vh] sm:max-h-[70vh] sm:max-w-160 sm:rounded-panel sm:border"
        >
          <Primitive.Title className="sr-only">Commands</Primitive.Title>
          <div className="flex items-center gap-3 border-line border-b px-4">
            <Icon name="search" className="text-text-3" />
            <input
              role="combobox"
              aria-label="Search or run a command"
              aria-expanded={rows.length > 0}
              aria-controls="palette-list"
              aria-autocomplete="list"
              aria-activedescendant={active ? domId(active.id) : undefined}
              autoComplete="off"
              spellCheck={false}
              value={typed}
              onChange={(event) => {
                setTyped(event.target.value)
                setChosen(undefined)
              }}
              onFocus={() => {
                const ahead = takeTyped()
                if (ahead !== '') setTyped((before) => before + ahead)
              }}
              onKeyDown={onKeyDown}
              placeholder="A page, a shard, “transfer s3 n2” …"
              className="h-12 min-w-0 grow bg-transparent text-section font-normal outline-none"
            />
            <kbd className="font-sans text-small text-text-3">Esc</kbd>
          </div>
          <div
            ref={list}
            id="palette-list"
            role="listbox"
            aria-label="Results"
            className="min-h-0 overflow-y-auto py-2"
          >
            {groups.map((group) => (
              // biome-ignore lint/a11y/useSemanticElements: a group of options in a listbox.
              <div key={group.name} role="group" aria-label={group.name}>
                <p aria-hidden="true" className="px-4 pt-2 pb-1 text-small text-text-3">
                  {group.name}
                </p>
                {group.entries.map((entry) => {
                  const id = `${group.name} ${entry.id}`
                  const isActive = id === active?.id
                  return (
                    // biome-ignore lint/a11y/useKeyWithClickEvents: its keys are handled in the field, which keeps the focus.
                    // biome-ignore lint/a11y/useFocusableInteractive: pointed at by aria-activedescendant.
                    <div
                      key={id}
                      id={domId(id)}
                      role="option"
                      aria-selected={isActive}
                      onMouseDown={(event) => event.preventDefault()}
                      onClick={(event) => run(entry, event.ctrlKey || event.metaKey)}
                      className={clsx(
                        'flex min-h-9 cursor-pointer items-center gap-3 px-4 py-1 pointer-coarse:min-h-11',
                        isActive ? 'bg-accent text-on-accent' : 'hover:bg-sunken',
                      )}
                    >
                      <Icon name={entry.icon} className={isActive ? '' : 'text-text-3'} />
                      <span className="min-w-0 truncate">{entry.label}</span>
                      {entry.hint && (
                        <span
                          className={clsx('ms-auto min-w-0 shrink truncate text-small', !isActive && 'text-text-3')}
                        >
                          {entry.hint}
                        </span>
                      )}
                    </div>
                  )
                })}
              </div>
            ))}
          </div>
          {rows.length === 0 && (
            <p role="status" className="px-4 pb-4 text-text-2">
              Nothing is called like this. Properties are looked for in the playground.
            </p>
          )}
        </Primitive.Content>
      </Primitive.Portal>
    </Primitive.Root>
  )
}

const domId = (id: string) => `palette ${id}`.replaceAll(/[^\w-]/g, '-')

function useEntries(): readonly Entry[] {
  const me = useMe()
  const { paused } = useLiveStatus()
  const summary = useLive('summary').data
  const save = useSavePreferences()
  // Both join below when they come; without them the rest works.
  const queries = useQuery({
    queryKey: ['palette', 'saved-queries'],
    queryFn: ({ signal }) => call('GET /api/v1/saved-queries', { signal }),
  }).data?.queries
  const imports = useQuery({
    queryKey: ['palette', 'imports'],
    queryFn: ({ signal }) => call('GET /api/v1/imports', { signal }),
  }).data?.imports
  return useMemo(
    () => [
      ...pageEntries(),
      ...clusterEntries(summary, me),
      ...viewEntries(me.preferences.shards.views),
      ...actionEntries(paused, (theme) => save({ theme })),
      ...savedEntries({ queries: queries ?? [], imports: imports ?? [] }),
    ],
    [summary, me, paused, save, queries, imports],
  )
}

const THEME_LABELS = { system: 'like the system', light: 'light', dark: 'dark', contrast: 'high contrast' } as const

function actionEntries(isPaused: boolean, setTheme: (theme: keyof typeof THEME_LABELS) => void): Entry[] {
  const themes = Object.keys(THEME_LABELS) as (keyof typeof THEME_LABELS)[]
  return [
    {
      id: 'pause',
      group: 'Actions',
      label: isPaused ? 'Resume live values' : 'Pause live values',
      hint: 'p',
      icon: isPaused ? 'play' : 'pause',
      act: isPaused ? resumeLive : pauseLive,
    },
    ...themes.map((theme) => ({
      id: `theme ${theme}`,
      group: 'Actions' as const,
      label: `Theme: ${THEME_LABELS[theme]}`,
      also: `theme ${theme}`,
      icon: 'eye' as const,
      act: () => setTheme(theme),
    })),
    { id: 'sign-out', group: 'Actions', label: 'Sign out', also: 'log out leave', icon: 'external', act: signOut },
  ]
}
