'use client'
/** What changed between two moments: differences of the two states, events in between, and a note of both. */
import type { PastChanges } from '@vacancy/shared/contract'
import { type SubmitEvent, useState } from 'react'
import { clock, utc } from '../../lib/format.ts'
import { serverNow } from '../../lib/server-time.ts'
import { parseRange, rangeText } from '../../lib/time-range.ts'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { CopyButton } from '../../ui/copy-button.tsx'
import { Drawer } from '../../ui/dialog.tsx'
import { EventList } from '../../ui/event-list.tsx'
import { TextField } from '../../ui/field.tsx'
import { Panel, Skeleton } from '../../ui/panel.tsx'
import * as copy from './copy.ts'
import { useChanges, useRecordedFrom } from './queries.ts'

const BEFORE_MS = 15 * 60_000

type ChangesDrawerProps = {
  readonly at: number
  readonly shard: string | undefined
  readonly onClose: () => void
}

type Moments = { readonly from: string; readonly to: string }

const iso = (at: number) => new Date(at).toISOString()
const typedText = (at: string) => rangeText({ from: at, to: 'now' }).split('..')[0] ?? at

export default function ChangesDrawer({ at, shard, onClose }: ChangesDrawerProps) {
  const { data, error } = useRecordedFrom()
  const isKnown = data !== undefined || error !== null
  return (
    // Opened anew with its fields, the first of which takes the focus.
    <Drawer key={isKnown ? 'fields' : 'waiting'} open title={copy.changes.title} onClose={onClose} wide>
      {isKnown ? (
        <Changes first={firstOf(at, data?.oldest ?? null)} last={iso(at)} shard={shard} />
      ) : (
        <Skeleton rows={8} />
      )}
    </Drawer>
  )
}

/** A while before, or when the recording began if that is later. */
export function firstOf(at: number, oldest: string | null): string {
  const known = oldest === null ? Number.NEGATIVE_INFINITY : Date.parse(oldest)
  return iso(known < at ? Math.max(known, at - BEFORE_MS) : at - BEFORE_MS)
}

type ChangesProps = Pick<ChangesDrawerProps, 'shard'> & { readonly first: string; readonly last: string }

function Changes({ first, last, shard }: ChangesProps) {
  const [moments, setMoments] = useState<Moments>({ from: first, to: last })
  const query = useChanges(moments.from, moments.to, shard)
  return (
    <div className="flex flex-col gap-4">
      <MomentFields moments={moments} onChange={setMoments} />
      <Panel
        title={copy.changes.differences}
        query={query}
        actions={
          query.data && (
            <CopyButton
              kind="quiet"
              label={copy.changes.note}
              text={() => incidentNote(shard, query.data, location.href)}
            />
          )
        }
      >
        {(data) => <Differences changes={data.changes} />}
      </Panel>
      {query.data && (
        <Panel title={copy.changes.events}>
          {query.data.events.length === 0 ? (
            <p className="text-text-2">{copy.changes.noEvents}</p>
          ) : (
            <EventList label={copy.changes.events} events={query.data.events} isLinked />
          )}
          {query.data.more && <p className="pt-2 text-small text-text-2">{copy.changes.more}</p>}
        </Panel>
      )}
    </div>
  )
}

function Differences({ changes }: Pick<PastChanges, 'changes'>) {
  if (changes.length === 0) return <p className="text-text-2">{copy.changes.same}</p>
  return (
    <ul aria-label={copy.changes.differences} className="flex flex-col gap-1.5">
      {changes.map(({ shard, node, kind, level, message }) => (
        <li key={`${shard} ${node} ${kind} ${message}`} data-change={kind} className="min-w-0">
          <Badge level={level}>{message}</Badge>
        </li>
      ))}
    </ul>
  )
}

type MomentFieldsProps = { readonly moments: Moments; readonly onChange: (moments: Moments) => void }

function MomentFields({ moments, onChange }: MomentFieldsProps) {
  const [from, setFrom] = useState(typedText(moments.from))
  const [to, setTo] = useState(typedText(moments.to))
  const [errors, setErrors] = useState<{ from?: string; to?: string }>({})
  const submit = (event: SubmitEvent) => {
    event.preventDefault()
    const now = serverNow()
    const [start, end] = [from, to].map((text) => (text.trim() === 'now' ? iso(now) : parseRange(text, now)?.pin))
    if (start === undefined) return setErrors({ from: copy.changes.invalid })
    if (end === undefined) return setErrors({ to: copy.changes.invalid })
    if (start >= end) return setErrors({ to: copy.changes.order })
    setErrors({})
    onChange({ from: start, to: end })
  }
  return (
    <form onSubmit={submit} className="flex flex-wrap items-end gap-3">
      <TextField
        label={copy.changes.from}
        error={errors.from}
        data-first-field=""
        value={from}
        maxLength={64}
        onChange={setFrom}
      />
      <TextField label={copy.changes.to} error={errors.to} value={to} maxLength={64} onChange={setTo} />
      <Button type="submit">{copy.changes.compare}</Button>
    </form>
  )
}

/** An incident note as Markdown: what differs between two moments, and what happened in between. Pure. */
export function incidentNote(
  shard: string | undefined,
  { from, to, changes, events, more }: PastChanges,
  url: string,
): string {
  const isOneDay = from.slice(0, 10) === to.slice(0, 10)
  const timeText = (at: string) => (isOneDay ? clock(at) : `${at.slice(0, 10)} ${clock(at)}`)
  return [
    `# ${copy.note.title(shard ?? copy.note.cluster)}`,
    '',
    copy.note.range(utc(from), utc(to)),
    '',
    `## ${copy.note.differences}`,
    '',
    ...(changes.length === 0 ? [copy.note.none] : changes.map(({ message }) => `- ${escaped(message)}`)),
    '',
    `## ${copy.note.timeline}`,
    '',
    ...(events.length === 0
      ? [copy.note.none]
      : [
          copy.note.head,
          '|---|---|---|---|',
          ...events.map(
            ({ at, shard, node, message }) =>
              `| ${timeText(at)} | ${escaped(shard)} | ${escaped(node ?? '')} | ${escaped(message)} |`,
          ),
        ]),
    ...(more ? ['', copy.note.more] : []),
    '',
    copy.note.link(url),
    '',
  ].join('\n')
}

/** Text of the cluster is never markup. */
function escaped(text: string): string {
  return text.replaceAll(/[\\`*_|<>[\]]/g, (character) => `\\${character}`).replaceAll(/\s+/g, ' ')
}
