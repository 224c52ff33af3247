'use client'
/** A part of a page with every state it can be in (docs/design/control-plane.md#panels): designed, not left over. */
import type { MissingSource } from '@vacancy/shared/contract'
import clsx from 'clsx'
import { Component, createContext, type ErrorInfo, type ReactNode, useContext, useEffect, useId, useState } from 'react'
import { Icon } from '../icons/icon.tsx'
import { missingSays } from '../lib/missing.ts'
import { ApiProblem } from '../lib/problem.ts'
import { Age } from './age.tsx'
import { Button } from './button.tsx'
import { CodeView } from './code-view.tsx'
import { CopyButton } from './copy.tsx'

/** The channel to the control plane is cut: what is shown is the last that was told. The shell knows it. */
export const StaleContext = createContext(false)

/** What a panel takes of a TanStack query. */
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
  /** The title is read, not drawn: where the page's own title says the same. */
  readonly hideTitle?: boolean
  readonly query?: PanelQuery<T>
  readonly children: ReactNode | ((data: T) => ReactNode)
  readonly isEmpty?: (data: T) => boolean
  readonly empty?: EmptyProps
  /** Set while a filter hides everything. */
  readonly filtered?: { readonly says: string; readonly onClear: () => void } | undefined
  readonly missing?: (data: T) => readonly MissingSource[]
  /** Of how many sources some are missing. */
  readonly sources?: (data: T) => number
  readonly at?: (data: T) => string | null
  /** The role that is missing, in words: "Needs the admin role". */
  readonly denied?: string | undefined
  readonly actions?: ReactNode
  /** Rows of the skeleton: the size that the content will have. */
  readonly skeleton?: number
  readonly className?: string
  /** Content reaches the edges: tables. */
  readonly flush?: boolean
  readonly data?: { readonly [attribute: `data-${string}`]: string | undefined }
}

type PanelState = 'loading' | 'ready' | 'empty' | 'filtered' | 'partial' | 'error' | 'denied' | 'stale'

export function Panel<T>(props: PanelProps<T>) {
  const { title, level = 2, hideTitle, query, actions, className, flush, at, missing, sources } = props
  const id = useId()
  const isCut = useContext(StaleContext)
  const data = query?.data
  const absent = data !== undefined && missing ? missing(data) : []
  const state = stateOf(props, isCut, absent.length > 0)
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
      <Boundary title={title}>
        <div
          className={clsx(
            'flex min-w-0 grow flex-col',
            // Tables reach into the rounded corners; fields that open a list over the edge stand in panels that do not.
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
  isCut: boolean,
  isPartial: boolean,
): PanelState {
  if (denied !== undefined) return 'denied'
  if (!query) return filtered ? 'filtered' : isCut ? 'stale' : 'ready'
  if (query.data === undefined) {
    if (query.error instanceof ApiProblem && query.error.status === 403) return 'denied'
    return query.error ? 'error' : 'loading'
  }
  if (isCut || query.error) return 'stale'
  if (filtered) return 'filtered'
  if (isPartial) return 'partial'
  return isEmpty?.(query.data) ? 'empty' : 'ready'
}

/** The content itself, and none of the states that stand for it. */
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
  if (state === 'denied') return <Denied says={denied ?? problemText(query?.error)} />
  if (filtered)
    return <EmptyState says={filtered.says} action={<Button onClick={filtered.onClear}>Clear filters</Button>} />
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

/** A component of its own, so that what fails while drawing fails inside of the boundary. */
function Render<T>({ data, children }: { data: T; children: (data: T) => ReactNode }) {
  return children(data)
}

const SKELETON_AFTER_MS = 150

/** Grey bars in the final size; nothing at all before 150 ms. */
export function Skeleton({ rows = 5 }: { readonly rows?: number }) {
  const [isShown, setShown] = useState(false)
  useEffect(() => {
    const timer = setTimeout(() => setShown(true), SKELETON_AFTER_MS)
    return () => clearTimeout(timer)
  }, [])
  return (
    <div role="status" aria-label="Loading" className={clsx('flex flex-col', !isShown && 'invisible')}>
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
  /** One sentence why. */
  readonly says: string
  /** The usual next step. */
  readonly action?: ReactNode
  /** How to do it without the console. */
  readonly code?: string
}

export function EmptyState({ says, action, code }: EmptyProps) {
  return (
    <div className="flex flex-col items-start gap-3 text-text-2">
      <p className="prose">{says}</p>
      {action}
      {code && <CodeView label="Without the console" code={code} />}
    </div>
  )
}

function Denied({ says }: { says: string }) {
  return (
    <div className="flex items-center gap-2 text-text-2">
      <Icon name="shield" />
      <p>{says}</p>
    </div>
  )
}

type ErrorProps = {
  readonly error: unknown
  readonly onRetry?: () => unknown
  readonly busy?: boolean
}

/** What was asked, the code, what to do, and something to copy into a ticket. */
export function ErrorState({ error, onRetry, busy = false }: ErrorProps) {
  const problem = error instanceof ApiProblem ? error : undefined
  return (
    <div role="alert" className="flex flex-col gap-2">
      <p className="flex items-start gap-2 font-medium text-crit">
        <Icon name="octagon" className="mt-0.5" />
        <span className="min-w-0 break-words">{problemText(error)}</span>
      </p>
      {problem?.hint && <p className="prose text-text-2">{problem.hint}</p>}
      {problem && (
        <p className="break-words font-mono text-small text-text-3">
          {problem.asked} · {problem.status || 'no answer'} {problem.code}
          {problem.requestId && ` · request ${problem.requestId}`}
        </p>
      )}
      <div className="flex flex-wrap gap-2 pt-1">
        {onRetry && (
          <Button icon="refresh" busy={busy} onClick={() => onRetry()}>
            Try again
          </Button>
        )}
        <CopyButton kind="quiet" label="Copy details" text={() => errorDetails(error)} />
      </div>
    </div>
  )
}

/** The content is the last that was told; asking again failed. */
function RefreshFailed({ error, onRetry }: ErrorProps) {
  return (
    <div
      role="status"
      className="mb-2 flex flex-wrap items-center gap-2 rounded-control bg-warn-bg px-3 py-1 text-small text-warn"
    >
      <Icon name="triangle" size={14} />
      <span className="min-w-0 break-words">Not refreshed: {problemText(error)}</span>
      {onRetry && (
        <Button kind="quiet" className="ms-auto text-warn" onClick={() => onRetry()}>
          Try again
        </Button>
      )}
    </div>
  )
}

function problemText(error: unknown): string {
  return error instanceof Error ? error.message : 'This could not be read.'
}

function errorDetails(error: unknown): string {
  const lines = [problemText(error), location.href, new Date().toISOString()]
  if (error instanceof ApiProblem)
    lines.push(`${error.asked} → ${error.status} ${error.code}`, `request ${error.requestId}`)
  else if (error instanceof Error && error.stack) lines.push(error.stack)
  return lines.join('\n')
}

type PartialProps = { readonly missing: readonly MissingSource[]; readonly of?: number }

const NAMED_AT_MOST = 4

/** Who did not answer: what they would have told is left out, not filled in. */
export function PartialStrip({ missing, of }: PartialProps) {
  const named = missing.slice(0, NAMED_AT_MOST)
  return (
    <div
      role="status"
      data-missing={missing.length}
      className="hatch mx-4 my-1 flex flex-wrap items-baseline gap-x-2 rounded-control bg-unk-bg px-3 py-1.5 text-small text-unk"
    >
      <span className="font-medium">{missingSays(missing, of)}:</span>
      <span className="min-w-0 break-words">
        {named.map(({ source, message }) => `${source} (${message})`).join(', ')}
        {missing.length > named.length && ', …'}
      </span>
      {missing.length > 0 && (
        <details className="basis-full">
          <summary className="w-fit underline underline-offset-2">All of them</summary>
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

type BoundaryProps = { readonly title: string; readonly children: ReactNode }

/** A panel that fails leaves the rest of the page alone. */
class Boundary extends Component<BoundaryProps, { error: unknown }> {
  override state: { error: unknown } = { error: undefined }

  static getDerivedStateFromError(error: unknown) {
    return { error }
  }

  override componentDidCatch(error: unknown, info: ErrorInfo) {
    console.error(`panel ${this.props.title} failed`, error, info.componentStack)
  }

  override render() {
    const { error } = this.state
    if (error === undefined) return this.props.children
    return (
      <div role="alert" data-panel-failed="" className="flex flex-col items-start gap-2 px-4 pt-1 pb-4">
        <p className="flex items-center gap-2 font-medium text-crit">
          <Icon name="octagon" />
          This panel failed
        </p>
        <p className="break-words text-text-2">{problemText(error)}</p>
        <div className="flex flex-wrap gap-2">
          <Button icon="refresh" onClick={() => this.setState({ error: undefined })}>
            Reload panel
          </Button>
          <CopyButton kind="quiet" label="Copy details" text={() => errorDetails(error)} />
        </div>
      </div>
    )
  }
}
