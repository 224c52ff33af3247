'use client'
import { useMutation } from '@tanstack/react-query'
import type { AuditEntry, Level } from '@vacancy/shared/contract'
import { useState } from 'react'
import type { IconName } from '../../icons/icon.tsx'
import { call, pathOf } from '../../lib/api.ts'
import { count, NONE, utc } from '../../lib/format.ts'
import { routes } from '../../lib/routes.ts'
import { useSetUrl, useUrlParam } from '../../lib/url.ts'
import { Age } from '../../ui/age.tsx'
import { Badge } from '../../ui/badge.tsx'
import { Banner } from '../../ui/banner.tsx'
import { Button, LinkButton } from '../../ui/button.tsx'
import { Drawer } from '../../ui/dialog.tsx'
import { Facts } from '../../ui/facts.tsx'
import { TextField } from '../../ui/field.tsx'
import { Id } from '../../ui/id.tsx'
import { Link } from '../../ui/link.tsx'
import { NARROW, useMedia } from '../../ui/media.ts'
import { NextSteps } from '../../ui/next-steps.tsx'
import { Page } from '../../ui/page.tsx'
import { Panel } from '../../ui/panel.tsx'
import type { Column } from '../../ui/table.tsx'
import { VirtualTable } from '../../ui/virtual-table.tsx'
import { type AuditFilter, auditQuery, isInvalidDay, useAudit } from './audit-query.ts'
import * as copy from './copy.ts'

/** The append-only log of changes, with a check of its hash chain. */
export function AuditPage() {
  const filter = useAuditFilter()
  const setUrl = useSetUrl()
  const audit = useAudit(filter)
  const entries = audit.data?.pages.flatMap((page) => page.entries) ?? []
  const total = audit.data?.pages[0]?.total ?? 0
  const isFiltered = Object.values(filter).some((value) => value !== '')
  const clear = () => setUrl({ actor: '', action: '', target: '', from: '', to: '' })
  return (
    <Page
      id="audit"
      title={copy.audit.title}
      ready={!audit.isPending}
      lead={copy.audit.lead}
      actions={
        <>
          <Export filter={filter} format="jsonl" label={copy.audit.exportJson} />
          <Export filter={filter} format="csv" label={copy.audit.exportCsv} />
        </>
      }
    >
      <Verify />
      <AuditFilters filter={filter} />
      <Panel
        title={copy.audit.entries}
        flush
        query={audit}
        at={() => (audit.dataUpdatedAt ? new Date(audit.dataUpdatedAt).toISOString() : null)}
        isEmpty={() => entries.length === 0}
        empty={{ text: copy.audit.empty }}
        filtered={
          isFiltered && audit.data && entries.length === 0 ? { text: copy.audit.filtered, onClear: clear } : undefined
        }
        skeleton={10}
        actions={<span className="text-small text-text-3">{copy.audit.count(total)}</span>}
      >
        <AuditTable entries={entries} total={total} />
        {audit.hasNextPage && (
          <div className="p-3">
            <Button busy={audit.isFetchingNextPage} onClick={() => audit.fetchNextPage()}>
              {copy.audit.older(count(total - entries.length))}
            </Button>
          </div>
        )}
      </Panel>
      <NextSteps steps={[{ href: routes.operations(), ...copy.audit.next }]} />
    </Page>
  )
}

function useAuditFilter(): AuditFilter {
  const [actor] = useUrlParam('actor')
  const [action] = useUrlParam('action')
  const [target] = useUrlParam('target')
  const [from] = useUrlParam('from')
  const [to] = useUrlParam('to')
  return { actor, action, target, from, to }
}

function AuditFilters({ filter }: { filter: AuditFilter }) {
  const setUrl = useSetUrl()
  const input = (name: keyof AuditFilter, label: string, placeholder: string) => (
    <TextField
      label={label}
      fieldClassName="sm:w-36"
      {...(isInvalidDay(name, filter[name]) ? { error: copy.audit.dayInvalid } : {})}
      placeholder={placeholder}
      maxLength={256}
      value={filter[name]}
      onChange={(text) => setUrl({ [name]: text })}
    />
  )
  return (
    <search
      data-filter-box=""
      aria-label={copy.audit.filter}
      className="grid grid-cols-2 items-end gap-3 sm:flex sm:flex-wrap"
    >
      {input('actor', copy.audit.actor, copy.audit.actorExample)}
      {input('action', copy.audit.action, copy.audit.actionExample)}
      {input('target', copy.audit.target, copy.audit.targetExample)}
      {input('from', copy.audit.from, copy.audit.dayExample)}
      {input('to', copy.audit.to, copy.audit.dayExample)}
      {Object.values(filter).some(Boolean) && (
        <Button
          kind="quiet"
          icon="cross"
          onClick={() => setUrl({ actor: '', action: '', target: '', from: '', to: '' })}
        >
          {copy.audit.clearFilters}
        </Button>
      )}
    </search>
  )
}

function Export({ filter, format, label }: { filter: AuditFilter; format: 'jsonl' | 'csv'; label: string }) {
  return (
    <LinkButton
      icon="download"
      download
      href={pathOf('GET /api/v1/audit/export', { query: { ...auditQuery(filter), format } })}
    >
      {label}
    </LinkButton>
  )
}

/** Checks the hash chain and names the first broken entry. */
function Verify() {
  const verify = useMutation({ mutationFn: () => call('POST /api/v1/audit/verify') })
  const result = verify.data
  const button = (
    <Button icon="shield" busy={verify.isPending} onClick={() => verify.mutate()}>
      {result ? copy.verify.again : copy.verify.start}
    </Button>
  )
  if (verify.error) {
    return (
      <Banner level="warn" title={copy.verify.failed} actions={button}>
        {verify.error.message}
      </Banner>
    )
  }
  if (!result) return <div>{button}</div>
  if (result.brokenAt !== null) {
    return (
      <Banner level="crit" title={copy.verify.broken(result.brokenAt)} actions={button}>
        {copy.verify.brokenHint}
      </Banner>
    )
  }
  return (
    <Banner level="ok" title={copy.verify.intact(result.entries)} actions={button}>
      {copy.verify.intactHint}
    </Banner>
  )
}

const RESULTS: { readonly [result: string]: readonly [Level, IconName] } = {
  done: ['ok', 'check'],
  refused: ['warn', 'shield'],
  failed: ['crit', 'octagon'],
  unconfirmed: ['warn', 'question'],
  elsewhere: ['warn', 'up-right'],
  'no-change': ['warn', 'minus'],
  cancelled: ['unk', 'cross'],
}

function Result({ entry }: { entry: AuditEntry }) {
  const [level, icon] = RESULTS[entry.result] ?? ['info', 'info']
  return (
    <Badge level={level} icon={icon}>
      {entry.result}
    </Badge>
  )
}

const COLUMNS: readonly Column<AuditEntry>[] = [
  {
    id: 'at',
    header: copy.audit.time,
    width: '11.5rem',
    rowHeader: true,
    cell: (entry) => <span className="tabular-nums">{utc(entry.at).replace(' UTC', '')}</span>,
  },
  { id: 'actor', header: copy.audit.actor, width: '9rem', cell: (entry) => <Actor entry={entry} /> },
  {
    id: 'action',
    header: copy.audit.action,
    width: '11rem',
    cell: (entry) => <code className="font-mono">{entry.action}</code>,
  },
  {
    id: 'target',
    header: copy.audit.target,
    width: '12rem',
    rank: 2,
    cell: (entry) => <span className="block max-w-60 truncate">{entry.target}</span>,
  },
  { id: 'result', header: copy.audit.result, width: '8rem', cell: (entry) => <Result entry={entry} /> },
  {
    id: 'reason',
    header: copy.audit.reason,
    rank: 3,
    cell: (entry) => <span className="block max-w-80 truncate text-text-2">{entry.reason || entry.detail}</span>,
  },
  {
    id: 'address',
    header: copy.audit.address,
    width: '9rem',
    rank: 4,
    cell: (entry) => <span className="font-mono text-text-2">{entry.address}</span>,
  },
]

function Actor({ entry }: { entry: AuditEntry }) {
  return (
    <span className="block max-w-36 truncate">
      {entry.actor || <span className="text-text-3">{copy.audit.anonymous}</span>}
      {entry.actorKind === 'token' && <span className="text-text-3">{copy.audit.token}</span>}
    </span>
  )
}

function AuditTable({ entries, total }: { entries: readonly AuditEntry[]; total: number }) {
  const [shown, setShown] = useState<number>()
  const entry = entries.find(({ seq }) => seq === shown)
  const isNarrow = useMedia(NARROW)
  return (
    <>
      {isNarrow ? (
        <Cards entries={entries} onOpen={setShown} />
      ) : (
        <VirtualTable
          label={copy.audit.table}
          rows={entries}
          columns={COLUMNS}
          rowKey={({ seq }) => String(seq)}
          rowProps={({ seq, result }) => ({ 'data-seq': seq, 'data-result': result })}
          onOpen={({ seq }) => setShown(seq)}
          total={total}
        />
      )}
      <Drawer open={entry !== undefined} title={copy.entry.title(shown)} onClose={() => setShown(undefined)}>
        {entry && <EntryFacts entry={entry} />}
      </Drawer>
    </>
  )
}

type CardsProps = { readonly entries: readonly AuditEntry[]; readonly onOpen: (seq: number) => void }

/** On phones: a page of entries, each whole. */
function Cards({ entries, onOpen }: CardsProps) {
  return (
    <ul aria-label={copy.audit.table} className="grid gap-2 p-3">
      {entries.map((entry) => (
        <li
          key={entry.seq}
          data-seq={entry.seq}
          data-result={entry.result}
          className="grid gap-1 rounded-panel border border-line p-3 [contain-intrinsic-size:auto_6rem] [content-visibility:auto]"
        >
          <div className="flex flex-wrap items-center justify-between gap-2">
            <button
              type="button"
              onClick={() => onOpen(entry.seq)}
              className="min-h-6 break-all rounded-control text-start font-mono text-accent underline decoration-current/40 underline-offset-3"
            >
              {entry.action}
            </button>
            <Result entry={entry} />
          </div>
          <p className="flex flex-wrap gap-x-3 break-all">
            <Actor entry={entry} />
            {entry.target !== '' && <span>{entry.target}</span>}
          </p>
          {(entry.reason || entry.detail) && <p className="break-words text-text-2">{entry.reason || entry.detail}</p>}
          <p className="text-small text-text-3 tabular-nums">{utc(entry.at)}</p>
        </li>
      ))}
    </ul>
  )
}

function EntryFacts({ entry }: { entry: AuditEntry }) {
  return (
    <Facts
      facts={[
        [
          copy.entry.time,
          <span key="at">
            {utc(entry.at)}, <Age at={entry.at} />
          </span>,
        ],
        [copy.entry.actor, copy.entry.actorText(entry.actor || copy.audit.anonymous, entry.actorKind)],
        [
          copy.entry.address,
          <span key="address" className="font-mono">
            {entry.address || NONE}
          </span>,
        ],
        [copy.entry.userAgent, entry.userAgent || NONE],
        [
          copy.entry.action,
          <code key="action" className="font-mono">
            {entry.action}
          </code>,
        ],
        [copy.entry.target, entry.target || NONE],
        [copy.entry.result, <Result key="result" entry={entry} />],
        [copy.entry.reason, entry.reason || copy.entry.noReason],
        [
          copy.entry.detail,
          <span key="detail" className="whitespace-pre-wrap">
            {entry.detail || NONE}
          </span>,
        ],
        [
          copy.entry.operation,
          entry.operation ? (
            <Link key="op" href={routes.operation(entry.operation)}>
              {entry.operation}
            </Link>
          ) : (
            NONE
          ),
        ],
        [copy.entry.request, entry.requestId ? <Id key="request" value={entry.requestId} label="request" /> : NONE],
        [copy.entry.hash, <Id key="hash" value={entry.hash} label="entry" short={16} />],
      ]}
    />
  )
}
