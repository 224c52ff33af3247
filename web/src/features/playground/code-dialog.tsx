'use client'
/** The request as code, with the commands that run it. */
import { useState } from 'react'
import { CodeView } from '../../ui/code-view.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { ViewTabs } from '../../ui/tabs.tsx'
import * as copy from './copy.ts'

export type Code = {
  readonly kind: string
  readonly text: string
  /** Commands beside it; '' for none. */
  readonly setup: string
}

type CodeProps = { readonly codes: readonly Code[]; readonly onClose: () => void }

export function CodeDialog({ codes, onClose }: CodeProps) {
  const [kind, setKind] = useState(codes[0]?.kind ?? '')
  const shown = codes.find((code) => code.kind === kind) ?? codes[0]
  if (!shown) return null
  return (
    <Dialog open onClose={onClose} title={copy.code.title} wide>
      <ViewTabs
        label={copy.code.label}
        value={shown.kind}
        onChange={setKind}
        tabs={codes.map((code) => ({ id: code.kind, label: code.kind }))}
      >
        <div className="flex min-w-0 flex-col gap-3">
          {shown.setup !== '' && (
            <>
              <p className="text-text-2">{copy.code.setup}</p>
              <CodeView label={copy.code.commands} code={shown.setup} />
            </>
          )}
          <CodeView label={copy.code.of(shown.kind)} code={shown.text} lines={24} />
        </div>
      </ViewTabs>
    </Dialog>
  )
}
