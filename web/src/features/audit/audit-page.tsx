'use client'
import { useMutation } from '@tanstack/react-query'
import type { AuditEntry, Level } from '@vacancy/shared/contract'
import { useState } from 'react'
import type { IconName } from '../../icons/icon.tsx'
import { call, pathOf } from '../../lib/api.ts'
import { count, counted, utc } from '../../lib/format.ts'
import { routes } from '../../lib/routes.ts'
import { useSetUrl, useUrlParam } from '../../lib/url.ts'
import { Age } from '../../ui/age.tsx'
import { Badge } from '../../ui/badge.tsx'
import { Banner } from '../../ui/banner.tsx'
import { Button, LinkButton } from '../../ui/button.tsx'
import { Drawer } from '../../ui/dialog.tsx'
import { Facts } from '../../ui/facts.tsx'
import { Field, Input } from '../../ui/field.tsx'
import { Id } from '../../ui/id.tsx'
import { Link } from '../../ui/link.tsx'
import { Page } from '../../ui/page.tsx'
import { Panel } from '../../ui/panel.tsx'
import type { Column } from '../../ui/table.tsx'
import { VirtualTable } from '../../ui/virtual-table.tsx'
import { type AuditFilter, auditQuery, useAudit } from './audit-query.ts'

/** Who did what to what and how it ended: appended, never changed, and shown not to have been. */
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
      title="Audit"
      ready={!audit.isPending}
      lead="Every change and every refused try, newest first."
      actions={
        <>
          <Export filter={filter} format="jsonl" label="Export JSON lines" />
          <Export filter={filter} format="csv" label="Export CSV" />
        </>
      }
    >
      <Verify />
      <AuditFilters filter={filter} />
      <Panel
        title="Entries"
        flush
        query={audit}
        at={() => (audit.dataUpdatedAt ? new Date(audit.dataUpdatedAt).toISOString() : null)}
        isEmpty={() => entries.length === 0}
        empty={{ text: 'Nothing was changed yet. Signing in, plans, imports and settings leave their entries here.' }}
        filtered={
          isFiltered && audit.data && entries.length === 0
            ? { text: 'No entry matches these filters.', onClear: clear }
            : undefined
        }
        skeleton={10}
        actions={<span className="text-small text-text-3">{counted(total, 'entry', 'entries')}</span>}
      >
        <AuditTable entries={entries} total={total} />
        {audit.hasNextPage && (
          <div className="p-3">
            <Button busy={audit.isFetchingNextPage} onClick={() => audit.fetchNextPage()}>
              Show older ({count(total - entries.length)} more)
            </Button>
          </div>
        )}
      </Panel>
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
  const input = (name: keyof AuditFilter, label: string, type: 'text' | 'date', placeholder = '') => (
    <Field label={label} className="sm:w-36">
      {(wire) => (
        <Input
          {...wire}
          type={type}
          placeholder={placeholder}
          maxLength={256}
          value={filter[name]}
          onChange={(event) => setUrl({ [name]: event.target.value })}
        />
      )}
    </Field>
  )
  return (
    <search
      data-filter-box=""
      aria-label="Filter entries"
      className="grid grid-cols-2 items-end gap-3 sm:flex sm:flex-wrap"
    >
      {input('actor', 'Who', 'text', 'name')}
      {input('action', 'Action', 'text', 'operation.start')}
      {input('target', 'Target', 'text', 's3')}
      {input('from', 'From', 'date')}
      {input('to', 'To', 'date')}
      {Object.values(filter).some(Boolean) && (
        <Button
          kind="quiet"
          icon="cross"
          onClick={() => setUrl({ actor: '', action: '', target: '', from: '', to: '' })}
        >
          Clear filters
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

/** Checks the chain of hashes and names the first entry that does not fit. */
function Verify() {
  const verify = useMutation({ mutationFn: () => call('POST /api/v1/audit/verify') })
  const result = verify.data
  const button = (
    <Button icon="shield" busy={verify.isPending} onClick={() => verify.mutate()}>
      {result ? 'Verify again' : 'Verify the chain'}
    </Button>
  )
  if (verify.error) {
    return (
      <Banner level="warn" title="Not verified" actions={button}>
        {verify.error.message}
      </Banner>
    )
  }
  if (!result) return <div>{button}</div>
  if (result.brokenAt !== null) {
    return (
      <Banner level="crit" title={`The chain breaks at entry ${result.brokenAt}`} actions={button}>
        That entry was changed, or one before it was taken out. Entries before it are as they were written. Compare with
        an export that is kept elsewhere.
      </Banner>
    )
  }
  return (
    <Banner
      level="ok"
      title={`All ${counted(result.entries, 'entry', 'entries')} are as they were written`}
      actions={button}
    >
      Each holds the hash of the one before it, and all of them fit.
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
    header: 'Time (UTC)',
    width: '11.5rem',
    rowHeader: true,
    cell: (entry) => <span className="tabular-nums">{utc(entry.at).replace(' UTC', '')}</span>,
  },
  { id: 'actor', header: 'Who', width: '9rem', cell: (entry) => <Actor entry={entry} /> },
  {
    id: 'action',
    header: 'Action',
    width: '11rem',
    cell: (entry) => <code className="font-mono">{entry.action}</code>,
  },
  {
    id: 'target',
    header: 'Target',
    width: '12rem',
    rank: 2,
    cell: (entry) => <span className="block max-w-60 truncate">{entry.target}</span>,
  },
  { id: 'result', header: 'Result', width: '8rem', cell: (entry) => <Result entry={entry} /> },
  {
    id: 'reason',
    header: 'Reason',
    rank: 3,
    cell: (entry) => <span className="block max-w-80 truncate text-text-2">{entry.reason || entry.detail}</span>,
  },
  {
    id: 'address',
    header: 'Address',
    width: '9rem',
    rank: 4,
    cell: (entry) => <span className="font-mono text-text-2">{entry.address}</span>,
  },
]

function Actor({ entry }: { entry: AuditEntry }) {
  return (
    <span className="block max-w-36 truncate">
      {entry.actor || <span className="text-text-3">nobody</span>}
      {entry.actorKind === 'token' && <span className="text-text-3"> (token)</span>}
    </span>
  )
}

function AuditTable({ entries, total }: { entries: readonly AuditEntry[]; total: number }) {
  const [shown, setShown] = useState<number>()
  const entry = entries.find(({ seq }) => seq === shown)
  return (
    <>
      <VirtualTable
        label="Audit entries"
        rows={entries}
        columns={COLUMNS}
        rowKey={({ seq }) => String(seq)}
        rowProps={({ seq, result }) => ({ 'data-seq': seq, 'data-result': result })}
        onOpen={({ seq }) => setShown(seq)}
        total={total}
      />
      <Drawer open={entry !== undefined} title={`Entry ${shown}`} onClose={() => setShown(undefined)}>
        {entry && <EntryFacts entry={entry} />}
      </Drawer>
    </>
  )
}

function EntryFacts({ entry }: { entry: AuditEntry }) {
  return (
    <Facts
      facts={[
        [
          'Time',
          <span key="at">
            {utc(entry.at)}, <Age at={entry.at} />
          </span>,
        ],
        ['Who', `${entry.actor || 'nobody'} (${entry.actorKind})`],
        [
          'Address',
          <span key="address" className="font-mono">
            {entry.address || '–'}
          </span>,
        ],
        [
          'Action',
          <code key="action" className="font-mono">
            {entry.action}
          </code>,
        ],
        ['Target', entry.target || '–'],
        ['Result', <Result key="result" entry={entry} />],
        ['Reason', entry.reason || 'none given'],
        [
          'Detail',
          <span key="detail" className="whitespace-pre-wrap">
            {entry.detail || '–'}
          </span>,
        ],
        [
          'Operation',
          entry.operation ? (
            <Link key="op" href={routes.operation(entry.operation)}>
              {entry.operation}
            </Link>
          ) : (
            '–'
          ),
        ],
        ['Request', entry.requestId ? <Id key="request" value={entry.requestId} label="request" /> : '–'],
        ['Hash', <Id key="hash" value={entry.hash} label="entry" short={16} />],
      ]}
    />
  )
}
