'use client'
/** One snapshot: content, source files, installations and actions. */
import { useMutation, useQueryClient } from '@tanstack/react-query'
import type { SnapshotDetails } from '@vacancy/shared/contract'
import { useState } from 'react'
import { ApiProblem, call, pathOf } from '../../lib/api.ts'
import { bytes, count, days, isKnownTime, utc } from '../../lib/format.ts'
import { navigate } from '../../lib/navigate.ts'
import { useWhyNotOn } from '../../lib/quorum.ts'
import { routes } from '../../lib/routes.ts'
import { useWhyNot } from '../../lib/session.ts'
import { useRoute } from '../../lib/use-route.ts'
import { Button, LinkButton } from '../../ui/button.tsx'
import { Failed } from '../../ui/confirm-dialog.tsx'
import { missingConfirmation, ReasonField, TypedField } from '../../ui/confirm-fields.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { Id } from '../../ui/id.tsx'
import { Link } from '../../ui/link.tsx'
import { Page } from '../../ui/page.tsx'
import { ErrorState, Panel } from '../../ui/panel.tsx'
import { toast } from '../../ui/toast.tsx'
import { GoldenOnSnapshot } from '../golden/on-snapshot.tsx'
import { CountersView, CoverageView, RoomsView } from '../imports/result.tsx'
import { InstallButton } from '../operations/install-button.tsx'
import { useOpenPlan } from '../operations/plan-host.tsx'
import * as copy from './copy.ts'
import { SnapshotState, useSnapshots } from './snapshots-page.tsx'

export function SnapshotPage({ id }: { id: string }) {
  const query = useRoute('GET /api/v1/snapshots/{id}', { params: { id } }, { refetchInterval: 10_000 })
  const { data } = query
  const crumbs = [{ href: routes.snapshots(), label: copy.common.snapshots }]
  if (query.error instanceof ApiProblem && [400, 404].includes(query.error.status)) return <UnknownSnapshot id={id} />
  return (
    <Page
      id="snapshot"
      title={data?.name ?? copy.details.fallbackTitle}
      where={copy.common.snapshots}
      ready={data !== undefined}
      crumbs={crumbs}
      badge={data && <SnapshotState snapshot={data} />}
      actions={data && <Actions snapshot={data} />}
    >
      {data ? (
        <Details snapshot={data} />
      ) : query.error ? (
        <ErrorState error={query.error} onRetry={() => void query.refetch()} />
      ) : null}
    </Page>
  )
}

function UnknownSnapshot({ id }: { id: string }) {
  const near = (useSnapshots().data?.snapshots ?? [])
    .filter((snapshot) => snapshot.id.slice(0, 3) === id.slice(0, 3))
    .slice(0, 3)
  return (
    <Page
      id="snapshot"
      title={copy.details.unknownTitle}
      ready
      crumbs={[{ href: routes.snapshots(), label: copy.common.snapshots }]}
    >
      <p className="prose break-words text-text-2">{copy.details.unknown(id)}</p>
      {near.length > 0 && (
        <p className="flex flex-wrap gap-3">
          {copy.details.similar}
          {near.map((snapshot) => (
            <Link key={snapshot.id} href={routes.snapshot(snapshot.id)}>
              {snapshot.name}
            </Link>
          ))}
        </p>
      )}
      <p>
        <LinkButton href={routes.snapshots()}>{copy.details.openSnapshots}</LinkButton>
      </p>
    </Page>
  )
}

function Actions({ snapshot }: { snapshot: SnapshotDetails }) {
  const { id, shard, stored, installable, servedBy } = snapshot
  const openPlan = useOpenPlan()
  const whyNoUndo = useWhyNotOn(shard, 'admin', 'change')
  const why = !stored ? copy.details.onlyOnNode : installable ? undefined : copy.details.countersDiffer
  const isServed = servedBy.includes(shard)
  return (
    <>
      <InstallButton shard={shard} snapshot={id} why={why} />
      {isServed && (
        <Button icon="back" why={whyNoUndo} onClick={() => openPlan({ kind: 'undo-install', shard })}>
          {copy.details.undo(shard)}
        </Button>
      )}
      {stored && (
        <>
          <LinkButton href={routes.compareSnapshots({ a: `shard:${shard}`, b: id })} icon="not-equal">
            {copy.details.compare(shard)}
          </LinkButton>
          <LinkButton href={pathOf('GET /api/v1/snapshots/{id}/download', { params: { id } })} icon="download" download>
            {copy.details.download}
          </LinkButton>
          <LinkButton href={pathOf('GET /api/v1/snapshots/{id}/archive', { params: { id } })} icon="download" download>
            {copy.details.downloadArchive}
          </LinkButton>
          <DeleteButton snapshot={snapshot} />
        </>
      )}
    </>
  )
}

function DeleteButton({ snapshot }: { snapshot: SnapshotDetails }) {
  const { id, name, servedBy } = snapshot
  const whyAdmin = useWhyNot('admin')
  const queries = useQueryClient()
  const [isOpen, setOpen] = useState(false)
  const [typed, setTyped] = useState('')
  const [reason, setReason] = useState('')
  const short = id.slice(0, 12)
  const why = whyAdmin ?? (servedBy.length > 0 ? copy.remove.inUse(servedBy.join(', ')) : undefined)
  const remove = useMutation({
    mutationFn: async () => {
      await call('POST /api/v1/snapshots/{id}/delete', { params: { id }, body: { confirm: id, reason } })
      toast({ message: copy.remove.deleted(name) })
      await queries.invalidateQueries({ queryKey: ['GET /api/v1/snapshots'] })
      navigate(routes.snapshots())
    },
  })
  return (
    <>
      <Button icon="trash" kind="danger" why={why} onClick={() => setOpen(true)}>
        {copy.remove.dialog}
      </Button>
      <Dialog
        open={isOpen}
        onClose={() => setOpen(false)}
        title={copy.remove.title(name)}
        keep
        footer={
          <>
            <Button onClick={() => setOpen(false)}>{copy.common.cancel}</Button>
            <Button
              kind="danger-filled"
              busy={remove.isPending}
              why={missingConfirmation({ text: short, typed, reason })}
              onClick={() => remove.mutate()}
            >
              {copy.remove.confirm(short)}
            </Button>
          </>
        }
      >
        <div className="flex flex-col gap-4">
          <p className="prose">{copy.remove.effect}</p>
          <TypedField text={short} value={typed} onChange={setTyped} />
          <ReasonField value={reason} onChange={setReason} />
          {remove.error && <Failed error={remove.error} />}
        </div>
      </Dialog>
    </>
  )
}

function Details({ snapshot }: { snapshot: SnapshotDetails }) {
  const facts: readonly (readonly [string, React.ReactNode])[] = [
    [copy.details.digest, <Id key="id" value={snapshot.id} label="digest" />],
    ...(snapshot.sha256
      ? [[copy.details.sha256, <Id key="sha" value={snapshot.sha256} label="SHA-256" />] as const]
      : []),
    [
      copy.details.shard,
      <Link key="shard" href={routes.shard(snapshot.shard)} className="font-mono">
        {snapshot.shard}
      </Link>,
    ],
    [copy.details.packages, count(snapshot.packages)],
    [copy.details.properties, count(snapshot.properties)],
    [copy.details.segments, count(snapshot.segments)],
    [copy.details.nights, days(snapshot.window)],
    [copy.details.size, bytes(snapshot.bytes)],
    [copy.details.codecs, snapshot.codecs.length > 0 ? snapshot.codecs.join(', ') : snapshot.codecHash.slice(0, 12)],
    [
      copy.details.created,
      `${isKnownTime(snapshot.createdAt) ? utc(snapshot.createdAt) : copy.common.unknown}${snapshot.by ? copy.details.by(snapshot.by) : ''}`,
    ],
    ...(snapshot.heldBy.length > 0
      ? [[copy.details.newestOf, snapshot.heldBy.map(({ shard, node }) => `${shard}/${node}`).join(', ')] as const]
      : []),
    ...(snapshot.import
      ? [
          [
            copy.details.import,
            <Link key="import" href={routes.import(snapshot.import)}>
              {copy.details.openImport}
            </Link>,
          ] as const,
        ]
      : []),
  ]
  return (
    <>
      <Panel title={copy.details.title}>
        <dl className="grid gap-x-6 gap-y-2 sm:grid-cols-[max-content_minmax(0,1fr)]">
          {facts.map(([name, value]) => (
            <div key={name} className="contents">
              <dt className="text-text-2">{name}</dt>
              <dd className="min-w-0 break-words">{value}</dd>
            </div>
          ))}
        </dl>
      </Panel>
      {snapshot.sources.length > 0 && (
        <Panel title={copy.details.sources}>
          <ul className="flex flex-col gap-1">
            {snapshot.sources.map((source) => (
              <li key={source.sha256} className="flex flex-wrap items-center gap-x-4">
                <span className="min-w-0 break-words font-medium">{source.name}</span>
                <span className="text-text-2 tabular-nums">
                  {copy.details.sourceSize(bytes(source.bytes), count(source.rows))}
                </span>
                <Id value={source.sha256} label="SHA-256" short={12} />
              </li>
            ))}
          </ul>
        </Panel>
      )}
      {snapshot.stored && <GoldenOnSnapshot id={snapshot.id} shard={snapshot.shard} />}
      {snapshot.installs.length > 0 && (
        <Panel title={copy.details.installs}>
          <ul className="flex flex-col gap-1">
            {snapshot.installs.map(({ operation, shard, at, state }) => (
              <li key={operation}>
                <Link href={routes.operation(operation)}>{copy.details.installed(state, shard)}</Link>{' '}
                <span className="text-text-2">{utc(at)}</span>
              </li>
            ))}
          </ul>
        </Panel>
      )}
      {snapshot.counters && <CountersView counters={snapshot.counters} />}
      <CoverageView details={snapshot} />
      <RoomsView rooms={snapshot.roomsPerProperty} />
    </>
  )
}
