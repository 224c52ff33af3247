'use client'
import { useMemo, useState } from 'react'
import { bytes as size } from '../../lib/format.ts'
import { saveFile } from '../../lib/save-file.ts'
import { Button } from '../../ui/button.tsx'
import { CodeView } from '../../ui/code-view.tsx'
import { ViewTabs } from '../../ui/tabs.tsx'
import * as copy from './copy.ts'
import { bytesOf, fileName, hexOf, indentJson, jsonFault, SHOWN_BYTES, textOf } from './payload.ts'

type PayloadProps = {
  readonly topic: string
  readonly job: string
  /** Base64; null for none, undefined when it is not kept. */
  readonly data: string | null | undefined
}

const VIEWS = [
  { id: 'json', label: copy.payload.json },
  { id: 'text', label: copy.payload.text },
  { id: 'hex', label: copy.payload.hex },
] as const

/** The payload of a job as JSON, text or bytes, at most 256 KiB of it. */
export function PayloadView({ topic, job, data }: PayloadProps) {
  const decoded = useMemo(() => (data ? decode(data) : undefined), [data])
  const [chosen, setChosen] = useState<string>()
  if (data === undefined) return <Note text={copy.payload.gone} />
  if (data === null) return <Note text={copy.payload.none} />
  if (!decoded) return <Note text={copy.payload.empty} />
  const { bytes, text, fault, isCut } = decoded
  const view = chosen ?? (text === undefined ? 'hex' : fault === undefined ? 'json' : 'text')
  const extension = text === undefined ? 'bin' : fault === undefined ? 'json' : 'txt'
  const [shown, whole] = [size(SHOWN_BYTES), size(bytes.length)]
  return (
    <ViewTabs
      label={copy.payload.label}
      value={view}
      onChange={setChosen}
      tabs={VIEWS}
      actions={
        <Button
          icon="download"
          onClick={() => saveFile(fileName([topic, job], extension), 'application/octet-stream', bytes)}
        >
          {copy.payload.download(whole)}
        </Button>
      }
    >
      <div className="flex flex-col gap-2">
        {isCut && <Note text={view === 'json' ? copy.payload.cutJson(shown, whole) : copy.payload.cut(shown, whole)} />}
        <Shown view={view} decoded={decoded} />
      </div>
    </ViewTabs>
  )
}

type Decoded = {
  readonly bytes: Uint8Array<ArrayBuffer>
  /** Of the part that is shown; undefined when that is not UTF-8. */
  readonly text: string | undefined
  /** Why it is not JSON; undefined for JSON, and for JSON that is cut. */
  readonly fault: string | undefined
  readonly isCut: boolean
}

function decode(data: string): Decoded {
  const bytes = bytesOf(data)
  const isCut = bytes.length > SHOWN_BYTES
  const text = textOf(bytes.subarray(0, SHOWN_BYTES), isCut)
  const whole = isCut ? textOf(bytes) : text
  return { bytes, text, isCut, fault: whole === undefined ? '' : jsonFault(whole) }
}

function Shown({ view, decoded }: { readonly view: string; readonly decoded: Decoded }) {
  const { bytes, text, fault, isCut } = decoded
  if (view === 'hex')
    return <CodeView label={copy.payload.hex} code={hexOf(bytes.subarray(0, SHOWN_BYTES))} hideLabel />
  if (text === undefined) return <Note text={copy.payload.notText} />
  if (view === 'text') return <CodeView label={copy.payload.text} code={text} hideLabel />
  if (fault !== undefined) return <Note text={copy.payload.notJson(fault)} />
  return <CodeView label={copy.payload.json} code={isCut ? text : indentJson(text)} hideLabel />
}

function Note({ text }: { readonly text: string }) {
  return <p className="break-words text-small text-text-2">{text}</p>
}
