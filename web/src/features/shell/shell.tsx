'use client'
/** The frame around every page: session, environment, freshness and navigation (docs/design/console.md#shell). */
import { type QueryClient, QueryClientProvider } from '@tanstack/react-query'
import type { AttentionItem, Summary } from '@vacancy/shared/contract'
import clsx from 'clsx'
import { memo, type ReactNode, Suspense, useEffect, useId, useState } from 'react'
import { Icon, type IconName } from '../../icons/icon.tsx'
import { AddressProvider, useMoment, usePath } from '../../lib/address.tsx'
import * as libCopy from '../../lib/copy.ts'
import type { FirstData } from '../../lib/first-data.ts'
import { listenForKeys, useKey } from '../../lib/keys.ts'
import {
  type LiveValue,
  lastSeenAt,
  liveKey,
  pauseLive,
  resumeLive,
  retryLive,
  startLive,
  useLive,
  useLiveStatus,
} from '../../lib/live.ts'
import { isNodeSource } from '../../lib/missing.ts'
import { navigate } from '../../lib/navigate.ts'
import { isUnder, MAIN_PAGES, MORE_PAGES, type PageLink } from '../../lib/pages.ts'
import { createQueries } from '../../lib/queries.ts'
import { routes } from '../../lib/routes.ts'
import { learnServerNow } from '../../lib/server-time.ts'
import { may, useMe } from '../../lib/session.ts'
import { Age } from '../../ui/age.tsx'
import { Banner } from '../../ui/banner.tsx'
import { Button } from '../../ui/button.tsx'
import { useWallNow } from '../../ui/clock.ts'
import { Drawer, preloadDialog } from '../../ui/dialog.tsx'
import { EnvironmentLabel } from '../../ui/environment-label.tsx'
import { FirstPaintContext } from '../../ui/first-paint.ts'
import { IconButton } from '../../ui/icon-button.tsx'
import { late } from '../../ui/late.tsx'
import { Menu } from '../../ui/menu.tsx'
import { AttentionContext } from '../../ui/page.tsx'
import { StaleContext } from '../../ui/panel.tsx'
import { Popover } from '../../ui/popover.tsx'
import { ToastHost } from '../../ui/toast.tsx'
import { TooltipHost } from '../../ui/tooltip.tsx'
import { OperationsButton, OperationsTray } from '../operations/operations-tray.tsx'
import { PlanHost } from '../operations/plan-host.tsx'
import { bufferTyped, takeTyped } from '../palette/typed-ahead.ts'
import { knowMe, SessionGate } from '../session/session-gate.tsx'
import { signOut } from '../session/sign-out.ts'
import * as copy from './copy.ts'
import { chipOf, type LiveState } from './live-state.ts'
import { isDrawn, Outlet } from './outlet.tsx'

type NavigationProps = {
  /** Shows labels at every width, for the menu of small windows. */
  readonly withLabels?: boolean
  readonly onNavigate?: () => void
}

/** Links to the pages: icons with labels, icons with tooltips in narrower windows, a menu on phones. */
const Navigation = memo(function Navigation({ withLabels = false, onNavigate }: NavigationProps) {
  return (
    <nav aria-label={copy.shell.navigation} className="flex flex-col gap-1 p-2">
      <List pages={MAIN_PAGES} withLabels={withLabels} {...(onNavigate ? { onNavigate } : {})} />
      <hr className="my-2 border-line" />
      <List pages={MORE_PAGES} withLabels={withLabels} {...(onNavigate ? { onNavigate } : {})} />
    </nav>
  )
})

/** The page that shows the items of each area. */
const PAGE_OF: { readonly [area in AttentionItem['area']]: string } = {
  shards: routes.shards(),
  fabric: routes.topology(),
  queue: routes.queue(),
  imports: routes.imports(),
  operations: routes.operations(),
  'control-plane': routes.overview(),
}

type Badge = { items: number; isCritical: boolean }

/** Items that need attention, by page. */
function badgesOf({ attention }: Pick<Summary, 'attention'>): { readonly [href: string]: Badge } {
  const badges: { [href: string]: Badge } = {}
  for (const { area, level, asideUntil } of attention) {
    if (asideUntil !== null) continue
    badges[PAGE_OF[area]] ??= { items: 0, isCritical: false }
    const badge = badges[PAGE_OF[area]] as Badge
    badge.items++
    badge.isCritical ||= level === 'crit'
  }
  return badges
}

function List({ pages, withLabels, onNavigate }: NavigationProps & { pages: readonly PageLink[] }) {
  const path = usePath()
  const id = useId()
  const badges = useLive('summary', badgesOf).data
  return (
    <ul className="flex flex-col gap-0.5">
      {pages.map((page) => {
        const isHere = isUnder(path, page)
        const badge = badges?.[page.href]
        return (
          <li key={page.href}>
            <a
              href={page.href}
              aria-current={isHere ? 'page' : undefined}
              aria-describedby={badge === undefined ? undefined : `${id}${page.href}`}
              data-tip={withLabels ? undefined : page.label}
              {...(onNavigate ? { onClick: onNavigate } : {})}
              className={clsx(
                'relative flex h-9 items-center gap-3 rounded-control px-3 font-medium text-table pointer-coarse:h-11',
                isHere
                  ? 'bg-surface text-accent shadow-[inset_2px_0_0_var(--color-accent)] rtl:shadow-[inset_-2px_0_0_var(--color-accent)]'
                  : 'text-text-2 hover:bg-sunken hover:text-text',
              )}
            >
              <Icon name={page.icon} />
              <span className={withLabels ? '' : 'max-lg:sr-only'}>{page.label}</span>
              {badge !== undefined && (
                <span
                  aria-hidden="true"
                  className={clsx(
                    'num ms-auto rounded-full px-1.5 text-small',
                    badge.isCritical ? 'bg-crit font-medium text-surface' : 'bg-warn-bg text-text',
                    !withLabels && 'max-lg:absolute max-lg:end-0.5 max-lg:top-0',
                  )}
                >
                  {badge.items}
                </span>
              )}
            </a>
            {badge !== undefined && (
              <span id={`${id}${page.href}`} hidden>
                {copy.shell.badge(badge.items)}
              </span>
            )}
          </li>
        )
      })}
    </ul>
  )
}

/** Registers `g` and a letter for each page that has one. */
function PageKeys() {
  return [...MAIN_PAGES, ...MORE_PAGES].flatMap((page) => (page.key ? <PageKey key={page.href} page={page} /> : []))
}

function PageKey({ page }: { page: PageLink }) {
  useKey(`g ${page.key}`, () => navigate(page.href), copy.keys.goTo(page.label))
  return null
}

// Loaded when a source is silent.
const MissingBanner = late(async () => (await import('./missing-banner.tsx')).default)

type Problems = Pick<LiveValue<'summary'>, 'missing'> & { nodes: number; worst: AttentionItem | undefined }

const NONE_MISSING: Problems = { missing: [], nodes: 0, worst: undefined }
const problemsOf = ({ missing, counts, attention }: LiveValue<'summary'>): Problems => ({
  missing,
  nodes: counts.nodes,
  worst: attention.find(({ asideUntil, level }) => asideUntil === null && level === 'crit'),
})

/** Pages that show silent nodes in their place: there, a banner would repeat it. */
const SHOWS_NODES = [routes.overview(), routes.shards(), routes.topology()]
const showsNodes = (path: string) => SHOWS_NODES.includes(path) || path.startsWith(`${routes.shards()}/`)

/** Conditions of the whole page: disconnected, paused, sources without response. */
function Banners() {
  const path = usePath()
  const { link, paused } = useLiveStatus()
  const { missing: all, nodes, worst } = useLive('summary', problemsOf).data ?? NONE_MISSING
  const missing = showsNodes(path) ? all.filter((source) => !isNodeSource(source) && isOther(source)) : all
  if (link.state !== 'offline' && !paused && missing.length === 0) return null
  return (
    <div data-no-print="" className="flex flex-col gap-2 px-4 pt-3 md:px-6">
      {link.state === 'offline' && (
        <Banner
          level="crit"
          title={libCopy.session.disconnected}
          actions={
            <Button icon="refresh" onClick={retryLive}>
              {copy.banners.reconnect}
            </Button>
          }
        >
          {copy.banners.lastKnown} <Age at={new Date(link.since).toISOString()} className="text-text" />.{' '}
          {copy.banners.disconnected}
        </Banner>
      )}
      {paused && link.state !== 'offline' && (
        <Banner
          level="info"
          title={copy.banners.paused}
          actions={
            <Button icon="play" onClick={resumeLive}>
              {copy.banners.resume}
            </Button>
          }
        >
          {copy.banners.pausedHint}
        </Banner>
      )}
      {missing.length > 0 && (
        <Suspense>
          <MissingBanner missing={missing} nodes={nodes} worst={showsNodes(path) ? undefined : worst} />
        </Suspense>
      )}
    </div>
  )
}

/** Not a path of a node, which the page of its shard names. */
const isOther = ({ source }: LiveValue<'summary'>['missing'][number]) => !/^[^\s/]+\/[^\s/]+ \//.test(source)

const LivePanel = late(async () => (await import('./live-panel.tsx')).default)

const STYLES: Record<LiveState, { readonly icon: IconName; readonly colour: string }> = {
  live: { icon: 'dot', colour: 'text-ok' },
  delayed: { icon: 'clock', colour: 'text-warn' },
  stale: { icon: 'hourglass', colour: 'text-crit' },
  offline: { icon: 'plug-off', colour: 'text-crit' },
  paused: { icon: 'pause', colour: 'text-info' },
  polling: { icon: 'refresh', colour: 'text-info' },
  past: { icon: 'clock', colour: 'text-info' },
}

const oldestReadOf = ({ oldestReadAt }: Summary) => oldestReadAt

const PAST = { state: 'past', text: copy.live.past } as const

/** The freshness of the page; it opens details about sources. */
function LiveChip() {
  const status = useLiveStatus()
  const now = useWallNow()
  const moment = useMoment()
  const oldest = useLive('summary', oldestReadOf).data ?? null
  const { state, text } = moment === undefined ? chipOf(status, lastSeenAt(), now, oldest) : PAST
  const style = STYLES[state]
  useKey('p', () => (status.paused ? resumeLive() : pauseLive()), copy.keys.pause)
  return (
    <Popover
      label={copy.live.title}
      trigger={(wire) => (
        <button
          type="button"
          {...wire}
          data-live={state}
          className="inline-flex h-control min-w-6 items-center gap-1.5 whitespace-nowrap rounded-control px-2 text-small text-text-2 tabular-nums hover:bg-sunken sm:min-w-27"
        >
          <Icon name={style.icon} size={14} className={style.colour} />
          <span className={clsx((state === 'live' || state === 'polling') && 'max-sm:sr-only')}>{text}</span>
        </button>
      )}
    >
      {(close) => (
        <Suspense fallback={null}>
          <LivePanel status={status} title={text} onClose={close} />
        </Suspense>
      )}
    </Popover>
  )
}

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
      {!may(me, 'operator') && (
        <span data-tip={copy.banners.readOnlyHint} className="text-small text-text-2 max-md:sr-only">
          {copy.banners.readOnly}
        </span>
      )}
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
