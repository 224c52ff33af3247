'use client'
/**
 * The start of an import, from top to bottom: for which shard, which files, what is wrong with them, send them
 * (docs/design/control-plane.md#imports).
 */
import { useQuery } from '@tanstack/react-query'
import type { FileKind } from '@vacancy/shared/contract'
import { useEffect, useRef, useState } from 'react'
import { ApiProblem, call } from '../../lib/api.ts'
import { bytes, count, counted, duration } from '../../lib/format.ts'
import { navigate } from '../../lib/navigate.ts'
import { routes } from '../../lib/routes.ts'
import { useWhyNot } from '../../lib/session.ts'
import { useUrlParam } from '../../lib/url.ts'
import { Banner } from '../../ui/banner.tsx'
import { Button } from '../../ui/button.tsx'
import { Combobox } from '../../ui/combobox.tsx'
import { Field, Input } from '../../ui/field.tsx'
import { Page } from '../../ui/page.tsx'
import { Panel } from '../../ui/panel.tsx'
import { Progress } from '../../ui/progress.tsx'
import type { CheckReport } from './check-worker.ts'
import { checkFiles } from './checking.ts'
import { FilesPanel, type OwnCodecs } from './files-panel.tsx'
import { Findings, Previews } from './findings.tsx'
import { beginImport, type Chosen, KINDS, ofUpload } from './sources.ts'

/** Bytes a package takes in a node: a word, its share of row and table. */
const BYTES_A_PACKAGE = 10

export function NewImportPage() {
  const why = useWhyNot('operator')
  const options = useQuery({
    queryKey: ['GET /api/v1/import-options'],
    queryFn: ({ signal }) => call('GET /api/v1/import-options', { signal }),
  })
  const [name, setName] = useState('')
  const [shard, setShard] = useState('')
  const [files, setFiles] = useState<Chosen>({})
  const [codecs, setCodecs] = useState<OwnCodecs>()
  const { data } = options
  const names = codecs?.names ?? data?.codecs?.names
  const check = useCheck(files, data, names)
  const shardNow = shard || (data?.shards.length === 1 ? (data.shards[0] ?? '') : '')
  const before = useBefore((given) => {
    setName(given.name)
    setShard(given.shard)
    if (given.codecs) setCodecs({ file: 'codecs.yml of the import before', names: given.codecs })
    setFiles(given.files)
  })
  return (
    <Page
      id="import-new"
      title="New import"
      where="Imports"
      ready={data !== undefined || options.isError}
      crumbs={[{ href: routes.imports(), label: 'Imports' }]}
      lead="Two CSV files become a snapshot, which a shard can then be given. Nothing is sent before you say so."
    >
      {before !== '' && <Banner level="info" title={before} />}
      <Panel title="1 Shard and name" query={options}>
        {({ shards, codecs: inForce, codecsError }) => (
          <div className="flex flex-col gap-4">
            <div className="grid gap-4 sm:grid-cols-2">
              <Field label="Shard" required hint="A new shard may be named that has no node yet.">
                {(wire) => (
                  <Combobox
                    wire={wire}
                    free
                    value={shardNow}
                    onChange={setShard}
                    options={shards.map((value) => ({ value }))}
                  />
                )}
              </Field>
              <Field label="Name" required hint="For the lists: hotels-november.">
                {(wire) => (
                  <Input {...wire} maxLength={128} value={name} onChange={(event) => setName(event.target.value)} />
                )}
              </Field>
            </div>
            {codecs ? (
              <p className="text-small text-text-2">
                Checked and built with the list of {codecs.file}, not with that of a node or registry.
              </p>
            ) : inForce ? (
              <p className="text-small text-text-2">
                {counted(inForce.names.length, 'rate feature')} in the codec list of {inForce.source}:{' '}
                {inForce.names.join(', ')}
              </p>
            ) : (
              <Banner level="warn" title="The codec list is not known">
                {codecsError} Rate features cannot be checked here, and the build waits for the list.
              </Banner>
            )}
          </div>
        )}
      </Panel>
      <FilesPanel
        files={files}
        onFiles={setFiles}
        codecs={codecs}
        onCodecs={setCodecs}
        hasFolder={data?.folder ?? false}
      />
      <CheckPanel files={files} check={check} />
      <SendPanel
        name={name.trim()}
        shard={shardNow.trim()}
        files={files}
        codecs={codecs?.names}
        report={check.report}
        options={data}
        why={why}
      />
    </Page>
  )
}

// Instead of an import before

type Before = {
  readonly name: string
  readonly shard: string
  readonly codecs: readonly string[] | null
  readonly files: Chosen
}

/** Of `?instead=` and `?replace=`: name, shard and the file that stays. @returns what is said of it; '' without one */
function useBefore(onFound: (before: Before) => void): string {
  const [instead] = useUrlParam('instead')
  const [replaced] = useUrlParam('replace')
  const [says, setSays] = useState('')
  useEffect(() => {
    if (instead === '') return
    let isGone = false
    const kept: FileKind = replaced === 'properties' ? 'packages' : 'properties'
    const read = async () => {
      const view = await call('GET /api/v1/imports/{id}', { params: { id: instead } })
      const upload = await call('GET /api/v1/uploads/{id}', { params: { id: view.files[kept].upload } }).catch(
        (error: unknown) => {
          // Dropped, or 48 h have passed: it is chosen again.
          if (error instanceof ApiProblem && error.status === 404) return undefined
          throw error
        },
      )
      const isFree = upload?.complete === true && upload.import === null
      if (isGone) return
      onFound({
        name: view.name,
        shard: view.shard,
        codecs: view.codecs,
        files: isFree ? { [kept]: ofUpload(upload) } : {},
      })
      setSays(
        isFree
          ? `Instead of ${view.name}: ${upload.name} is kept, choose the other file.`
          : `Instead of ${view.name}: its ${kept}.csv is not here any more, choose both files.`,
      )
    }
    read().catch((error: Error) => !isGone && setSays(`The import before could not be read: ${error.message}`))
    return () => {
      isGone = true
    }
  }, [instead, replaced])
  return says
}

// Check

type Options = Awaited<ReturnType<typeof call<'GET /api/v1/import-options'>>>
type Check = {
  readonly report: CheckReport | undefined
  readonly progress: number | undefined
  readonly error: string
  readonly checkAll: () => void
  readonly stop: () => void
}

/** A sample as soon as there is a file, all rows when that is asked for. */
function useCheck(files: Chosen, options: Options | undefined, codecs: readonly string[] | undefined): Check {
  const [report, setReport] = useState<CheckReport>()
  const [progress, setProgress] = useState<number>()
  const [error, setError] = useState('')
  const end = useRef<AbortController>(undefined)
  const { properties, packages } = files
  const run = (full: boolean) => {
    end.current?.abort()
    const own = new AbortController()
    end.current = own
    const given = KINDS.flatMap((kind) => {
      const source = files[kind]
      return source?.from === 'browser' ? [{ kind, file: source.file }] : []
    })
    setError('')
    setProgress(full ? 0 : undefined)
    if (given.length === 0) {
      setReport(undefined)
      return
    }
    const { today, to } = { today: options?.today ?? '', to: options?.window.to ?? '9999-12-31' }
    checkFiles(
      { files: given, codecs, today, lastDay: to, full },
      { signal: own.signal, onProgress: (share) => end.current === own && setProgress(share) },
    ).then(
      (found) => {
        if (end.current !== own) return
        setReport(found)
        setProgress(undefined)
      },
      (reason: Error) => {
        if (end.current !== own) return
        setError(reason.message)
        setProgress(undefined)
      },
    )
  }
  useEffect(() => {
    run(false)
    return () => end.current?.abort()
  }, [properties, packages, codecs])
  return { report, progress, error, checkAll: () => run(true), stop: () => end.current?.abort() }
}

function CheckPanel({ files, check }: { files: Chosen; check: Check }) {
  const { report, progress, error, checkAll, stop } = check
  const isNone = !files.properties && !files.packages
  const isElsewhere = KINDS.every((kind) => files[kind]?.from !== 'browser')
  if (isElsewhere || (!report && error === '')) {
    return (
      <Panel title="3 Check">
        <p className="text-text-2">
          {isNone
            ? 'Files are looked at as soon as they are chosen.'
            : isElsewhere
              ? 'These files are not in this browser; the build checks every row of them.'
              : 'A sample of the files is looked at.'}
        </p>
      </Panel>
    )
  }
  const looked = report?.files.reduce((sum, file) => sum + file.bytesLooked, 0) ?? 0
  return (
    <Panel
      title="3 Check"
      data={{ 'data-check': report?.full ? 'full' : 'sample' }}
      actions={
        progress === undefined ? (
          <Button icon="search" onClick={checkAll}>
            Check every row here
          </Button>
        ) : (
          <Button icon="stop" onClick={stop}>
            Stop checking
          </Button>
        )
      }
    >
      <div className="flex flex-col gap-4">
        {progress !== undefined && <Progress label="Checking every row" value={progress} />}
        {error !== '' && (
          <p role="alert" className="text-crit">
            The files could not be checked: {error}
          </p>
        )}
        {report && (
          <>
            <Findings
              report={report}
              looked={report.full && !report.stopped ? '' : `in the ${bytes(looked)} looked at`}
            />
            <Previews report={report} />
          </>
        )}
      </div>
    </Panel>
  )
}

// Send

type SendProps = {
  readonly name: string
  readonly shard: string
  readonly files: Chosen
  readonly codecs: readonly string[] | undefined
  readonly report: CheckReport | undefined
  readonly options: Options | undefined
  readonly why: string | undefined
}

function SendPanel({ name, shard, files, codecs, report, options, why }: SendProps) {
  const [isBusy, setBusy] = useState(false)
  const [fault, setFault] = useState<Error>()
  const { properties, packages } = files
  const missing = [
    ...(shard === '' ? ['name a shard'] : []),
    ...(name === '' ? ['give it a name'] : []),
    ...(properties ? [] : ['choose properties.csv']),
    ...(packages ? [] : ['choose packages.csv']),
  ]
  const stops = report?.files.some(({ findings }) => findings.some(({ kind }) => kind === 'feature')) ?? false
  const blocked =
    why ??
    (missing.length > 0
      ? `First ${missing.join(', ')}`
      : stops
        ? 'A rate feature is not in the codec list: mend the file, or change the list first'
        : undefined)
  const total = KINDS.reduce((sum, kind) => {
    const source = files[kind]
    return sum + (source?.from === 'browser' ? source.bytes : 0)
  }, 0)
  const records = report?.files.find(({ kind }) => kind === 'packages')?.rowsEstimate
  const send = async () => {
    if (!properties || !packages) return
    setBusy(true)
    setFault(undefined)
    try {
      navigate(routes.import(await beginImport({ name, shard, codecs, properties, packages })))
    } catch (error) {
      setFault(error as Error)
      setBusy(false)
    }
  }
  return (
    <Panel title="4 Upload and build">
      <div className="flex flex-col gap-3">
        <dl className="flex flex-wrap gap-x-8 gap-y-2 tabular-nums">
          <Estimate name="To upload">{bytes(total)}</Estimate>
          <Estimate name="Free on the control plane">{bytes(options?.freeBytes ?? null)}</Estimate>
          <Estimate name="Packages, about">{count(records ?? null)}</Estimate>
          <Estimate name="Memory in a node, about">
            {records === undefined ? '–' : bytes(records * BYTES_A_PACKAGE)}
          </Estimate>
          <Estimate name="Build time, as here before">
            {records && options?.recordsPerSecond ? duration((records / options.recordsPerSecond) * 1000) : '–'}
          </Estimate>
        </dl>
        {options?.freeBytes != null && total > options.freeBytes && (
          <Banner level="crit" title="The disk of the control plane has no room for these files">
            They need {bytes(total)}, {bytes(options.freeBytes)} are free. Delete old snapshots or drop unfinished
            uploads.
          </Banner>
        )}
        {fault && (
          <p role="alert" className="text-crit">
            {fault.message} {fault instanceof ApiProblem ? fault.hint : ''}
          </p>
        )}
        <div>
          <Button kind="primary" icon="upload" why={blocked} busy={isBusy} onClick={() => void send()}>
            {total === 0 && properties && packages ? 'Build' : 'Upload and build'}
          </Button>
        </div>
      </div>
    </Panel>
  )
}

function Estimate({ name, children }: { name: string; children: React.ReactNode }) {
  return (
    <div>
      <dt className="text-small text-text-3">{name}</dt>
      <dd className="font-medium">{children}</dd>
    </div>
  )
}
