'use client'
/** A part of a page with all of its states (docs/design/console.md#panels). */
import type { MissingSource } from '@vacancy/shared/contract'
import clsx from 'clsx'
import { createContext, type ReactNode, useContext, useEffect, useId, useState } from 'react'
import { Icon } from '../icons/icon.tsx'
import { missingText } from '../lib/missing.ts'
import { ApiProblem } from '../lib/problem.ts'
import { serverNow } from '../lib/server-time.ts'
import { Age } from './age.tsx'
import { Boundary } from './boundary.tsx'
import { Button } from './button.tsx'
import { CodeView } from './code-view.tsx'
import * as copy from './copy.ts'
import { CopyButton } from './copy-button.tsx'

/** Disconnected from the control plane: the last known values are shown. Provided by the shell. */
export const StaleContext = createContext(false)

/** The part of a TanStack query that a panel uses. */
export type PanelQuery<T> = {
  readonly data: T | undefined
  readonly error: unknown
  readonly isPending: boolean
  readonly isFetching: boolean
  readonly refetch: () => unknown
}

type PanelProps<T> = {
  readonly title: string
  readonly level?: 2 | 3
  /** For screen readers only, where the page title is the same. */
  readonly hideTitle?: boolean
  readonly query?: PanelQuery<T>
  readonly children: ReactNode | ((data: T) => ReactNode)
  readonly isEmpty?: (data: T) => boolean
  readonly empty?: EmptyProps
  /** Set when the filter matches nothing. */
  readonly filtered?: { readonly text: string; readonly onClear: () => void } | undefined
  readonly missing?: (data: T) => readonly MissingSource[]
  /** The total that `missing` is a part of. */
  readonly sources?: (data: T) => number
  readonly at?: (data: T) => string | null
  /** The missing role: "Needs the admin role". */
  readonly denied?: string | undefined
  readonly actions?: ReactNode
  /** Rows of the skeleton, in the size of the content. */
  readonly skeleton?: number
  readonly className?: string
  /** Content without padding, for tables. */
  readonly flush?: boolean
  readonly data?: { readonly [attribute: `data-${string}`]: string | undefined }
}

type PanelState = 'loading' | 'ready' | 'empty' | 'filtered' | 'partial' | 'error' | 'denied' | 'stale'

export function Panel<T>(props: PanelProps<T>) {
  const { title, level = 2, hideTitle, query, actions, className, flush, at, missing, sources } = props
  const id = useId()
  const isDisconnected = useContext(StaleContext)
  const data = query?.data
  const absent = data !== undefined && missing ? missing(data) : []
  const state = stateOf(props, isDisconnected, absent.length > 0)
  const Heading = level === 2 ? 'h2' : 'h3'
  return (
    <section
      aria-labelledby={id}
      aria-busy={state === 'loading' || undefined}
      data-panel-state={state}
      {...props.data}
      className={clsx(
        'relative flex min-w-0 flex-col rounded-panel border border-line bg-surface',
        state === 'stale' && 'overflow-clip ps-1.5',
        className,
      )}
    >
      {state === 'stale' && <span aria-hidden="true" className="hatch absolute inset-y-0 start-0 w-1.5 bg-unk-bg" />}
      <div
        className={clsx(
          hideTitle && !actions ? 'sr-only' : 'flex min-h-11 flex-wrap items-center gap-x-3 gap-y-1 px-4 pt-2 pb-1',
        )}
      >
        <Heading
          id={id}
          className={clsx(level === 2 ? 'text-section' : 'font-semibold text-body', hideTitle && 'sr-only')}
        >
          {title}
        </Heading>
        {data !== undefined && at && <Age at={at(data)} className="text-small" />}
        {actions && <div className="ms-auto flex flex-wrap items-center gap-2">{actions}</div>}
      </div>
      {absent.length > 0 && data !== undefined && (
        <PartialStrip missing={absent} {...(sources ? { of: sources(data) } : {})} />
      )}
      <Boundary name={`panel ${title}`} fallback={(error, retry) => <Failed error={error} onRetry={retry} />}>
        <div
          className={clsx(
            'flex min-w-0 grow flex-col',
            // Tables are clipped at the rounded corners. Panels with fields that open lists must not be flush.
            flush && 'overflow-clip rounded-b-panel',
            (!flush || !isContent(props, state)) && (hideTitle && !actions ? 'p-4' : 'px-4 pt-1 pb-4'),
          )}
        >
          <Content {...props} state={state} />
        </div>
      </Boundary>
    </section>
  )
}

function stateOf<T>(
  { query, denied, filtered, isEmpty }: PanelProps<T>,
  isDisconnected: boolean,
  isPartial: boolean,
): PanelState {
  if (denied !== undefined) return 'denied'
  if (!query) return filtered ? 'filtered' : isDisconnected ? 'stale' : 'ready'
  if (query.data === undefined) {
    if (query.error instanceof ApiProblem && query.error.status === 403) return 'denied'
    return query.error ? 'error' : 'loading'
  }
  if (isDisconnected || query.error) return 'stale'
  if (filtered) return 'filtered'
  if (isPartial) return 'partial'
  return isEmpty?.(query.data) ? 'empty' : 'ready'
}

/** Whether the content itself is shown rather than one of the other states. */
function isContent<T>({ query, filtered, empty, isEmpty }: PanelProps<T>, state: PanelState): boolean {
  if (state === 'denied' || filtered) return false
  if (!query) return true
  return query.data !== undefined && !(empty && isEmpty?.(query.data))
}

function Content<T>({
  query,
  children,
  denied,
  filtered,
  empty,
  isEmpty,
  skeleton = 5,
  state,
}: PanelProps<T> & { state: PanelState }) {
  if (state === 'denied') return <Denied text={denied ?? problemText(query?.error)} />
  if (filtered)
    return (
      <EmptyState text={filtered.text} action={<Button onClick={filtered.onClear}>{copy.panel.clearFilters}</Button>} />
    )
  if (!query) return typeof children === 'function' ? null : children
  if (query.data === undefined) {
    if (query.error) return <ErrorState error={query.error} onRetry={query.refetch} busy={query.isFetching} />
    return <Skeleton rows={skeleton} />
  }
  const note = query.error ? <RefreshFailed error={query.error} onRetry={query.refetch} /> : null
  if (empty && isEmpty?.(query.data)) {
    return (
      <>
        {note}
        <EmptyState {...empty} />
      </>
    )
  }
  return (
    <>
      {note}
      {typeof children === 'function' ? <Render data={query.data}>{children}</Render> : children}
    </>
  )
}

/** A component of its own, so that a render error is caught by the boundary. */
function Render<T>({ data, children }: { data: T; children: (data: T) => ReactNode }) {
  return children(data)
}

const SKELETON_AFTER_MS = 150

/** Grey bars in the final size, invisible for the first 150 ms. */
export function Skeleton({ rows = 5 }: { readonly rows?: number }) {
  const [isShown, setShown] = useState(false)
  useEffect(() => {
    const timer = setTimeout(() => setShown(true), SKELETON_AFTER_MS)
    return () => clearTimeout(timer)
  }, [])
  return (
    <div role="status" aria-label={copy.panel.loading} className={clsx('flex flex-col', !isShown && 'invisible')}>
      {Array.from({ length: rows }, (_, row) => (
        <div key={row} className="flex h-row items-center gap-6">
          <span className="h-3 w-1/6 rounded-control bg-sunken" />
          <span className="h-3 rounded-control bg-sunken" style={{ width: `${30 + ((row * 37) % 31)}%` }} />
        </div>
      ))}
    </div>
  )
}

export type EmptyProps = {
  /** What belongs here and why there is none. */
  readonly text: string
  /** The usual next step. */
  readonly action?: ReactNode
  /** The same from the command line. */
  readonly code?: string
}

export function EmptyState({ text, action, code }: EmptyProps) {
  return (
    <div className="flex flex-col items-start gap-3 text-text-2">
      <p className="prose">{text}</p>
      {action}
      {code && <CodeView label={copy.panel.fromCommandLine} code={code} />}
    </div>
  )
}

function Denied({ text }: { text: string }) {
  return (
    <div className="flex items-center gap-2 text-text-2">
      <Icon name="shield" />
      <p>{text}</p>
    </div>
  )
}

type ErrorProps = {
  readonly error: unknown
  readonly onRetry?: () => unknown
  readonly busy?: boolean
}

/** The failed request, its code, what to do, and details to copy into a ticket. */
export function ErrorState({ error, onRetry, busy = false }: ErrorProps) {
  const problem = error instanceof ApiProblem ? error : undefined
  return (
    <div role="alert" className="flex flex-col gap-2">
      <p className="flex items-start gap-2 font-medium text-crit">
        <Icon name="octagon" className="mt-0.5" />
        <span className="min-w-0 break-words first-letter:uppercase">{problemText(error)}</span>
      </p>
      {problem?.hint && <p className="prose text-text-2">{problem.hint}</p>}
      {problem && (
        <p className="break-words font-mono text-small text-text-3">
          {problem.request} · {problem.status || copy.panel.noResponse} {problem.code}
          {problem.requestId && ` · ${copy.panel.request(problem.requestId)}`}
        </p>
      )}
      <div className="flex flex-wrap gap-2 pt-1">
        {onRetry && (
          <Button icon="refresh" busy={busy} onClick={() => onRetry()}>
            {copy.panel.retry}
          </Button>
        )}
        <CopyButton kind="quiet" label={copy.panel.copyDetails} text={() => errorDetails(error)} />
      </div>
    </div>
  )
}

/** Shown above old content when a refresh failed. */
function RefreshFailed({ error, onRetry }: ErrorProps) {
  return (
    <div
      role="status"
      className="mb-2 flex flex-wrap items-center gap-2 rounded-control bg-warn-bg px-3 py-1 text-small text-warn"
    >
      <Icon name="triangle" size={14} />
      <span className="min-w-0 break-words">{copy.panel.refreshFailed(problemText(error))}</span>
      {onRetry && (
        <Button kind="quiet" className="ms-auto text-warn" onClick={() => onRetry()}>
          {copy.panel.retry}
        </Button>
      )}
    </div>
  )
}

function problemText(error: unknown): string {
  return error instanceof Error ? error.message : copy.panel.unknownError
}

function errorDetails(error: unknown): string {
  const lines = [problemText(error), location.href, new Date(serverNow()).toISOString()]
  if (error instanceof ApiProblem)
    lines.push(`${error.request} → ${error.status} ${error.code}`, copy.panel.request(error.requestId))
  else if (error instanceof Error && error.stack) lines.push(error.stack)
  return lines.join('\n')
}

type PartialProps = { readonly missing: readonly MissingSource[]; readonly of?: number }

const NAMED_MAX = 4

/** Names the sources that did not respond; their values are left out. */
export function PartialStrip({ missing, of }: PartialProps) {
  const named = missing.slice(0, NAMED_MAX)
  return (
    <div
      role="status"
      data-missing={missing.length}
      className="relative mx-4 mt-1 mb-2 flex flex-wrap items-baseline gap-x-2 overflow-clip rounded-control bg-unk-bg py-1.5 ps-4 pe-3 text-small text-unk"
    >
      {/* Beside the text, which it would make hard to read. */}
      <span aria-hidden="true" className="hatch absolute inset-y-0 start-0 w-1.5" />
      <span className="font-medium">{missingText(missing, of)}:</span>
      <span className="min-w-0 break-words">
        {named.map(({ source, message }) => `${source} (${message})`).join(', ')}
        {missing.length > named.length && ', …'}
      </span>
      {missing.length > 0 && (
        <details className="basis-full">
          <summary className="w-fit underline underline-offset-2">{copy.panel.showAll}</summary>
          <ul className="flex flex-col gap-0.5 pt-1">
            {missing.map((one) => (
              <li key={`${one.source} ${one.code}`} className="break-words">
                <span className="font-mono">{one.source}</span> {one.message} <Age at={one.since} suffix="" />
              </li>
            ))}
          </ul>
        </details>
      )}
    </div>
  )
}

function Failed({ error, onRetry }: { readonly error: unknown; readonly onRetry: () => void }) {
  return (
    <div role="alert" data-panel-failed="" className="flex flex-col items-start gap-2 px-4 pt-1 pb-4">
      <p className="flex items-center gap-2 font-medium text-crit">
        <Icon name="octagon" />
        {copy.panel.failed}
      </p>
      <p className="break-words text-text-2">{problemText(error)}</p>
      <div className="flex flex-wrap gap-2">
        <Button icon="refresh" onClick={onRetry}>
          {copy.panel.reload}
        </Button>
        <CopyButton kind="quiet" label={copy.panel.copyDetails} text={() => errorDetails(error)} />
      </div>
    </div>
  )
}
