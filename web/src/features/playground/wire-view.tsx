'use client'
/** A frame byte by byte: each part outlined and named; what is pointed at in the bytes or in the list lights up in both. */
import { type FramePart, outlineFrame } from '@vacancy/shared/wire'
import clsx from 'clsx'
import { useState } from 'react'
import { counted } from '../../lib/format.ts'
import { Button } from '../../ui/button.tsx'
import { CopyButton } from '../../ui/copy-button.tsx'
import { Field, TextArea } from '../../ui/field.tsx'
import { bytesOfHex, hexOf, type Pasted, requestOfFrame } from './request.ts'

const SHOWN_BYTES = 2_048

type WireProps = {
  readonly label: string
  readonly bytes: Uint8Array
  /** Field that is lit from outside, as the form's is. */
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
          {label}, {counted(bytes.length, 'byte')}
          {bytes.length > SHOWN_BYTES && `, the first ${SHOWN_BYTES} shown`}
          {note && ` · ${note}`}
        </span>
        <CopyButton text={() => hexOf(bytes)} label={`Copy: ${label} as hex`} />
      </figcaption>
      {/* biome-ignore lint/a11y/noStaticElementInteractions: pointing only lights up what the list below says in words. */}
      <div
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard.
        tabIndex={0}
        className="max-h-56 overflow-auto rounded-control border border-line bg-sunken p-2 font-mono text-small leading-6"
        onMouseLeave={() => light(undefined)}
      >
        {parts.map((part) => (
          // biome-ignore lint/a11y/noStaticElementInteractions: pointing only lights up what the list below says in words.
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
        <table aria-label={`Parts of ${label}`} className="w-full text-table">
          <thead className="text-start text-small text-text-3">
            <tr>
              <th scope="col" className="pe-3 text-end font-normal">
                at
              </th>
              <th scope="col" className="pe-3 text-end font-normal">
                bytes
              </th>
              <th scope="col" className="pe-3 text-start font-normal">
                part
              </th>
              <th scope="col" className="text-start font-normal">
                value
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

/** Bytes of a log or a capture become a request. */
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
        label="Read a frame"
        hint="Paste hexadecimal, with or without blanks."
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
      {pasted && !pasted.ok && bytes && <WireView label="Pasted bytes" bytes={bytes} />}
      {pasted?.ok && (
        <Button
          className="self-start"
          onClick={() => {
            onRequest(pasted.draft)
            setText('')
          }}
        >
          Use this {pasted.draft.command}
        </Button>
      )}
    </div>
  )
}
