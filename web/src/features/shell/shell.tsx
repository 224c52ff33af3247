'use client'
/** The frame around every page: who, where, how fresh, and ways to everywhere (docs/design/control-plane.md#shell). */
import { type QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { lazy, type ReactNode, Suspense, useEffect, useState } from 'react'
import { Icon } from '../../icons/icon.tsx'
import { AddressProvider } from '../../lib/address.tsx'
import type { FirstData } from '../../lib/first-data.ts'
import { listenForKeys, useKey } from '../../lib/keys.ts'
import { type LiveValue, liveKey, startLive, useLive, useLiveStatus } from '../../lib/live.ts'
import { createQueries } from '../../lib/queries.ts'
import { routes } from '../../lib/routes.ts'
import { useMe } from '../../lib/session.ts'
import { Drawer, preloadDialog } from '../../ui/dialog.tsx'
import { FirstPaintContext } from '../../ui/first-paint.ts'
import { IconButton } from '../../ui/icon-button.tsx'
import { Menu } from '../../ui/menu.tsx'
import { AttentionContext } from '../../ui/page.tsx'
import { StaleContext } from '../../ui/panel.tsx'
import { ToastHost } from '../../ui/toast.tsx'
import { TooltipHost } from '../../ui/tooltip.tsx'
import { OperationsButton, OperationsTray } from '../operations/operations-tray.tsx'
import { PlanHost } from '../operations/plan-host.tsx'
import { keepTyped, takeTyped } from '../palette/typed-ahead.ts'
import { knowMe, SessionGate } from '../session/session-gate.tsx'
import { signOut } from '../session/sign-out.ts'
import { Banners } from './banners.tsx'
import { EnvironmentLabel } from './environment-label.tsx'
import { LiveChip } from './live-chip.tsx'
import { Navigation, PageKeys } from './navigation.tsx'
import { isDrawn, Outlet } from './outlet.tsx'

/** Of the page that is seen: others may stand in the document, hidden. */
const FILTER_BOX = '#content [data-filter-box] input'

const loadPalette = () => import('../palette/palette.tsx')
const Palette = lazy(loadPalette)
const KeyHelp = lazy(() => import('../help/key-help.tsx'))

type ShellProps = {
  /** With it the server draws the page; without it the browser asks for all of it. */
  readonly first: FirstData | undefined
  readonly children: ReactNode
}

export function Shell({ first, children }: ShellProps) {
  const [queries] = useState(() => startingFrom(first))
  return (
    <FirstPaintContext value={first ?? NOTHING_DRAWN}>
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

const NOTHING_DRAWN = { at: 0, isNarrow: false }

/** The server draws from these answers, and the browser goes on with them. */
function startingFrom(first: FirstData | undefined): QueryClient {
  const queries = createQueries()
  if (!first) return queries
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
    keepTyped(close)
    loadPalette().catch(takeTyped)
    setLayer('palette')
  }
  useEffect(() => startLive(queries), [queries])
  useEffect(() => listenForKeys(), [])
  useEffect(() => () => void takeTyped(), [])
  useKey('mod+k', () => (layer === 'palette' ? close() : showPalette()), 'Search, or run a command')
  useKey('?', () => show('help'), 'Show these keys')
  useKey('/', () => document.querySelector<HTMLElement>(FILTER_BOX)?.focus(), 'Filter this page')
  useKey('[', () => nextTab(-1), 'Previous tab')
  useKey(']', () => nextTab(1), 'Next tab')
  const attention = useLive('summary', attentionOf).data ?? 0
  const isCut = useLiveStatus().link.state === 'offline'
  return (
    <AttentionContext value={attention}>
      <StaleContext value={isCut}>
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
        <Drawer open={layer === 'menu'} onClose={close} title="Pages">
          <Navigation words onGo={close} />
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
      <IconButton label="Menu" icon="menu" className="md:hidden" onClick={onMenu} onPointerEnter={preloadDialog} />
      <a href={routes.overview()} className="flex items-center gap-2 rounded-control px-1.5 font-semibold text-section">
        <span className="inline-flex size-6 items-center justify-center rounded-[5px] bg-accent text-on-accent">
          <Icon name="key" size={14} />
        </span>
        <span className="max-sm:sr-only">Vacancy</span>
      </a>
      <EnvironmentLabel environment={me.environment} />
      <button
        type="button"
        aria-haspopup="dialog"
        aria-label="Search or run a command"
        aria-keyshortcuts="Control+K Meta+K"
        onClick={onPalette}
        onPointerEnter={loadPalette}
        onFocus={loadPalette}
        className="mx-auto inline-flex h-control min-w-control items-center gap-2 rounded-control border-line-strong px-2 text-small text-text-3 hover:bg-sunken md:w-90 md:border md:bg-surface md:px-3"
      >
        <Icon name="search" size={14} />
        <span className="max-md:sr-only">Search or run a command</span>
        <kbd className="ms-auto font-sans max-md:hidden">Ctrl K</kbd>
      </button>
      <LiveChip />
      <OperationsButton />
      <IconButton label="Keys" icon="question" onClick={onHelp} className="max-sm:hidden" />
      <Menu
        label={`Signed in as ${me.person.name}, ${me.person.role}`}
        icon="person"
        items={[
          { label: `${me.person.name} · ${me.person.role}`, icon: 'person', href: routes.setting('profile') },
          { label: 'Appearance', icon: 'settings', href: routes.setting('appearance') },
          { label: 'Keys', icon: 'question', onSelect: onHelp },
          'line',
          { label: 'Sign out', icon: 'external', onSelect: signOut },
        ]}
      />
    </header>
  )
}

function SkipLinks() {
  const skip = (selector: string) => () => document.querySelector<HTMLElement>(selector)?.focus()
  const look =
    'sr-only focus-visible:not-sr-only focus-visible:fixed focus-visible:start-3 focus-visible:top-2 focus-visible:z-50 focus-visible:rounded-control focus-visible:bg-overlay focus-visible:px-3 focus-visible:py-2'
  return (
    <div data-no-print="">
      <button type="button" className={look} onClick={skip('#content')}>
        To content
      </button>
      <button type="button" className={look} onClick={skip(FILTER_BOX)}>
        To filters
      </button>
      <button type="button" className={look} onClick={skip('#operations')}>
        To operations
      </button>
    </div>
  )
}

/** Always in the page: a region that comes together with its text is not read. */
function Announcements() {
  return (
    <>
      <p aria-live="polite" data-announce="polite" className="sr-only" />
      <p aria-live="assertive" data-announce="assertive" className="sr-only" />
    </>
  )
}

function nextTab(step: 1 | -1): void {
  const tabs = [...document.querySelectorAll<HTMLElement>('#content [data-path-tabs] a')]
  const at = tabs.findIndex((tab) => tab.getAttribute('aria-current') === 'page')
  tabs[(at + step + tabs.length) % tabs.length]?.click()
}
