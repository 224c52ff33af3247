'use client'
/** One snapshot: what it holds, from which files, where it was installed, and what can be done with it. */
import { useQuery, useQueryClient } from '@tanstack/react-query'
import type { SnapshotDetails } from '@vacancy/shared/contract'
import { useState } from 'react'
import { ApiProblem, call, pathOf } from '../../lib/api.ts'
import { bytes, count, days, isKnownTime, utc } from '../../lib/format.ts'
import { navigate } from '../../lib/navigate.ts'
import { routes } from '../../lib/routes.ts'
import { useWhyNot } from '../../lib/session.ts'
import { Button, LinkButton } from '../../ui/button.tsx'
import { missingConfirmation, ReasonField, TypedField } from '../../ui/confirm-fields.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { Id } from '../../ui/id.tsx'
import { Link } from '../../ui/link.tsx'
import { Page } from '../../ui/page.tsx'
import { ErrorState, Panel } from '../../ui/panel.tsx'
import { toast } from '../../ui/toast.tsx'
import { CountersView, CoverageView, RoomsView } from '../imports/result.tsx'
import { useOpenPlan } from '../operations/plan-host.tsx'
import { InstallButton } from './install-button.tsx'
import { SnapshotState, useSnapshots } from './snapshots-page.tsx'

export function SnapshotPage({ id }: { id: string }) {
  const query = useQuery({
    queryKey: ['GET /api/v1/snapshots/{id}', id],
    queryFn: ({ signal }) => call('GET /api/v1/snapshots/{id}', { params: { id }, signal }),
    refetchInterval: 10_000,
  })
  const { data } = query
  const crumbs = [{ href: routes.snapshots(), label: 'Snapshots' }]
  if (query.error instanceof ApiProblem && [400, 404].includes(query.error.status)) return <NoSnapshot id={id} />
  return (
    <Page
      id="snapshot"
      title={data?.name ?? 'Snapshot'}
      where="Snapshots"
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

function NoSnapshot({ id }: { id: string }) {
  const near = (useSnapshots().data?.snapshots ?? [])
    .filter((snapshot) => snapshot.id.slice(0, 3) === id.slice(0, 3))
    .slice(0, 3)
  return (
    <Page id="snapshot" title="No such snapshot" ready crumbs={[{ href: routes.snapshots(), label: 'Snapshots' }]}>
      <p className="prose break-words text-text-2">
        There is no snapshot {id}. It was deleted, or a node has made a newer one.
      </p>
      {near.length > 0 && (
        <p className="flex flex-wrap gap-3">
          Nearest:
          {near.map((snapshot) => (
            <Link key={snapshot.id} href={routes.snapshot(snapshot.id)}>
              {snapshot.name}
            </Link>
          ))}
        </p>
      )}
      <p>
        <LinkButton href={routes.snapshots()}>Open all snapshots</LinkButton>
      </p>
    </Page>
  )
}

function Actions({ snapshot }: { snapshot: SnapshotDetails }) {
  const { id, shard, stored, installable, servedBy } = snapshot
  const openPlan = useOpenPlan()
  const whyAdmin = useWhyNot('admin')
  const why = !stored ? 'Only a node has it' : installable ? undefined : 'Its counters differ'
  const isServed = servedBy.includes(shard)
  return (
    <>
      <InstallButton shard={shard} snapshot={id} why={why} />
      {isServed && (
        <Button icon="back" why={whyAdmin} onClick={() => openPlan({ kind: 'undo-install', shard })}>
          Go back on {shard}…
        </Button>
      )}
      {stored && (
        <>
          <LinkButton href={routes.compareSnapshots(`shard:${shard}`, id)} icon="not-equal">
            Compare with live {shard}
          </LinkButton>
          <LinkButton href={pathOf('GET /api/v1/snapshots/{id}/download', { params: { id } })} icon="download" download>
            Download snapshot
          </LinkButton>
          <LinkButton href={pathOf('GET /api/v1/snapshots/{id}/archive', { params: { id } })} icon="download" download>
            Download archive
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
  const [fault, setFault] = useState('')
  const [isBusy, setBusy] = useState(false)
  const short = id.slice(0, 12)
  const why = whyAdmin ?? (servedBy.length > 0 ? `${servedBy.join(', ')} serves it` : undefined)
  const remove = async () => {
    setBusy(true)
    setFault('')
    try {
      await call('POST /api/v1/snapshots/{id}/delete', { params: { id }, body: { confirm: id, reason } })
      toast({ message: `Snapshot ${name} was deleted.` })
      await queries.invalidateQueries({ queryKey: ['GET /api/v1/snapshots'] })
      navigate(routes.snapshots())
    } catch (error) {
      setFault(`${(error as Error).message} ${error instanceof ApiProblem ? error.hint : ''}`)
      setBusy(false)
    }
  }
  return (
    <>
      <Button icon="trash" kind="danger" why={why} onClick={() => setOpen(true)}>
        Delete snapshot…
      </Button>
      <Dialog
        open={isOpen}
        onClose={() => setOpen(false)}
        title={`Delete snapshot ${name}`}
        keep
        footer={
          <>
            <Button onClick={() => setOpen(false)}>Cancel</Button>
            <Button
              kind="danger-filled"
              busy={isBusy}
              why={missingConfirmation({ text: short, typed, reason })}
              onClick={() => void remove()}
            >
              Delete snapshot {short}
            </Button>
          </>
        }
      >
        <div className="flex flex-col gap-4">
          <p className="prose">
            The file is removed from the control plane. Nodes keep what they hold; here it cannot be brought back but by
            another import.
          </p>
          <TypedField text={short} value={typed} onChange={setTyped} />
          <ReasonField value={reason} onChange={setReason} />
          {fault !== '' && (
            <p role="alert" className="text-crit">
              {fault}
            </p>
          )}
        </div>
      </Dialog>
    </>
  )
}

function Details({ snapshot }: { snapshot: SnapshotDetails }) {
  const facts: readonly (readonly [string, React.ReactNode])[] = [
    ['Content digest', <Id key="id" value={snapshot.id} label="digest" />],
    ...(snapshot.sha256
      ? [['SHA-256 of the file', <Id key="sha" value={snapshot.sha256} label="SHA-256" />] as const]
      : []),
    [
      'Made for shard',
      <Link key="shard" href={routes.shard(snapshot.shard)} className="font-mono">
        {snapshot.shard}
      </Link>,
    ],
    ['Packages', count(snapshot.packages)],
    ['Properties', count(snapshot.properties)],
    ['Segments', count(snapshot.segments)],
    ['Nights', days(snapshot.window)],
    ['Size', bytes(snapshot.bytes)],
    ['Codec list', snapshot.codecs.length > 0 ? snapshot.codecs.join(', ') : snapshot.codecHash.slice(0, 12)],
    [
      'Made',
      `${isKnownTime(snapshot.createdAt) ? utc(snapshot.createdAt) : 'not told'}${snapshot.by ? ` by ${snapshot.by}` : ''}`,
    ],
    ...(snapshot.heldBy.length > 0
      ? [['Newest snapshot of', snapshot.heldBy.map(({ shard, node }) => `${shard}/${node}`).join(', ')] as const]
      : []),
    ...(snapshot.import
      ? [
          [
            'Import',
            <Link key="import" href={routes.import(snapshot.import)}>
              Open its import
            </Link>,
          ] as const,
        ]
      : []),
  ]
  return (
    <>
      <Panel title="Facts">
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
        <Panel title="Made from">
          <ul className="flex flex-col gap-1">
            {snapshot.sources.map((source) => (
              <li key={source.sha256} className="flex flex-wrap items-center gap-x-4">
                <span className="min-w-0 break-words font-medium">{source.name}</span>
                <span className="text-text-2 tabular-nums">
                  {bytes(source.bytes)}, {count(source.rows)} rows
                </span>
                <Id value={source.sha256} label="SHA-256" short={12} />
              </li>
            ))}
          </ul>
        </Panel>
      )}
      {snapshot.installs.length > 0 && (
        <Panel title="Installed">
          <ul className="flex flex-col gap-1">
            {snapshot.installs.map(({ operation, shard, at, state }) => (
              <li key={operation}>
                <Link href={routes.operation(operation)}>
                  {state} on {shard}
                </Link>{' '}
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
