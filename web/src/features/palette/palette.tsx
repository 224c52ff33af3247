'use client'
/** The command palette: a combobox over a grouped listbox of pages, objects and actions. */
import { Command } from 'cmdk'
import * as Primitive from 'radix-ui/dialog'
import { type KeyboardEvent, type MouseEvent, useDeferredValue, useMemo, useRef, useState } from 'react'
import { Icon } from '../../icons/icon.tsx'
import { THEMES } from '../../lib/appearance.ts'
import { pauseLive, resumeLive, useLive, useLiveStatus } from '../../lib/live.ts'
import { navigate } from '../../lib/navigate.ts'
import { serverNow } from '../../lib/server-time.ts'
import { useMe } from '../../lib/session.ts'
import { useRoute } from '../../lib/use-route.ts'
import { giveBackFocus } from '../../ui/give-back-focus.ts'
import { topicsViewHref } from '../queue/topic-view.ts'
import { signOut } from '../session/sign-out.ts'
import { useSavePreferences } from '../settings/preferences.ts'
import { viewHref } from '../shards/views.ts'
import * as copy from './copy.ts'
import {
  clusterEntries,
  type Entry,
  found,
  jobEntries,
  momentEntries,
  pageEntries,
  routeEntries,
  savedEntries,
  stayEntries,
  topicEntries,
  viewEntries,
} from './entries.ts'
import { takeTyped } from './typed-ahead.ts'

const RECENT_MAX = 20
/** Recent entries of this tab, newest first. */
let recent: readonly string[] = []

export default function Palette({ onClose }: { readonly onClose: () => void }) {
  const [typed, setTyped] = useState('')
  const isNewTab = useRef(false)
  const [opener] = useState(() => document.activeElement)
  const entries = useEntries(useDeferredValue(typed.trim()))
  const groups = useMemo(
    () => found(typed, [...routeEntries(typed), ...momentEntries(typed, serverNow()), ...entries], recent),
    [typed, entries],
  )

  const noteNewTab = (event: KeyboardEvent | MouseEvent) => {
    isNewTab.current = event.ctrlKey || event.metaKey
  }
  const run = (entry: Entry) => {
    recent = [entry.id, ...recent.filter((id) => id !== entry.id)].slice(0, RECENT_MAX)
    onClose()
    if (entry.act) entry.act()
    else if (entry.href && isNewTab.current) open(entry.href, '_blank', 'noopener')
    else if (entry.href) navigate(entry.href)
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
          <Primitive.Title className="sr-only">{copy.palette.title}</Primitive.Title>
          <Command
            label={copy.palette.label}
            shouldFilter={false}
            loop
            vimBindings={false}
            disablePointerSelection
            onKeyDownCapture={noteNewTab}
            onClickCapture={noteNewTab}
            className="flex min-h-0 flex-col"
          >
            <div className="flex items-center gap-3 border-line border-b px-4">
              <Icon name="search" className="text-text-3" />
              <Command.Input
                value={typed}
                onValueChange={setTyped}
                onFocus={() => {
                  const ahead = takeTyped()
                  if (ahead !== '') setTyped((before) => before + ahead)
                }}
                // Home and End move in the text, not in the list.
                onKeyDown={(event) => ['Home', 'End'].includes(event.key) && event.stopPropagation()}
                placeholder={copy.palette.placeholder}
                className="h-12 min-w-0 grow bg-transparent text-section font-normal outline-none"
              />
              <kbd className="font-sans text-small text-text-3">{copy.palette.escape}</kbd>
            </div>
            <Command.List label={copy.palette.results} className="min-h-0 overflow-y-auto py-2">
              {groups.map((group) => (
                <Command.Group
                  key={group.name}
                  value={group.name}
                  heading={<p className="px-4 pt-2 pb-1 text-small text-text-3">{group.name}</p>}
                >
                  {group.entries.map((entry) => (
                    <EntryRow
                      key={entry.id}
                      value={`${group.name} ${entry.id}`}
                      entry={entry}
                      onSelect={() => run(entry)}
                    />
                  ))}
                </Command.Group>
              ))}
            </Command.List>
          </Command>
          {groups.length === 0 && (
            <p role="status" className="px-4 pb-4 text-text-2">
              {copy.palette.empty}
            </p>
          )}
        </Primitive.Content>
      </Primitive.Portal>
    </Primitive.Root>
  )
}

type EntryRowProps = { readonly entry: Entry; readonly value: string; readonly onSelect: () => void }

function EntryRow({ entry, value, onSelect }: EntryRowProps) {
  return (
    <Command.Item
      value={value}
      onSelect={onSelect}
      onMouseDown={(event) => event.preventDefault()}
      className="group flex min-h-9 cursor-pointer items-center gap-3 px-4 py-1 hover:bg-sunken data-[selected=true]:bg-accent data-[selected=true]:text-on-accent pointer-coarse:min-h-11"
    >
      <Icon name={entry.icon} className={QUIET} />
      <span className="min-w-0 truncate">{entry.label}</span>
      {entry.hint && <span className={`ms-auto min-w-0 shrink truncate text-small ${QUIET}`}>{entry.hint}</span>}
    </Command.Item>
  )
}

const QUIET = 'text-text-3 group-data-[selected=true]:text-inherit'

/** Pages of a list are larger than any palette shows. */
const TOPICS = 500
/** Shorter texts are the beginning of a word. */
const JOB_ID_MIN = 3
const JOB_ID_MAX = 256

/** Topics, and jobs whose whole id was typed. Nothing where no queue is served. */
function useQueueEntries(typed: string): readonly Entry[] {
  const topics = useRoute('GET /api/v1/queue/topics', { query: { limit: TOPICS } }, { retry: false }).data?.topics
  const jobs = useRoute(
    'GET /api/v1/queue/jobs',
    { query: { id: typed } },
    { enabled: topics !== undefined && typed.length >= JOB_ID_MIN && typed.length <= JOB_ID_MAX, retry: false },
  ).data?.jobs
  return useMemo(() => [...topicEntries(topics ?? []), ...jobEntries(jobs ?? [])], [topics, jobs])
}

function useEntries(typed: string): readonly Entry[] {
  const me = useMe()
  const { paused } = useLiveStatus()
  const summary = useLive('summary').data
  const save = useSavePreferences()
  const queue = useQueueEntries(typed)
  // Optional: both are added below when they arrive.
  const queries = useRoute('GET /api/v1/saved-queries', {}).data?.queries
  const imports = useRoute('GET /api/v1/imports', {}).data?.imports
  return useMemo(
    () => [
      ...pageEntries(),
      ...clusterEntries(summary, me),
      ...viewEntries(me.preferences.shards.views, 'shards', viewHref),
      ...viewEntries(me.preferences.queue.views, 'topics', topicsViewHref),
      ...actionEntries(paused, (theme) => save({ theme })),
      ...savedEntries({ queries: queries ?? [], imports: imports ?? [] }),
      ...queue,
      ...stayEntries(typed, summary),
    ],
    [typed, summary, me, paused, save, queries, imports, queue],
  )
}

type Theme = (typeof THEMES)[number]

function actionEntries(isPaused: boolean, setTheme: (theme: Theme) => void): Entry[] {
  return [
    {
      id: 'pause',
      group: copy.groups.actions,
      label: isPaused ? copy.actions.resume : copy.actions.pause,
      hint: 'p',
      icon: isPaused ? 'play' : 'pause',
      act: isPaused ? resumeLive : pauseLive,
    },
    ...THEMES.map((theme) => ({
      id: `theme ${theme}`,
      group: copy.groups.actions,
      label: copy.actions.theme(copy.actions.themes[theme]),
      also: `theme ${theme}`,
      icon: 'eye' as const,
      act: () => setTheme(theme),
    })),
    {
      id: 'sign-out',
      group: copy.groups.actions,
      label: copy.actions.signOut,
      also: 'log out leave',
      icon: 'external',
      act: signOut,
    },
  ]
}
