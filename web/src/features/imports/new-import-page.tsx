'use client'
/** The start of an import, from top to bottom: for which shard, which files, what is wrong with them, send them (§8.1–8.3). */
import { useQuery } from '@tanstack/react-query'
import type { FileKind } from '@vacancy/shared/contract'
import { type DragEvent, useEffect, useRef, useState } from 'react'
import { Icon } from '../../icons/icon.tsx'
import { ApiProblem, call } from '../../lib/api.ts'
import { bytes, count, counted, duration } from '../../lib/format.ts'
import { go } from '../../lib/go.ts'
import { routes } from '../../lib/routes.ts'
import { useWhyNot } from '../../lib/session.ts'
import { Banner } from '../../ui/banner.tsx'
import { Button } from '../../ui/button.tsx'
import { Combobox } from '../../ui/combobox.tsx'
import { Field, Input } from '../../ui/field.tsx'
import { Page } from '../../ui/page.tsx'
import { Panel } from '../../ui/panel.tsx'
import { Progress } from '../../ui/progress.tsx'
import type { CheckReport } from './check-worker.ts'
import { checkFiles, fingerprintOf, sortFiles } from './checking.ts'
import { FileButton } from './file-button.tsx'
import { Findings, Previews } from './findings.tsx'
import { startUpload } from './uploading.ts'

type Chosen = Partial<Record<FileKind, File>>
const KINDS: readonly FileKind[] = ['properties', 'packages']
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
  const { data } = options
  const check = useCheck(files, data)
  const shardNow = shard || (data?.shards.length === 1 ? (data.shards[0] ?? '') : '')
  return (
    <Page
      id="import-new"
      title="New import"
      where="Imports"
      ready={data !== undefined || options.isError}
      crumbs={[{ href: routes.imports(), label: 'Imports' }]}
      lead="Two CSV files become a snapshot, which a shard can then be given. Nothing is sent before you say so."
    >
      <Panel title="1 Shard and name" query={options}>
        {({ shards, codecs, codecsError }) => (
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
                {counted(codecs.names.length, 'rate feature')} in the codec list of {codecs.source}:{' '}
                {codecs.names.join(', ')}
              </p>
            ) : (
              <Banner level="warn" title="The codec list is not known">
                {codecsError} Rate features cannot be checked here, and the build waits for the list.
              </Banner>
            )}
          </div>
        )}
      </Panel>
      <FilesPanel files={files} onFiles={setFiles} />
      <CheckPanel files={files} check={check} />
      <SendPanel
        name={name.trim()}
        shard={shardNow.trim()}
        files={files}
        report={check.report}
        options={data}
        why={why}
      />
    </Page>
  )
}

// Files

function FilesPanel({ files, onFiles }: { files: Chosen; onFiles: (files: Chosen) => void }) {
  const [faults, setFaults] = useState<readonly string[]>([])
  const [isOver, setOver] = useState(false)
  const [isBusy, setBusy] = useState(false)
  const take = async (given: readonly File[]) => {
    if (given.length === 0) return
    setBusy(true)
    try {
      const sorted = await sortFiles(given)
      const next: Chosen = { ...files }
      const wrong: string[] = []
      const seen = new Set<FileKind>()
      for (const [at, { kind, fault }] of sorted.entries()) {
        const file = given[at] as File
        if (!kind) wrong.push(`${file.name} ${fault}.`)
        else if (seen.has(kind)) wrong.push(`${file.name} looks like ${kind} as well: two files of one kind.`)
        else {
          seen.add(kind)
          next[kind] = file
          const other = kind === 'properties' ? 'packages' : 'properties'
          if (file.name.toLowerCase().includes(other))
            wrong.push(`${file.name} looks like ${kind}, whatever its name says: taken as that.`)
        }
      }
      setFaults(wrong)
      onFiles(next)
    } catch (error) {
      setFaults([`The files could not be read: ${(error as Error).message}`])
    } finally {
      setBusy(false)
    }
  }
  const drop = (event: DragEvent) => {
    event.preventDefault()
    setOver(false)
    void take([...event.dataTransfer.files])
  }
  return (
    <Panel title="2 Files">
      <div className="flex flex-col gap-3">
        {/* biome-ignore lint/a11y/noStaticElementInteractions: dropping is a second way; the button beside it is the first. */}
        <div
          onDragOver={(event) => {
            event.preventDefault()
            setOver(true)
          }}
          onDragLeave={() => setOver(false)}
          onDrop={drop}
          className={`flex flex-wrap items-center gap-3 rounded-panel border border-dashed p-4 ${isOver ? 'border-accent bg-info-bg' : 'border-line-strong'}`}
        >
          <p className="grow text-text-2">
            Drop properties.csv and packages.csv here, in any order, as they are or as .gz, or
          </p>
          <FileButton multiple busy={isBusy} onFiles={(given) => void take(given)}>
            Choose files
          </FileButton>
        </div>
        <ul className="flex flex-col gap-1">
          {KINDS.map((kind) => (
            <ChosenFile
              key={kind}
              kind={kind}
              file={files[kind]}
              onDrop={() => onFiles({ ...files, [kind]: undefined })}
            />
          ))}
        </ul>
        {faults.length > 0 && (
          <ul role="alert" className="flex flex-col gap-1 text-warn">
            {faults.map((fault) => (
              <li key={fault} className="flex items-start gap-2">
                <Icon name="triangle" className="mt-0.5" />
                <span className="min-w-0 break-words">{fault}</span>
              </li>
            ))}
          </ul>
        )}
      </div>
    </Panel>
  )
}

function ChosenFile({ kind, file, onDrop }: { kind: FileKind; file: File | undefined; onDrop: () => void }) {
  return (
    <li data-file={kind} className="flex min-h-8 flex-wrap items-center gap-x-4">
      <Icon name={file ? 'check' : 'ring'} className={file ? 'text-ok' : 'text-text-3'} />
      <span className="w-24 text-text-2">{kind}</span>
      {file ? (
        <>
          <span className="min-w-0 break-words">{file.name}</span>
          <span className="text-text-2 tabular-nums">{bytes(file.size)}</span>
          <Button kind="quiet" icon="cross" onClick={onDrop}>
            Take {file.name} out
          </Button>
        </>
      ) : (
        <span className="text-text-3">not chosen yet</span>
      )}
    </li>
  )
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
function useCheck(files: Chosen, options: Options | undefined): Check {
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
      const file = files[kind]
      return file ? [{ kind, file }] : []
    })
    setError('')
    setProgress(full ? 0 : undefined)
    if (given.length === 0) {
      setReport(undefined)
      return
    }
    const { today, to } = { today: options?.today ?? '', to: options?.window.to ?? '9999-12-31' }
    checkFiles(
      { files: given, codecs: options?.codecs?.names, today, lastDay: to, full },
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
  }, [properties, packages, options?.codecs?.hash])
  return { report, progress, error, checkAll: () => run(true), stop: () => end.current?.abort() }
}

function CheckPanel({ files, check }: { files: Chosen; check: Check }) {
  const { report, progress, error, checkAll, stop } = check
  const isNone = !files.properties && !files.packages
  if (isNone || (!report && error === '')) {
    return (
      <Panel title="3 Check">
        <p className="text-text-2">
          {isNone ? 'Files are looked at as soon as they are chosen.' : 'A sample of the files is looked at.'}
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
  readonly report: CheckReport | undefined
  readonly options: Options | undefined
  readonly why: string | undefined
}

function SendPanel({ name, shard, files, report, options, why }: SendProps) {
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
  const total = (properties?.size ?? 0) + (packages?.size ?? 0)
  const records = report?.files.find(({ kind }) => kind === 'packages')?.rowsEstimate
  const send = async () => {
    if (!properties || !packages) return
    setBusy(true)
    setFault(undefined)
    try {
      go(routes.import(await begin(name, shard, properties, packages)))
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
            Upload and build
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

/** @returns id of the import; its files are on their way */
async function begin(name: string, shard: string, properties: File, packages: File): Promise<string> {
  const [first, second] = await Promise.all([beginUpload('properties', properties), beginUpload('packages', packages)])
  const { id } = await call('POST /api/v1/imports', {
    body: { name, shard, properties: first.id, packages: second.id },
  })
  startUpload(first, properties)
  startUpload(second, packages)
  return id
}

async function beginUpload(kind: FileKind, file: File) {
  const fingerprint = await fingerprintOf(file)
  // What was begun before, by this page or another, goes on: nothing is sent twice.
  const { uploads } = await call('GET /api/v1/uploads')
  const known = uploads.find(
    (upload) => upload.fingerprint === fingerprint && upload.kind === kind && upload.import === null,
  )
  return (
    known ?? (await call('POST /api/v1/uploads', { body: { name: file.name, bytes: file.size, kind, fingerprint } }))
  )
}
