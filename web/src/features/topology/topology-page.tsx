'use client'
import type { RouteHop } from '@vacancy/shared/contract'
/** The fabric as map, table and text, with an inspector and the route of a segment. */
import { type FormEvent, Suspense, useCallback, useMemo, useState } from 'react'
import { useMoment } from '../../lib/address.tsx'
import { call } from '../../lib/api.ts'
import { duration } from '../../lib/format.ts'
import { useLive } from '../../lib/live.ts'
import { useUrlParam } from '../../lib/url.ts'
import { useRoute } from '../../lib/use-route.ts'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { CodeView } from '../../ui/code-view.tsx'
import { Combobox, type ComboOption } from '../../ui/combobox.tsx'
import { CopyButton } from '../../ui/copy-button.tsx'
import { late } from '../../ui/late.tsx'
import { NARROW, NO_THIRD_COLUMN, useMedia } from '../../ui/media.ts'
import { Page } from '../../ui/page.tsx'
import { Panel, Skeleton } from '../../ui/panel.tsx'
import { ViewTabs } from '../../ui/tabs.tsx'
import * as copy from './copy.ts'
import { Inspector, InspectorDrawer } from './inspector.tsx'
import { type Model, modelOf, problemsOf, sentencesOf, type Thing } from './model.ts'
import { TopologyTable } from './topology-table.tsx'

const OFFERED_MAX = 20

type RouteFormProps = { readonly segment: string; readonly onSegment: (segment: string) => void }

/** Where a segment goes, and why: the reply of each component on the way. */
function RoutePanel({ onFocus }: { readonly onFocus: (key: string) => void }) {
  const [segment, setSegment] = useUrlParam('segment')
  const moment = useMoment()
  if (moment !== undefined) return <p className="text-text-2">{copy.route.past}</p>
  return (
    <>
      <RouteForm key={segment} segment={segment} onSegment={(next) => setSegment(next, { push: true })} />
      {segment !== '' && <Route segment={segment} onFocus={onFocus} />}
    </>
  )
}

function RouteForm({ segment, onSegment }: RouteFormProps) {
  const [text, setText] = useState(segment)
  const submit = (event: FormEvent) => {
    event.preventDefault()
    onSegment(text.trim())
  }
  return (
    <form aria-label={copy.route.title} onSubmit={submit} className="flex max-w-160 flex-wrap items-center gap-2">
      <span className="text-text-2 max-sm:basis-full">{copy.route.title}</span>
      <div data-filter-box="" className="min-w-40 grow">
        <Combobox free label={copy.route.segment} value={text} onChange={setText} options={segments} />
      </div>
      <Button type="submit">{copy.route.submit}</Button>
    </form>
  )
}

async function segments(text: string, signal: AbortSignal): Promise<readonly ComboOption[]> {
  const query = { filter: text.trim(), limit: OFFERED_MAX }
  const found = await call('GET /api/v1/registry/datasets', { query, signal })
  return found.segments.map(({ segment, shard }) => ({ value: segment, hint: shard }))
}

function Route({ segment, onFocus }: { readonly segment: string; readonly onFocus: (key: string) => void }) {
  const route = useRoute('GET /api/v1/topology/route', { query: { segment } }, { staleTime: 0 })
  return (
    <Panel
      title={copy.route.answer(segment)}
      query={route}
      data={{ 'data-route': segment, 'data-level': route.data?.level }}
      actions={
        <Button icon="refresh" busy={route.isFetching} onClick={() => void route.refetch()}>
          {copy.route.again}
        </Button>
      }
    >
      {({ level, conclusion, hops }) => (
        <div className="flex flex-col gap-3">
          <p role="status">
            <Badge level={level}>{conclusion}</Badge>
          </p>
          <ol aria-label={copy.route.list} className="flex flex-col">
            {hops.map((hop) => (
              <Hop key={hop.key} hop={hop} onFocus={onFocus} />
            ))}
          </ol>
        </div>
      )}
    </Panel>
  )
}

function Hop({ hop, onFocus }: { readonly hop: RouteHop; readonly onFocus: (key: string) => void }) {
  return (
    <li
      data-hop={hop.key}
      data-level={hop.level}
      className="grid gap-x-4 gap-y-1 border-line border-t py-2 md:grid-cols-[14rem_1fr]"
    >
      <span className="flex min-w-0 flex-col items-start">
        <span className="text-small text-text-2">{copy.kinds[hop.kind]}</span>
        <button
          type="button"
          onClick={() => onFocus(hop.key)}
          className="min-h-6 max-w-full truncate font-mono text-accent underline underline-offset-2 pointer-coarse:min-h-11"
        >
          {hop.id}
        </button>
      </span>
      <span className="flex min-w-0 flex-col items-start gap-1">
        <Badge level={hop.level}>{hop.answer}</Badge>
        <span className="break-words text-text-2">{hop.why}</span>
        {hop.url === '' ? (
          hop.kind === 'node' && <span className="text-small text-text-3">{copy.route.fromPolls}</span>
        ) : (
          <details className="min-w-0 max-w-full">
            <summary className="w-fit break-all text-small text-text-3">
              {copy.route.reply(hop.url, hop.status, duration(hop.milliseconds))}
            </summary>
            {hop.body !== '' && <CodeView label={copy.route.body} code={hop.body} />}
          </details>
        )}
      </span>
    </li>
  )
}

const TopologyMap = late(async () => (await import('./topology-map.tsx')).TopologyMap)

const VIEWS = ['map', 'table', 'text'] as const

export function TopologyPage() {
  const topology = useLive('topology')
  const summary = useLive('summary')
  const isNarrow = useMedia(NARROW)
  const [viewText, setView] = useUrlParam('view')
  const [focus, setFocusText] = useUrlParam('focus')
  const view = VIEWS.find((each) => each === viewText) ?? (isNarrow ? 'table' : 'map')
  const model = useMemo(
    () => topology.data && modelOf(topology.data, summary.data?.shards ?? []),
    [topology.data, summary.data?.shards],
  )
  const isDrawer = useMedia(NO_THIRD_COLUMN)
  // The keyboard walks the map without it; a click, a result and Enter open it. A link to a component shows it at once.
  const [isOpen, setOpen] = useState(focus !== '')
  const setFocus = useCallback((key: string) => setFocusText(key), [setFocusText])
  const open = useCallback(
    (key: string) => {
      setFocusText(key)
      setOpen(key !== '')
    },
    [setFocusText],
  )
  const problems = model ? problemsOf(model) : []
  return (
    <Page
      id="topology"
      title={copy.page.title}
      ready={(model !== undefined && summary.data !== undefined) || topology.isError}
      lead={model && copy.page.lead(model.view.components.length, summary.data?.shards.length ?? 0, problems.length)}
    >
      <RoutePanel onFocus={open} />
      {problems.length > 0 && <Problems problems={problems} onFocus={open} />}
      <div className="grid items-start gap-4 lg:grid-cols-[minmax(0,1fr)_22rem]">
        <ViewTabs
          label={copy.page.views}
          value={view}
          onChange={(next) => setView(next, { push: true })}
          tabs={VIEWS.map((id) => ({ id, label: copy.page[id] }))}
        >
          <Panel
            title={copy.page[view]}
            hideTitle
            flush
            query={topology}
            isEmpty={(data) => data.components.length === 0 && (summary.data?.shards.length ?? 0) === 0}
            empty={{ text: copy.page.empty, code: copy.page.command }}
            skeleton={10}
          >
            {model && (
              <>
                {view === 'map' && (
                  <Suspense fallback={<Skeleton rows={10} />}>
                    <TopologyMap model={model} focus={focus} onFocus={setFocus} onOpen={open} />
                  </Suspense>
                )}
                {view === 'table' && <TopologyTable model={model} focus={focus} onFocus={open} />}
                {view === 'text' && <Sentences model={model} />}
              </>
            )}
          </Panel>
        </ViewTabs>
        {model && !isDrawer && <Inspector model={model} focus={focus} onFocus={open} />}
      </div>
      {model && isDrawer && isOpen && (
        <InspectorDrawer model={model} focus={focus} onFocus={open} onClose={() => setOpen(false)} />
      )}
    </Page>
  )
}

/** More of them would push the map out of view. */
const PROBLEMS_MAX = 10

function Problems({
  problems,
  onFocus,
}: {
  readonly problems: readonly Thing[]
  readonly onFocus: (key: string) => void
}) {
  const more = problems.length - PROBLEMS_MAX
  return (
    <Panel title={copy.problems.title}>
      <ul className="flex flex-col gap-2">
        {problems.slice(0, PROBLEMS_MAX).map(({ key, kind, id, level, message, component }) => (
          <li
            key={key}
            data-component={key}
            data-state={component?.state}
            className="flex flex-wrap items-center gap-x-3 gap-y-1"
          >
            <button
              type="button"
              onClick={() => onFocus(key)}
              className="min-h-6 text-accent underline underline-offset-2 pointer-coarse:min-h-11"
            >
              {copy.kinds[kind]} <span className="font-mono">{id}</span>
            </button>
            <Badge level={level}>{message}</Badge>
            {component?.cuts.map((cut) => (
              <span key={cut} data-cut="" className="min-w-0 break-words">
                {copy.text.cut(cut)}
              </span>
            ))}
          </li>
        ))}
      </ul>
      {more > 0 && <p className="pt-2 text-text-2">{copy.problems.more(more)}</p>}
    </Panel>
  )
}

function Sentences({ model }: { readonly model: Model }) {
  const lines = sentencesOf(model)
  return (
    <div className="flex flex-col gap-2 p-4">
      <div>
        <CopyButton kind="default" label={copy.text.copy} text={() => lines.join('\n')} />
      </div>
      {lines.length === 0 ? (
        <p className="text-text-2">{copy.text.none}</p>
      ) : (
        lines.map((line) => (
          <p key={line} className="prose break-words">
            {line}
          </p>
        ))
      )}
    </div>
  )
}
