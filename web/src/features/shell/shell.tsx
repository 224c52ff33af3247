'use client'
/** The frame around every page: session, environment, freshness and navigation (docs/design/console.md#shell). */
import { type QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { type ReactNode, Suspense, useEffect, useState } from 'react'
import { Icon } from '../../icons/icon.tsx'
import { AddressProvider, useMoment } from '../../lib/address.tsx'
import type { FirstData } from '../../lib/first-data.ts'
import { listenForKeys, useKey } from '../../lib/keys.ts'
import { type LiveValue, liveKey, startLive, useLive, useLiveStatus } from '../../lib/live.ts'
import { createQueries } from '../../lib/queries.ts'
import { routes } from '../../lib/routes.ts'
import { learnServerNow } from '../../lib/server-time.ts'
import { useMe } from '../../lib/session.ts'
import { Drawer, preloadDialog } from '../../ui/dialog.tsx'
import { EnvironmentLabel } from '../../ui/environment-label.tsx'
import { FirstPaintContext } from '../../ui/first-paint.ts'
import { IconButton } from '../../ui/icon-button.tsx'
import { late } from '../../ui/late.tsx'
import { Menu } from '../../ui/menu.tsx'
import { AttentionContext } from '../../ui/page.tsx'
import { StaleContext } from '../../ui/panel.tsx'
import { ToastHost } from '../../ui/toast.tsx'
import { TooltipHost } from '../../ui/tooltip.tsx'
import { OperationsButton, OperationsTray } from '../operations/operations-tray.tsx'
import { PlanHost } from '../operations/plan-host.tsx'
import { bufferTyped, takeTyped } from '../palette/typed-ahead.ts'
import { knowMe, SessionGate } from '../session/session-gate.tsx'
import { signOut } from '../session/sign-out.ts'
import { Banners } from './banners.tsx'
import * as copy from './copy.ts'
import { LiveChip } from './live-chip.tsx'
import { Navigation, PageKeys } from './navigation.tsx'
import { isDrawn, Outlet } from './outlet.tsx'

/** The filter of the visible page; others may be in the document, hidden. */
const FILTER_BOX = '#content [data-filter-box] input'

const ROWS = '#content tr[data-key]'
const TABS = '#content [data-path-tabs] a'

const loadPalette = () => import('../palette/palette.tsx')
const Palette = late(async () => (await loadPalette()).default)
/** Only a past view loads it. */
const PastBar = late(async () => (await import('../past/past-bar.tsx')).default)
const KeyHelp = late(async () => (await import('../help/key-help.tsx')).default)

type ShellProps = {
  /** Data for rendering on the server; without it the browser fetches everything. */
  readonly first: FirstData | undefined
  readonly children: ReactNode
}

export function Shell({ first, children }: ShellProps) {
  const [queries] = useState(() => startingFrom(first))
  return (
    <FirstPaintContext value={first ?? NOT_RENDERED}>
      <QueryClientProvider client={queries}>
        <AddressProvider isDrawn={isDrawn}>
          <Announcements />
          <SessionGate>
            <Frame queries={queries}>{children}</Frame>
          </SessionGate>
          <ToastHost />
          <TooltipHost />
        </AddressProvider>
      </QueryClientProvider>
    </FirstPaintContext>
  )
}

const NOT_RENDERED = { at: 0, isNarrow: false }

/** The server renders from these responses, and the browser continues with them. */
function startingFrom(first: FirstData | undefined): QueryClient {
  const queries = createQueries()
  if (!first) return queries
  // Until the live channel tells the time. The server keeps its own.
  if (typeof window !== 'undefined') learnServerNow(first.at)
  knowMe(queries, JSON.parse(first.me))
  queries.setQueryData(liveKey('summary'), JSON.parse(first.summary))
  return queries
}

const attentionOf = (summary: LiveValue<'summary'>) => summary.counts.attention

type Layer = 'palette' | 'help' | 'menu' | undefined

function Frame({ queries, children }: { queries: QueryClient; children: ReactNode }) {
  const [layer, setLayer] = useState<Layer>()
  const show = (next: Layer) => {
    takeTyped()
    setLayer(next)
  }
  const close = () => show(undefined)
  const showPalette = () => {
    bufferTyped(close)
    loadPalette().catch(takeTyped)
    setLayer('palette')
  }
  useEffect(() => startLive(queries), [queries])
  useEffect(() => listenForKeys(), [])
  useEffect(() => () => void takeTyped(), [])
  useKey('mod+k', () => (layer === 'palette' ? close() : showPalette()), copy.shell.search)
  useKey('?', () => show('help'), copy.keys.shortcuts)
  useKey('/', () => document.querySelector<HTMLElement>(FILTER_BOX)?.focus(), copy.keys.filter, FILTER_BOX)
  useKey('j', () => focusRow('next'), copy.keys.nextRow, ROWS)
  useKey('k', () => focusRow('previous'), copy.keys.previousRow, ROWS)
  useKey('[', () => nextTab(-1), copy.keys.previousTab, TABS)
  useKey(']', () => nextTab(1), copy.keys.nextTab, TABS)
  const attention = useLive('summary', attentionOf).data ?? 0
  const moment = useMoment()
  const isDisconnected = useLiveStatus().link.state === 'offline'
  return (
    <AttentionContext value={attention}>
      <StaleContext value={isDisconnected}>
        <PageKeys />
        <SkipLinks />
        <Header onPalette={showPalette} onHelp={() => show('help')} onMenu={() => show('menu')} />
        <div className="grid min-h-[calc(100dvh-49px)] md:grid-cols-[56px_minmax(0,1fr)] lg:grid-cols-[208px_minmax(0,1fr)]">
          <div data-no-print="" className="border-line border-e max-md:hidden">
            <div className="sticky top-[49px]">
              <Navigation />
            </div>
          </div>
          <div className="flex min-w-0 flex-col">
            {moment !== undefined && (
              <Suspense fallback={null}>
                <PastBar moment={moment} />
              </Suspense>
            )}
            <Banners />
            <Outlet>{children}</Outlet>
          </div>
        </div>
        <OperationsTray />
        <Suspense>
          <PlanHost />
          {layer === 'palette' && <Palette onClose={close} />}
          {layer === 'help' && <KeyHelp onClose={close} />}
        </Suspense>
        <Drawer open={layer === 'menu'} onClose={close} title={copy.shell.navigation}>
          <Navigation withLabels onNavigate={close} />
        </Drawer>
      </StaleContext>
    </AttentionContext>
  )
}

type HeaderProps = { readonly onPalette: () => void; readonly onHelp: () => void; readonly onMenu: () => void }

function Header({ onPalette, onHelp, onMenu }: HeaderProps) {
  const me = useMe()
  return (
    <header data-no-print="" className="sticky top-0 z-30 flex h-12 items-center gap-2 border-line border-b bg-bg px-3">
      <IconButton
        label={copy.shell.menu}
        icon="menu"
        className="md:hidden"
        onClick={onMenu}
        onPointerEnter={preloadDialog}
      />
      <a href={routes.overview()} className="flex items-center gap-2 rounded-control px-1.5 font-semibold text-section">
        <span className="inline-flex size-6 items-center justify-center rounded-[5px] bg-accent text-on-accent">
          <Icon name="key" size={14} />
        </span>
        <span className="max-sm:sr-only">{copy.product}</span>
      </a>
      <EnvironmentLabel environment={me.environment} />
      <button
        type="button"
        aria-haspopup="dialog"
        aria-label={copy.shell.search}
        aria-keyshortcuts="Control+K Meta+K"
        onClick={onPalette}
        onPointerEnter={loadPalette}
        onFocus={loadPalette}
        className="mx-auto inline-flex h-control min-w-control items-center gap-2 rounded-control border-line-strong px-2 text-small text-text-3 hover:bg-sunken md:w-90 md:border md:bg-surface md:px-3"
      >
        <Icon name="search" size={14} />
        <span className="max-md:sr-only">{copy.shell.search}</span>
        <kbd className="ms-auto font-sans max-md:hidden">{copy.shell.searchKey}</kbd>
      </button>
      <LiveChip />
      <OperationsButton />
      <IconButton label={copy.shell.shortcuts} icon="question" onClick={onHelp} className="max-sm:hidden" />
      <Menu
        label={copy.shell.signedInAs(me.person.name, me.person.role)}
        icon="person"
        items={[
          {
            label: copy.shell.account(me.person.name, me.person.role),
            icon: 'person',
            href: routes.profile(),
          },
          { label: copy.shell.appearance, icon: 'settings', href: routes.appearance() },
          { label: copy.shell.shortcuts, icon: 'question', onSelect: onHelp },
          'line',
          { label: copy.shell.signOut, icon: 'external', onSelect: signOut },
        ]}
      />
    </header>
  )
}

function SkipLinks() {
  const skip = (selector: string) => () => document.querySelector<HTMLElement>(selector)?.focus()
  const styles =
    'sr-only focus-visible:not-sr-only focus-visible:fixed focus-visible:start-3 focus-visible:top-2 focus-visible:z-50 focus-visible:rounded-control focus-visible:bg-overlay focus-visible:px-3 focus-visible:py-2'
  return (
    <div data-no-print="">
      <button type="button" className={styles} onClick={skip('#content')}>
        {copy.shell.skipToContent}
      </button>
      <button type="button" className={styles} onClick={skip(FILTER_BOX)}>
        {copy.shell.skipToFilters}
      </button>
      <button type="button" className={styles} onClick={skip('#operations')}>
        {copy.shell.skipToOperations}
      </button>
    </div>
  )
}

/** Always rendered: screen readers ignore a region that is added together with its text. */
function Announcements() {
  return (
    <>
      <p aria-live="polite" data-announce="polite" className="sr-only" />
      <p aria-live="assertive" data-announce="assertive" className="sr-only" />
    </>
  )
}

/** From anywhere on the page into its first table; inside, the table itself moves the focus. */
function focusRow(direction: 'next' | 'previous'): void {
  const rows = [...document.querySelectorAll<HTMLElement>(ROWS)].filter((row) => row.checkVisibility())
  const active = rows.find((row) => row.tabIndex === 0)
  const row = active ?? rows.at(direction === 'next' ? 0 : -1)
  row?.focus()
  row?.scrollIntoView({ block: 'nearest' })
}

function nextTab(step: 1 | -1): void {
  const tabs = [...document.querySelectorAll<HTMLElement>(TABS)]
  const at = tabs.findIndex((tab) => tab.getAttribute('aria-current') === 'page')
  tabs[(at + step + tabs.length) % tabs.length]?.click()
}
