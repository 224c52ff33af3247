'use client'
/** Every state of an import after its files were chosen, from top to bottom (docs/design/control-plane.md#imports). */
import { useQuery } from '@tanstack/react-query'
import type { ImportView } from '@vacancy/shared/contract'
import { useState } from 'react'
import { Icon } from '../../icons/icon.tsx'
import { ApiProblem, call, pathOf } from '../../lib/api.ts'
import { bytes, count, day, duration, percent, shortCount } from '../../lib/format.ts'
import { useLive } from '../../lib/live.ts'
import { routes } from '../../lib/routes.ts'
import { useWhyNot } from '../../lib/session.ts'
import { Age } from '../../ui/age.tsx'
import { Badge } from '../../ui/badge.tsx'
import { Banner } from '../../ui/banner.tsx'
import { Button, LinkButton } from '../../ui/button.tsx'
import { CopyButton } from '../../ui/copy-button.tsx'
import { Id } from '../../ui/id.tsx'
import { Link } from '../../ui/link.tsx'
import { Page } from '../../ui/page.tsx'
import { ErrorState, Panel } from '../../ui/panel.tsx'
import { Progress } from '../../ui/progress.tsx'
import { Stepper, type StepState } from '../../ui/stepper.tsx'
import { toast } from '../../ui/toast.tsx'
import { InstallButton } from '../snapshots/install-button.tsx'
import { ErrorsTable } from './errors-table.tsx'
import { CountersView, CoverageView, RoomsView } from './result.tsx'
import { UploadRow } from './upload-row.tsx'
import { PHASE_WORDS, STATE_WORDS } from './words.ts'

export function ImportPage({ id }: { id: string }) {
  const query = useLive(`import:${id}`)
  const view = query.data
  const isUnknown = query.error instanceof ApiProblem && query.error.status === 404
  if (isUnknown && !view) {
    return (
      <Page id="import" title="No such import" ready crumbs={[{ href: routes.imports(), label: 'Imports' }]}>
        <p className="prose text-text-2">There is no import {id}. Old ones are forgotten after 200 newer ones.</p>
        <p>
          <LinkButton href={routes.imports()}>Open all imports</LinkButton>
        </p>
      </Page>
    )
  }
  return (
    <Page
      id="import"
      title={view?.name ?? 'Import'}
      where="Imports"
      ready={view !== undefined}
      crumbs={[{ href: routes.imports(), label: 'Imports' }]}
      badge={view && <Badge level={STATE_WORDS[view.state].level}>{STATE_WORDS[view.state].word}</Badge>}
      actions={view?.cancellable && <CancelButton view={view} />}
      lead={view && <Lead view={view} />}
    >
      {view ? (
        <Flow view={view} />
      ) : query.error ? (
        <ErrorState error={query.error} onRetry={() => void query.refetch()} />
      ) : null}
    </Page>
  )
}

function Lead({ view }: { view: ImportView }) {
  return (
    <p>
      For shard <span className="font-mono">{view.shard}</span>, nights {day(view.window.from, true)} –{' '}
      {day(view.window.to, true)}, begun <Age at={view.createdAt} /> by {view.by}
      {view.withoutRowsOf !== null && (
        <>
          , without the rows that <Link href={routes.import(view.withoutRowsOf)}>an import before</Link> rejected
        </>
      )}
      {view.codecs !== null && <>, with a codec list of its own: {view.codecs.join(', ')}</>}
    </p>
  )
}

function CancelButton({ view }: { view: ImportView }) {
  const why = useWhyNot('operator')
  const [isBusy, setBusy] = useState(false)
  const cancel = async () => {
    setBusy(true)
    try {
      await call('POST /api/v1/imports/{id}/cancel', { params: { id: view.id } })
      toast({ message: `${view.name} was cancelled. What it had written is removed; its uploads stay for 48 hours.` })
    } catch (error) {
      toast({ message: (error as Error).message, level: 'crit' })
    } finally {
      setBusy(false)
    }
  }
  return (
    <Button icon="stop" kind="danger" why={why} busy={isBusy} onClick={() => void cancel()}>
      Cancel import
    </Button>
  )
}

function Flow({ view }: { view: ImportView }) {
  const why = useWhyNot('operator')
  const { progress, state, files } = view
  return (
    <section
      aria-label={`Import ${view.name}`}
      data-import-state={state}
      data-phase={progress?.phase ?? state}
      data-records={progress?.records ?? view.counters?.readBack.packages ?? 0}
      data-rate={progress?.recordsPerSecond ?? view.result?.recordsPerSecond ?? 0}
      className="flex flex-col gap-4"
    >
      <Stepper label="Steps of the import" inline steps={stepsOf(view)} />
      {state === 'failed' && (
        <Banner
          level="crit"
          title={view.message}
          actions={
            <LinkButton href={routes.newImport()} icon="plus">
              New import
            </LinkButton>
          }
        >
          {view.hint}
        </Banner>
      )}
      {state === 'cancelled' && (
        <Banner level="unk" title={view.message}>
          Its uploads stay for 48 hours and can be used by another import.
        </Banner>
      )}
      {state === 'uploading' && (
        <Panel title="Upload">
          <p className="prose text-text-2">
            The build begins by itself when both files are here. Going elsewhere in the console stops nothing; after a
            reload the same files are asked for again.
          </p>
          <UploadRow file={files.properties} why={why} />
          <UploadRow file={files.packages} why={why} />
        </Panel>
      )}
      {['queued', 'checking', 'building', 'verifying'].includes(state) && <Building view={view} />}
      {view.errors && <ErrorsTable view={view} />}
      {state === 'built' && view.snapshot && <Result view={view} snapshot={view.snapshot} />}
      {state !== 'uploading' && <Files view={view} />}
      <Log lines={view.log} />
    </section>
  )
}

function stepsOf({ state, snapshot }: ImportView): { id: string; label: string; state: StepState }[] {
  const order = ['uploading', 'queued', 'checking', 'building', 'verifying', 'built']
  const at = order.indexOf(state)
  const isOver = state === 'failed' || state === 'cancelled'
  const step = (id: string, label: string, from: number, to: number) => ({
    id,
    label,
    state: (isOver
      ? id === 'upload'
        ? 'done'
        : 'failed'
      : at > to
        ? 'done'
        : at >= from
          ? 'running'
          : 'waiting') as StepState,
  })
  return [
    { id: 'files', label: 'Files', state: 'done' as const },
    step('upload', 'Upload', 0, 0),
    step('build', 'Build', 1, 4),
    { id: 'result', label: 'Result', state: snapshot ? 'done' : isOver ? 'skipped' : 'waiting' },
  ]
}

function Building({ view }: { view: ImportView }) {
  const { progress } = view
  if (!progress) {
    return (
      <Panel title="Build">
        <Progress label={view.message} value={null} />
      </Panel>
    )
  }
  const { phase, number, of, percent: share, records, recordsPerSecond, etaSeconds, seconds, memoryBytes } = progress
  return (
    <Panel title="Build">
      <div className="flex flex-col gap-3">
        <Progress
          label={`Phase ${number} of ${of}: ${PHASE_WORDS[phase]}`}
          value={share / 100}
          valueText={`${percent(share / 100)} · ${count(records)} records`}
        />
        <dl className="flex flex-wrap gap-x-8 gap-y-2 tabular-nums">
          <Fact name="Records a second">{shortCount(recordsPerSecond)}</Fact>
          <Fact name="This phase ends in">{etaSeconds === null ? '–' : duration(etaSeconds * 1000)}</Fact>
          <Fact name="Running for">{duration(seconds * 1000)}</Fact>
          <Fact name="Memory of the builder">{bytes(memoryBytes)}</Fact>
        </dl>
        <Spark rates={view.rates} />
      </div>
    </Panel>
  )
}

function Fact({ name, children }: { name: string; children: React.ReactNode }) {
  return (
    <div>
      <dt className="text-small text-text-3">{name}</dt>
      <dd className="font-medium">{children}</dd>
    </div>
  )
}

/** Records a second of the last minute. */
function Spark({ rates }: { rates: readonly number[] }) {
  if (rates.length < 2) return null
  const most = Math.max(1, ...rates)
  return (
    <svg
      viewBox={`0 0 ${rates.length} 20`}
      preserveAspectRatio="none"
      role="img"
      aria-label={`Records a second, at most ${shortCount(most)}`}
      className="h-10 w-full max-w-120"
    >
      {rates.map((rate, at) => (
        <rect
          key={at}
          x={at}
          y={20 - (rate / most) * 20}
          width={0.8}
          height={(rate / most) * 20}
          className="fill-series-1"
        />
      ))}
    </svg>
  )
}

function Result({ view, snapshot }: { view: ImportView; snapshot: string }) {
  const { counters, result, shard } = view
  const details = useQuery({
    queryKey: ['GET /api/v1/snapshots/{id}', snapshot],
    queryFn: ({ signal }) => call('GET /api/v1/snapshots/{id}', { params: { id: snapshot }, signal }),
  })
  return (
    <>
      <Panel title="Result">
        <div className="flex flex-col gap-3">
          <p className="flex items-start gap-2">
            <Icon name="check" className="mt-0.5 text-ok" />
            <span className="min-w-0">
              {view.message}{' '}
              {result && `${shortCount(result.recordsPerSecond)} records a second with ${result.threads} threads.`}
            </span>
          </p>
          <p className="flex flex-wrap items-center gap-2">
            Snapshot <Id value={snapshot} label="snapshot" short={12} />
            {details.data && <span className="text-text-2">{bytes(details.data.bytes)}</span>}
          </p>
          <div className="flex flex-wrap gap-2">
            <InstallButton shard={shard} snapshot={snapshot} />
            <LinkButton href={routes.compareSnapshots(`shard:${shard}`, snapshot)} icon="not-equal">
              Compare with live {shard}
            </LinkButton>
            <LinkButton
              href={pathOf('GET /api/v1/snapshots/{id}/download', { params: { id: snapshot } })}
              icon="download"
              download
            >
              Download snapshot
            </LinkButton>
            <LinkButton href={routes.snapshot(snapshot)} icon="snapshots">
              Open snapshot
            </LinkButton>
            {result && <CopyButton text={result.command} label="Copy build-snapshot command" kind="default" />}
          </div>
          {result?.notes.map((line) => (
            <Banner key={line} level="info" title={line} />
          ))}
        </div>
      </Panel>
      {counters && <CountersView counters={counters} />}
      {details.data && <CoverageView details={details.data} />}
      {details.data && <RoomsView rooms={details.data.roomsPerProperty} />}
      {details.error && <ErrorState error={details.error} onRetry={() => void details.refetch()} />}
    </>
  )
}

function Files({ view }: { view: ImportView }) {
  return (
    <Panel title="Files">
      <dl className="flex flex-col gap-2">
        {Object.values(view.files).map(({ upload, name, bytes: size, rows, sha256, unpacked }) => (
          <div key={upload} className="flex flex-wrap items-center gap-x-4 gap-y-1">
            <dt className="min-w-0 break-words font-medium">{name}</dt>
            <dd className="flex flex-wrap gap-x-4 text-text-2 tabular-nums">
              <span>{bytes(size)}</span>
              {rows !== null && <span>{count(rows)} rows</span>}
              {unpacked && <span>unpacked from gzip</span>}
              {sha256 && <Id value={sha256} label="SHA-256" short={12} />}
            </dd>
          </div>
        ))}
      </dl>
    </Panel>
  )
}

function Log({ lines }: { lines: readonly string[] }) {
  if (lines.length === 0) return null
  return (
    <details className="rounded-panel border border-line bg-surface px-4 py-2">
      <summary className="cursor-pointer font-medium">Log ({lines.length} lines)</summary>
      <pre className="mt-2 max-h-80 overflow-auto whitespace-pre-wrap break-words rounded-control bg-sunken p-3 font-mono text-small">
        {lines.join('\n')}
      </pre>
    </details>
  )
}
