'use client'
/** A frame byte by byte, with its parts named. Hovering a part highlights it in the bytes and in the list. */
import { type FramePart, outlineFrame } from '@vacancy/shared/wire'
import clsx from 'clsx'
import { useState } from 'react'
import { Button } from '../../ui/button.tsx'
import { CopyButton } from '../../ui/copy-button.tsx'
import { Field, TextArea } from '../../ui/field.tsx'
import * as copy from './copy.ts'
import { bytesOfHex, hexOf, type Pasted, requestOfFrame } from './request.ts'

const SHOWN_BYTES = 2_048

type WireProps = {
  readonly label: string
  readonly bytes: Uint8Array
  /** Field highlighted from outside, by the form. */
  readonly lit?: string
  readonly onLight?: (field: string) => void
  readonly note?: string
}

export function WireView({ label, bytes, lit = '', onLight, note }: WireProps) {
  const [own, setOwn] = useState<FramePart>()
  const shown = bytes.subarray(0, SHOWN_BYTES)
  const parts = outlineFrame(shown)
  const isLit = (part: FramePart) => (own ? own.from === part.from : lit !== '' && part.field === lit)
  const light = (part: FramePart | undefined) => {
    setOwn(part)
    onLight?.(part?.field ?? '')
  }
  return (
    <figure className="min-w-0">
      <figcaption className="flex flex-wrap items-center justify-between gap-2 pb-1 text-small text-text-3">
        <span>
          {copy.wire.caption(label, bytes.length)}
          {bytes.length > SHOWN_BYTES && copy.wire.cut(SHOWN_BYTES)}
          {note && ` · ${note}`}
        </span>
        <CopyButton text={() => hexOf(bytes)} label={copy.wire.copyHex(label)} />
      </figcaption>
      {/* biome-ignore lint/a11y/noStaticElementInteractions: hovering only highlights what the list below shows as text. */}
      <div
        // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable content must be reachable by keyboard.
        tabIndex={0}
        className="max-h-56 overflow-auto rounded-control border border-line bg-sunken p-2 font-mono text-small leading-6"
        onMouseLeave={() => light(undefined)}
      >
        {parts.map((part) => (
          // biome-ignore lint/a11y/noStaticElementInteractions: hovering only highlights what the list below shows as text.
          <span
            key={part.from}
            data-field={part.field || undefined}
            data-lit={isLit(part) || undefined}
            onMouseEnter={() => light(part)}
            className={clsx(
              'me-1 whitespace-pre-wrap break-all rounded-[2px] outline-1 -outline-offset-1',
              isLit(part)
                ? 'bg-accent text-on-accent outline-accent'
                : part.field
                  ? 'outline-line-strong'
                  : 'text-text-3 outline-line',
              'outline',
            )}
          >
            {Array.from(shown.subarray(part.from, part.to), (byte) => byte.toString(16).padStart(2, '0')).join(' ')}
          </span>
        ))}
      </div>
      <div className="max-h-72 overflow-auto pt-2">
        <table aria-label={copy.wire.parts(label)} className="w-full text-table">
          <thead className="text-start text-small text-text-3">
            <tr>
              <th scope="col" className="pe-3 text-end font-normal">
                {copy.wire.offset}
              </th>
              <th scope="col" className="pe-3 text-end font-normal">
                {copy.wire.bytes}
              </th>
              <th scope="col" className="pe-3 text-start font-normal">
                {copy.wire.part}
              </th>
              <th scope="col" className="text-start font-normal">
                {copy.wire.value}
              </th>
            </tr>
          </thead>
          <tbody>
            {parts.map((part) => (
              <tr
                key={part.from}
                onMouseEnter={() => light(part)}
                onMouseLeave={() => light(undefined)}
                className={isLit(part) ? 'bg-accent text-on-accent' : undefined}
              >
                <td className="num pe-3">{part.from}</td>
                <td className="num pe-3">{part.to - part.from}</td>
                <td className="pe-3">{part.description}</td>
                <td className="break-all font-mono">{part.value}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </figure>
  )
}

/** Decodes pasted bytes of a log or capture into a request. */
export function PasteFrame({
  onRequest,
}: {
  readonly onRequest: (draft: Extract<Pasted, { ok: true }>['draft']) => void
}) {
  const [text, setText] = useState('')
  const pasted = text.trim() === '' ? undefined : requestOfFrame(text)
  const bytes = bytesOfHex(text)
  return (
    <div className="flex flex-col gap-2 pt-3">
      <Field
        label={copy.wire.decode}
        hint={copy.wire.decodeHint}
        error={pasted && !pasted.ok ? pasted.reason : undefined}
      >
        {(wire) => (
          <TextArea
            {...wire}
            rows={2}
            spellCheck={false}
            className="font-mono"
            value={text}
            onChange={({ target }) => setText(target.value)}
          />
        )}
      </Field>
      {pasted && !pasted.ok && bytes && <WireView label={copy.wire.pasted} bytes={bytes} />}
      {pasted?.ok && (
        <Button
          className="self-start"
          onClick={() => {
            onRequest(pasted.draft)
            setText('')
          }}
        >
          {copy.wire.use(pasted.draft.command)}
        </Button>
      )}
    </div>
  )
}
