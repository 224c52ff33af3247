'use client'
/** Where a segment goes, and why: the reply of each component on the way. */
import type { RouteHop } from '@vacancy/shared/contract'
import { type FormEvent, useState } from 'react'
import { call } from '../../lib/api.ts'
import { duration } from '../../lib/format.ts'
import { useUrlParam } from '../../lib/url.ts'
import { useRoute } from '../../lib/use-route.ts'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { CodeView } from '../../ui/code-view.tsx'
import { Combobox, type ComboOption } from '../../ui/combobox.tsx'
import { Panel } from '../../ui/panel.tsx'
import * as copy from './copy.ts'

const OFFERED_MAX = 20

type RouteFormProps = { readonly segment: string; readonly onSegment: (segment: string) => void }

export function RoutePanel({ onFocus }: { readonly onFocus: (key: string) => void }) {
  const [segment, setSegment] = useUrlParam('segment')
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
