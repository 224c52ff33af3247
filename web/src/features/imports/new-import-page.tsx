'use client'
import { useMutation } from '@tanstack/react-query'
/**
 * A new import: shard and name, files, upload and build
 * (docs/design/control-plane.md#imports).
 */
import { LIMITS } from '@vacancy/shared'
import type { FileKind } from '@vacancy/shared/contract'
import { useEffect, useState } from 'react'
import { ApiProblem, call } from '../../lib/api.ts'
import { bytes, count, duration, NONE } from '../../lib/format.ts'
import { navigate } from '../../lib/navigate.ts'
import { routes } from '../../lib/routes.ts'
import { useWhyNot } from '../../lib/session.ts'
import { useUrlParam } from '../../lib/url.ts'
import { useRoute } from '../../lib/use-route.ts'
import { Banner } from '../../ui/banner.tsx'
import { Button } from '../../ui/button.tsx'
import { Combobox } from '../../ui/combobox.tsx'
import { Failed } from '../../ui/confirm-dialog.tsx'
import { Field, TextField } from '../../ui/field.tsx'
import { Page } from '../../ui/page.tsx'
import { Panel } from '../../ui/panel.tsx'
import { SelectField } from '../../ui/select.tsx'
import * as copy from './copy.ts'
import { FilesPanel, type OwnCodecs } from './files-panel.tsx'
import { beginImport, type Chosen, KINDS, ofUpload } from './sources.ts'

/** As `build-snapshot` takes them. */
const DECIMALS = Array.from({ length: LIMITS.priceDecimalsMax + 1 }, (_, decimals) => `${decimals}`)
/** Memory per package in a node: a word and its share of row and table. */
const BYTES_PER_PACKAGE = 10

export function NewImportPage() {
  const why = useWhyNot('operator')
  const options = useRoute('GET /api/v1/import-options', {})
  const [name, setName] = useState('')
  const [shard, setShard] = useState('')
  const [files, setFiles] = useState<Chosen>({})
  const [codecs, setCodecs] = useState<OwnCodecs>()
  const [decimals, setDecimals] = useState('0')
  const { data } = options
  const shardNow = shard || (data?.shards.length === 1 ? (data.shards[0] ?? '') : '')
  const before = useBefore((given) => {
    setName(given.name)
    setShard(given.shard)
    setDecimals(String(given.priceDecimals))
    if (given.codecs) setCodecs({ file: copy.start.codecsOfBefore, names: given.codecs })
    setFiles(given.files)
  })
  return (
    <Page
      id="import-new"
      title={copy.common.newImport}
      where={copy.common.imports}
      ready={data !== undefined || options.isError}
      crumbs={[{ href: routes.imports(), label: copy.common.imports }]}
      lead={copy.start.lead}
    >
      {before !== '' && <Banner level="info" title={before} />}
      <Panel title={copy.start.target} query={options}>
        {({ shards, codecs: inForce, codecsError }) => (
          <div className="flex flex-col gap-4">
            <div className="grid gap-4 sm:grid-cols-2">
              <Field label={copy.start.shard} required hint={copy.start.shardHint}>
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
              <TextField
                label={copy.start.name}
                required
                hint={copy.start.nameHint}
                maxLength={128}
                value={name}
                onChange={setName}
              />
              <SelectField
                label={copy.start.decimals}
                hint={copy.start.decimalsHint}
                value={decimals}
                onChange={setDecimals}
                options={DECIMALS.map((value) => ({ value, label: copy.start.decimalsOf(value) }))}
              />
            </div>
            {codecs ? (
              <p className="text-small text-text-2">{copy.start.ownCodecs(codecs.file)}</p>
            ) : inForce ? (
              <p className="text-small text-text-2">
                {copy.start.codecs(inForce.names.length, inForce.source, inForce.names.join(', '))}
              </p>
            ) : (
              <Banner level="warn" title={copy.start.noCodecs}>
                {codecsError} {copy.start.noCodecsHint}
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
      <SendPanel
        name={name.trim()}
        shard={shardNow.trim()}
        files={files}
        codecs={codecs?.names}
        priceDecimals={Number(decimals)}
        options={data}
        why={why}
      />
    </Page>
  )
}

// Replacing a previous import

type Before = {
  readonly name: string
  readonly shard: string
  readonly codecs: readonly string[] | null
  readonly priceDecimals: number
  readonly files: Chosen
}

/** Reads name, shard and the kept file of `?instead=` and `?replace=`. @returns a message; '' without one */
function useBefore(onFound: (before: Before) => void): string {
  const [instead] = useUrlParam('instead')
  const [replaced] = useUrlParam('replace')
  const [message, setMessage] = useState('')
  useEffect(() => {
    if (instead === '') return
    let isGone = false
    const kept: FileKind = replaced === 'properties' ? 'packages' : 'properties'
    const read = async () => {
      const view = await call('GET /api/v1/imports/{id}', { params: { id: instead } })
      const upload = await call('GET /api/v1/uploads/{id}', { params: { id: view.files[kept].upload } }).catch(
        (error: unknown) => {
          // Deleted or expired: it has to be chosen again.
          if (error instanceof ApiProblem && error.status === 404) return undefined
          throw error
        },
      )
      const isFree = upload?.complete === true && upload.import === null
      if (isGone) return
      onFound({
        name: view.name,
        shard: view.shard,
        priceDecimals: view.priceDecimals,
        codecs: view.codecs,
        files: isFree ? { [kept]: ofUpload(upload) } : {},
      })
      setMessage(isFree ? copy.start.replaces(view.name, upload.name) : copy.start.replacesBoth(view.name, kept))
    }
    read().catch((error: Error) => !isGone && setMessage(copy.start.beforeUnreadable(error.message)))
    return () => {
      isGone = true
    }
  }, [instead, replaced])
  return message
}

// Send

type Options = Awaited<ReturnType<typeof call<'GET /api/v1/import-options'>>>
type SendProps = {
  readonly name: string
  readonly shard: string
  readonly files: Chosen
  readonly codecs: readonly string[] | undefined
  readonly priceDecimals: number
  readonly options: Options | undefined
  readonly why: string | undefined
}

function SendPanel({ name, shard, files, codecs, priceDecimals, options, why }: SendProps) {
  const { properties, packages } = files
  const missing = [
    ...(shard === '' ? [copy.send.enterShard] : []),
    ...(name === '' ? [copy.send.enterName] : []),
    ...(properties ? [] : [copy.send.choose('properties')]),
    ...(packages ? [] : [copy.send.choose('packages')]),
  ]
  const blocked = why ?? (missing.length > 0 ? copy.send.missing(missing) : undefined)
  const total = KINDS.reduce((sum, kind) => {
    const source = files[kind]
    return sum + (source?.from === 'browser' ? source.bytes : 0)
  }, 0)
  const records = packages?.from === 'browser' ? packages.rows : undefined
  const send = useMutation({
    mutationFn: async () => {
      if (!properties || !packages) return
      navigate(routes.import(await beginImport({ name, shard, codecs, priceDecimals, properties, packages })))
    },
  })
  return (
    <Panel title={copy.send.title}>
      <div className="flex flex-col gap-3">
        <dl className="flex flex-wrap gap-x-8 gap-y-2 tabular-nums">
          <Estimate name={copy.send.upload}>{bytes(total)}</Estimate>
          <Estimate name={copy.send.free}>{bytes(options?.freeBytes ?? null)}</Estimate>
          <Estimate name={copy.send.packages}>{count(records ?? null)}</Estimate>
          <Estimate name={copy.send.memory}>
            {records === undefined ? NONE : bytes(records * BYTES_PER_PACKAGE)}
          </Estimate>
          <Estimate name={copy.send.buildTime}>
            {records && options?.recordsPerSecond ? duration((records / options.recordsPerSecond) * 1000) : NONE}
          </Estimate>
        </dl>
        {options?.freeBytes != null && total > options.freeBytes && (
          <Banner level="crit" title={copy.send.noSpace}>
            {copy.send.noSpaceHint(bytes(total), bytes(options.freeBytes))}
          </Banner>
        )}
        {send.error && <Failed error={send.error} />}
        <div className="flex flex-wrap items-center gap-3">
          <Button kind="primary" icon="upload" why={blocked} busy={send.isPending} onClick={() => send.mutate()}>
            {total === 0 && properties && packages ? copy.send.build : copy.send.uploadAndBuild}
          </Button>
          {blocked !== undefined && <p className="text-text-2">{blocked}</p>}
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
