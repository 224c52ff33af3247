'use client'
/** An import after its files were chosen, in all states (docs/design/control-plane.md#imports). */
import type { BuildPhase, ImportView, UploadView } from '@vacancy/shared/contract'
import { useState } from 'react'
import { Icon } from '../../icons/icon.tsx'
import { ApiProblem, call, pathOf } from '../../lib/api.ts'
import { bytes, count, day, duration, NONE, percent, shortCount, timeLeft } from '../../lib/format.ts'
import { useLive } from '../../lib/live.ts'
import { routes } from '../../lib/routes.ts'
import { useWhyNot } from '../../lib/session.ts'
import { useRoute } from '../../lib/use-route.ts'
import { Age } from '../../ui/age.tsx'
import { announce } from '../../ui/announce.ts'
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
import { useRequest } from '../../ui/use-request.ts'
import { InstallButton } from '../operations/install-button.tsx'
import * as copy from './copy.ts'
import { fingerprintOf } from './digest.ts'
import { ErrorsTable } from './errors-table.tsx'
import { FileButton } from './file-button.tsx'
import { CountersView, CoverageView, RoomsView } from './result.tsx'
import { STATE_LEVELS } from './states.ts'
import { pauseUpload, resumeUpload, startUpload, useUploads } from './uploading.ts'

export function ImportPage({ id }: { id: string }) {
  const query = useLive(`import:${id}`)
  const view = query.data
  const isUnknown = query.error instanceof ApiProblem && query.error.status === 404
  if (isUnknown && !view) {
    return (
      <Page
        id="import"
        title={copy.page.unknownTitle}
        ready
        crumbs={[{ href: routes.imports(), label: copy.common.imports }]}
      >
        <p className="prose text-text-2">{copy.page.unknown(id)}</p>
        <p>
          <LinkButton href={routes.imports()}>{copy.page.openImports}</LinkButton>
        </p>
      </Page>
    )
  }
  return (
    <Page
      id="import"
      title={view?.name ?? copy.page.fallbackTitle}
      where={copy.common.imports}
      ready={view !== undefined}
      crumbs={[{ href: routes.imports(), label: copy.common.imports }]}
      badge={view && <Badge level={STATE_LEVELS[view.state]}>{copy.states[view.state]}</Badge>}
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
      {copy.page.forShard} <span className="font-mono">{view.shard}</span>,{' '}
      {copy.page.nights(day(view.window.from, true), day(view.window.to, true))}, {copy.page.started}{' '}
      <Age at={view.createdAt} /> {copy.page.by(view.by)}
      {view.withoutRowsOf !== null && (
        <>
          {copy.page.withoutRows} <Link href={routes.import(view.withoutRowsOf)}>{copy.page.anotherImport}</Link>
        </>
      )}
      {view.priceDecimals > 0 && copy.page.decimals(view.priceDecimals)}
      {view.codecs !== null && copy.page.ownCodecs(view.codecs.join(', '))}
    </p>
  )
}

function CancelButton({ view }: { view: ImportView }) {
  const why = useWhyNot('operator')
  const cancel = useRequest(async () => {
    await call('POST /api/v1/imports/{id}/cancel', { params: { id: view.id } })
    toast({ message: copy.page.cancelled(view.name) })
  })
  return (
    <Button icon="stop" kind="danger" why={why} busy={cancel.isPending} onClick={() => cancel.mutate()}>
      {copy.page.cancelImport}
    </Button>
  )
}

function Flow({ view }: { view: ImportView }) {
  const why = useWhyNot('operator')
  const { progress, state, files } = view
  return (
    <section
      aria-label={copy.page.label(view.name)}
      data-import-state={state}
      data-phase={progress?.phase ?? state}
      data-records={progress?.records ?? view.counters?.readBack.packages ?? 0}
      data-rate={progress?.recordsPerSecond ?? view.result?.recordsPerSecond ?? 0}
      className="flex flex-col gap-4"
    >
      <Stepper label={copy.page.steps} inline steps={stepsOf(view)} />
      {state === 'failed' && (
        <Banner
          level="crit"
          title={view.message}
          actions={
            <LinkButton href={routes.newImport()} icon="plus">
              {copy.common.newImport}
            </LinkButton>
          }
        >
          {view.hint}
        </Banner>
      )}
      {state === 'cancelled' && (
        <Banner level="unk" title={view.message}>
          {copy.page.cancelledHint}
        </Banner>
      )}
      {state === 'uploading' && (
        <Panel title={copy.page.upload}>
          <p className="prose text-text-2">{copy.page.uploadHint}</p>
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
    { id: 'files', label: copy.page.step.files, state: 'done' as const },
    step('upload', copy.page.step.upload, 0, 0),
    step('build', copy.page.step.build, 1, 4),
    { id: 'result', label: copy.page.step.result, state: snapshot ? 'done' : isOver ? 'skipped' : 'waiting' },
  ]
}

function Building({ view }: { view: ImportView }) {
  const { progress } = view
  if (!progress) {
    return (
      <Panel title={copy.page.build}>
        <Progress label={view.message} value={null} />
      </Panel>
    )
  }
  const { phase, number, of, percent: share, records, recordsPerSecond, etaSeconds, seconds, memoryBytes } = progress
  return (
    <Panel title={copy.page.build}>
      <div className="flex flex-col gap-3">
        <Progress
          label={copy.page.phase(number, of, copy.phases[phase])}
          value={share / 100}
          valueText={copy.page.progress(percent(share / 100), count(records))}
        />
        <dl className="flex flex-wrap gap-x-8 gap-y-2 tabular-nums">
          <Fact name={copy.page.rate}>{recordsPerSecond === 0 ? NONE : shortCount(recordsPerSecond)}</Fact>
          <Fact name={copy.page.eta}>{etaSeconds === null ? NONE : timeLeft(etaSeconds * 1000)}</Fact>
          <Fact name={copy.page.runningFor}>{duration(seconds * 1000)}</Fact>
          <Fact name={copy.page.memory}>{bytes(memoryBytes)}</Fact>
        </dl>
        <div className="grid items-start gap-x-8 gap-y-3 md:grid-cols-[minmax(0,1fr)_minmax(0,1fr)]">
          <Stepper label={copy.page.phases} steps={phasesOf(progress)} />
          <Spark rates={view.rates} />
        </div>
      </div>
    </Panel>
  )
}

const ORDER = Object.keys(copy.phases).filter((phase) => phase !== 'errors') as BuildPhase[]

/** Each phase with its time, the running one also with its share. Errors are collected in a phase of their own. */
function phasesOf({ phase, done, total, phases }: NonNullable<ImportView['progress']>) {
  const all = phase === 'errors' ? phases.map((one) => one.phase) : ORDER
  const at = all.indexOf(phase)
  return all.map((id, place) => {
    const begun = phases.find((one) => one.phase === id)
    return {
      id,
      label: copy.phases[id],
      state: (place === at ? 'running' : place < at ? 'done' : 'waiting') as StepState,
      ms: begun ? begun.seconds * 1_000 : null,
      ...(place === at && total > 0 && { note: percent(done / total) }),
    }
  })
}

function Fact({ name, children }: { name: string; children: React.ReactNode }) {
  return (
    <div>
      <dt className="text-small text-text-3">{name}</dt>
      <dd className="font-medium">{children}</dd>
    </div>
  )
}

/** Records per second over the last minute. */
function Spark({ rates }: { rates: readonly number[] }) {
  if (rates.length < 2) return null
  const most = Math.max(1, ...rates)
  return (
    <svg
      viewBox={`0 0 ${rates.length} 20`}
      preserveAspectRatio="none"
      role="img"
      aria-label={copy.page.rateChart(shortCount(most))}
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
  const details = useRoute('GET /api/v1/snapshots/{id}', { params: { id: snapshot } })
  return (
    <>
      <Panel title={copy.page.result}>
        <div className="flex flex-col gap-3">
          <p className="flex items-start gap-2">
            <Icon name="check" className="mt-0.5 text-ok" />
            <span className="min-w-0">
              {view.message} {result && copy.page.speed(shortCount(result.recordsPerSecond), result.threads)}
            </span>
          </p>
          <p className="flex flex-wrap items-center gap-2">
            {copy.page.snapshot} <Id value={snapshot} label="snapshot" short={12} />
            {details.data && <span className="text-text-2">{bytes(details.data.bytes)}</span>}
          </p>
          <div className="flex flex-wrap gap-2">
            <InstallButton shard={shard} snapshot={snapshot} />
            <LinkButton
              href={routes.compareSnapshots({ a: `shard:${shard}`, b: snapshot })}
              icon="not-equal"
              kind="quiet"
            >
              {copy.page.compare(shard)}
            </LinkButton>
            <LinkButton
              href={pathOf('GET /api/v1/snapshots/{id}/download', { params: { id: snapshot } })}
              icon="download"
              kind="quiet"
              download
            >
              {copy.page.download}
            </LinkButton>
            <LinkButton href={routes.snapshot(snapshot)} icon="snapshots" kind="quiet">
              {copy.page.open}
            </LinkButton>
            {result && <CopyButton text={result.command} label={copy.page.copyCommand} kind="quiet" />}
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
    <Panel title={copy.page.files}>
      <dl className="flex flex-col gap-2">
        {Object.values(view.files).map(({ upload, name, bytes: size, rows, sha256, unpacked }) => (
          <div key={upload} className="flex flex-wrap items-center gap-x-4 gap-y-1">
            <dt className="min-w-0 break-words font-medium">{name}</dt>
            <dd className="flex flex-wrap gap-x-4 text-text-2 tabular-nums">
              <span>{bytes(size)}</span>
              {rows !== null && <span>{copy.page.rows(count(rows))}</span>}
              {unpacked && <span>{copy.page.unpacked}</span>}
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
      <summary className="cursor-pointer font-medium">{copy.page.log(lines.length)}</summary>
      <pre className="mt-2 max-h-80 overflow-auto whitespace-pre-wrap break-words rounded-control bg-sunken p-3 font-mono text-small">
        {lines.join('\n')}
      </pre>
    </details>
  )
}

type UploadRowProps = {
  readonly file: ImportView['files']['properties']
  readonly why: string | undefined
}

/** The upload of one file: it continues by itself, or waits for the file to be chosen again after a reload. */
function UploadRow({ file, why }: UploadRowProps) {
  const task = useUploads().get(file.upload)
  const received = Math.max(file.received, task?.offset ?? 0)
  const isDone = received >= file.bytes
  const state = isDone ? 'done' : (task?.state ?? 'elsewhere')
  const left = task && task.rate > 0 ? timeLeft(((file.bytes - received) / task.rate) * 1000) : undefined
  const valueText = [
    copy.upload.receivedOf(bytes(received), bytes(file.bytes)),
    ...(task && task.rate > 0 && !isDone ? [copy.upload.rate(bytes(task.rate))] : []),
    ...(left && !isDone ? [copy.upload.left(left)] : []),
  ].join(' · ')
  return (
    <div data-upload={file.upload} data-upload-state={state} className="flex flex-col gap-2 py-2">
      <Progress label={file.name} value={file.bytes === 0 ? 1 : received / file.bytes} valueText={valueText} />
      <div className="flex flex-wrap items-center gap-2">
        {state === 'running' && (
          <Button icon="pause" onClick={() => pauseUpload(file.upload)}>
            {copy.upload.pause(file.name)}
          </Button>
        )}
        {(state === 'paused' || state === 'waiting' || state === 'failed') && (
          <Button icon="play" why={why} onClick={() => resumeUpload(file.upload)}>
            {copy.upload.resume(file.name)}
          </Button>
        )}
        {task && task.message !== '' && !isDone && (
          <p className={state === 'failed' ? 'text-crit' : 'text-text-2'}>{task.message}</p>
        )}
        {state === 'elsewhere' && <ChooseAgain file={file} why={why} />}
      </div>
    </div>
  )
}

/** After a reload browsers cannot read a file: choosing the same file again resumes its upload. */
function ChooseAgain({ file, why }: UploadRowProps) {
  const [fault, setFault] = useState('')
  const [isBusy, setBusy] = useState(false)
  const resume = async (chosen: File) => {
    setFault('')
    setBusy(true)
    try {
      const upload = await call('GET /api/v1/uploads/{id}', { params: { id: file.upload } })
      const wrong = await faultOf(upload, chosen)
      if (wrong !== '') return setFault(wrong)
      startUpload(upload, chosen)
      announce(copy.upload.resumesAt(file.name, percent(upload.offset / upload.bytes)), 'polite')
    } catch (error) {
      setFault((error as Error).message)
    } finally {
      setBusy(false)
    }
  }
  return (
    <>
      <p className="text-text-2">{copy.upload.chooseHint(file.name, bytes(file.bytes))}</p>
      <FileButton why={why} busy={isBusy} onFiles={([chosen]) => void (chosen && resume(chosen))}>
        {copy.upload.choose(file.name)}
      </FileButton>
      {fault !== '' && (
        <p role="alert" className="text-crit">
          {fault}
        </p>
      )}
    </>
  )
}

async function faultOf(upload: UploadView, chosen: File): Promise<string> {
  if (chosen.size !== upload.bytes)
    return copy.upload.sizeDiffers(chosen.name, bytes(chosen.size), upload.name, bytes(upload.bytes))
  if ((await fingerprintOf(chosen)) === upload.fingerprint) return ''
  return copy.upload.contentDiffers(chosen.name)
}
