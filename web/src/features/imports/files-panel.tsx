'use client'
/**
 * The files of an import, chosen in any order and classified by content (docs/design/control-plane.md#imports).
 */
import type { FileKind } from '@vacancy/shared/contract'
import { type DragEvent, useState } from 'react'
import { Icon } from '../../icons/icon.tsx'
import { ApiProblem, call } from '../../lib/api.ts'
import { bytes, utc } from '../../lib/format.ts'
import { useRoute } from '../../lib/use-route.ts'
import { Button } from '../../ui/button.tsx'
import { Combobox } from '../../ui/combobox.tsx'
import { Field } from '../../ui/field.tsx'
import { Panel } from '../../ui/panel.tsx'
import * as copy from './copy.ts'
import { FileButton } from './file-button.tsx'
import { readHead } from './file-head.ts'
import { type Chosen, KINDS, ofBrowser, ofFolder, type Source, swapped } from './sources.ts'

const CODEC_FILE = /\.ya?ml$/i
/** IMPORT_LIMITS of the contract. */
const CODEC_FILE_BYTES_MAX = 16_384

export type OwnCodecs = { readonly file: string; readonly names: readonly string[] }

type FilesPanelProps = {
  readonly files: Chosen
  readonly onFiles: (files: Chosen) => void
  readonly codecs: OwnCodecs | undefined
  readonly onCodecs: (codecs: OwnCodecs | undefined) => void
  /** Whether the control plane has an import folder, whose files need no upload. */
  readonly hasFolder: boolean
}

export function FilesPanel({ files, onFiles, codecs, onCodecs, hasFolder }: FilesPanelProps) {
  const [faults, setFaults] = useState<readonly string[]>([])
  const [isOver, setOver] = useState(false)
  const [isBusy, setBusy] = useState(false)
  const take = async (given: readonly File[]) => {
    if (given.length === 0) return
    setBusy(true)
    try {
      const [lists, tables] = [given.filter(isCodecFile), given.filter((file) => !isCodecFile(file))]
      const { next, wrong } = await withChosen(files, tables)
      for (const file of lists) {
        const read = await readCodecs(file)
        if (typeof read === 'string') wrong.push(read)
        else onCodecs(read)
      }
      setFaults(wrong)
      onFiles(next)
    } catch (error) {
      setFaults([copy.files.unreadable((error as Error).message)])
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
    <Panel title={copy.files.title}>
      <div className="flex flex-col gap-3">
        {/* biome-ignore lint/a11y/noStaticElementInteractions: dropping is an alternative to the button beside it. */}
        <div
          onDragOver={(event) => {
            event.preventDefault()
            setOver(true)
          }}
          onDragLeave={() => setOver(false)}
          onDrop={drop}
          className={`flex flex-wrap items-center gap-3 rounded-panel border border-dashed p-4 ${isOver ? 'border-accent bg-info-bg' : 'border-line-strong'}`}
        >
          <p className="grow text-text-2">{copy.files.dropHint}</p>
          <FileButton multiple busy={isBusy} onFiles={(given) => void take(given)}>
            {copy.files.choose}
          </FileButton>
        </div>
        {hasFolder && <FolderFiles files={files} onFiles={onFiles} />}
        <ul className="flex flex-col gap-1">
          {KINDS.map((kind) => (
            <ChosenFile
              key={kind}
              kind={kind}
              source={files[kind]}
              onDrop={() => onFiles(Object.fromEntries(Object.entries(files).filter(([of]) => of !== kind)))}
            />
          ))}
          {codecs && (
            <li data-file="codecs" className="flex min-h-8 flex-wrap items-center gap-x-4">
              <Icon name="check" className="text-ok" />
              <span className="w-24 text-text-2">{copy.files.codecs}</span>
              <span className="min-w-0 break-words">
                {codecs.file}: {codecs.names.join(', ')}
              </span>
              <Button kind="quiet" icon="cross" onClick={() => onCodecs(undefined)}>
                {copy.files.remove(codecs.file)}
              </Button>
            </li>
          )}
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
        {canSwap(files) && (
          <div>
            <Button
              onClick={() => {
                setFaults([])
                onFiles(swapped(files))
              }}
            >
              {copy.files.swap}
            </Button>
          </div>
        )}
      </div>
    </Panel>
  )
}

const isCodecFile = ({ name }: File) => CODEC_FILE.test(name)

/** A file that was uploaded before keeps its kind. */
function canSwap({ properties, packages }: Chosen): boolean {
  return (
    properties !== undefined && packages !== undefined && properties.from !== 'upload' && packages.from !== 'upload'
  )
}

/** @returns the files with the given ones, and what is wrong with these or has to be verified */
async function withChosen(files: Chosen, given: readonly File[]): Promise<{ next: Chosen; wrong: string[] }> {
  const next: Chosen = { ...files }
  const wrong: string[] = []
  const seen = new Set<FileKind>()
  for (const file of given) {
    const head = await readHead(file)
    if (head.kind === undefined) wrong.push(copy.files.noted(file.name, head.fault))
    else if (seen.has(head.kind)) wrong.push(copy.files.duplicate(file.name, head.kind))
    else {
      const { kind, note, rows } = head
      seen.add(kind)
      next[kind] = ofBrowser(file, rows)
      if (note !== '') wrong.push(copy.files.noted(file.name, note))
      const other = kind === 'properties' ? 'packages' : 'properties'
      if (file.name.toLowerCase().includes(other)) wrong.push(copy.files.nameMismatch(file.name, kind))
    }
  }
  return { next, wrong }
}

/** @returns the list, or what is wrong with the file */
async function readCodecs(file: File): Promise<OwnCodecs | string> {
  if (file.size > CODEC_FILE_BYTES_MAX) return copy.files.codecsTooLarge(file.name, bytes(file.size))
  try {
    const { names } = await call('POST /api/v1/import-codecs', { body: { text: await file.text() } })
    return { file: file.name, names }
  } catch (error) {
    if (!(error instanceof ApiProblem)) throw error
    return copy.files.codecsInvalid(file.name, error.message)
  }
}

function FolderFiles({ files, onFiles }: { files: Chosen; onFiles: (files: Chosen) => void }) {
  const folder = useRoute('GET /api/v1/import-folder', {})
  if (folder.error) return <p className="text-warn">{copy.files.folderUnreadable(folder.error.message)}</p>
  const all = folder.data?.files ?? []
  return (
    <fieldset className="flex flex-col gap-2">
      <legend className="pb-1 font-medium text-small text-text-2">{copy.files.folder}</legend>
      <div className="grid gap-4 sm:grid-cols-2">
        {KINDS.map((kind) => {
          const chosen = files[kind]
          return (
            <Field key={kind} label={copy.files.inFolder(kind)}>
              {(wire) => (
                <Combobox
                  wire={wire}
                  value={chosen?.from === 'folder' ? chosen.name : ''}
                  options={all.map(({ path, bytes: size, changedAt, recent }) => ({
                    value: path,
                    hint: `${bytes(size)}, ${utc(changedAt)}${recent ? copy.files.recent : ''}`,
                  }))}
                  onChange={(path) => {
                    const found = all.find((file) => file.path === path)
                    if (found) onFiles({ ...files, [kind]: ofFolder(found) })
                  }}
                />
              )}
            </Field>
          )
        })}
      </div>
      {folder.data?.more && <p className="text-small text-text-3">{copy.files.folderMore}</p>}
    </fieldset>
  )
}

const PLACES: Readonly<Record<Source['from'], string>> = copy.files.places

type ChosenFileProps = { readonly kind: FileKind; readonly source: Source | undefined; readonly onDrop: () => void }

function ChosenFile({ kind, source, onDrop }: ChosenFileProps) {
  return (
    <li data-file={kind} data-from={source?.from} className="flex min-h-8 flex-wrap items-center gap-x-4">
      <Icon name={source ? 'check' : 'ring'} className={source ? 'text-ok' : 'text-text-3'} />
      <span className="w-24 text-text-2">{kind}</span>
      {source ? (
        <>
          <span className="min-w-0 break-words">{source.name}</span>
          <span className="text-text-2 tabular-nums">{bytes(source.bytes)}</span>
          {PLACES[source.from] !== '' && <span className="text-text-3">{PLACES[source.from]}</span>}
          <Button kind="quiet" icon="cross" onClick={onDrop}>
            {copy.files.remove(source.name)}
          </Button>
        </>
      ) : (
        <span className="text-text-3">{copy.files.notChosen}</span>
      )}
    </li>
  )
}
