'use client'
/** The fabric as map, table and text, with an inspector and the route of a segment. */
import { Suspense, useCallback, useMemo, useState } from 'react'
import { useLive } from '../../lib/live.ts'
import { useUrlParam } from '../../lib/url.ts'
import { Badge } from '../../ui/badge.tsx'
import { CopyButton } from '../../ui/copy-button.tsx'
import { late } from '../../ui/late.tsx'
import { NARROW, NO_THIRD_COLUMN, useMedia } from '../../ui/media.ts'
import { Page } from '../../ui/page.tsx'
import { Panel, Skeleton } from '../../ui/panel.tsx'
import { ViewTabs } from '../../ui/tabs.tsx'
import * as copy from './copy.ts'
import { Inspector, InspectorDrawer } from './inspector.tsx'
import { type Model, modelOf, problemsOf, sentencesOf } from './model.ts'
import { RoutePanel } from './route-panel.tsx'
import { TopologyTable } from './topology-table.tsx'

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
      ready={model !== undefined && summary.data !== undefined}
      lead={model && copy.page.lead(model.view.components.length, problems.length)}
    >
      <RoutePanel onFocus={open} />
      {model && problems.length > 0 && <Problems model={model} onFocus={open} />}
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

function Problems({ model, onFocus }: { readonly model: Model; readonly onFocus: (key: string) => void }) {
  return (
    <Panel title={copy.problems.title}>
      <ul className="flex flex-col gap-2">
        {problemsOf(model).map((component) => (
          <li
            key={component.key}
            data-component={component.key}
            data-state={component.state}
            className="flex flex-wrap items-center gap-x-3 gap-y-1"
          >
            <button
              type="button"
              onClick={() => onFocus(component.key)}
              className="min-h-6 text-accent underline underline-offset-2 pointer-coarse:min-h-11"
            >
              {copy.kinds[component.kind]} <span className="font-mono">{component.id}</span>
            </button>
            <Badge level={component.level}>{component.message}</Badge>
            {component.cuts.map((cut) => (
              <span key={cut} data-cut="" className="min-w-0 break-words">
                {copy.text.cut(cut)}
              </span>
            ))}
          </li>
        ))}
      </ul>
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
