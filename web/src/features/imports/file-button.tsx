'use client'
import { type ReactNode, useId, useRef } from 'react'
import { Button } from '../../ui/button.tsx'

type FileButtonProps = {
  readonly children: ReactNode
  readonly onFiles: (files: readonly File[]) => void
  readonly multiple?: boolean
  readonly why?: string | undefined
  readonly busy?: boolean
}

/** A button that opens the file picker. Tests fill the hidden input beside it. */
export function FileButton({ children, onFiles, multiple = false, why, busy = false }: FileButtonProps) {
  const input = useRef<HTMLInputElement>(null)
  const id = useId()
  return (
    <>
      <Button icon="upload" why={why} busy={busy} onClick={() => input.current?.click()}>
        {children}
      </Button>
      <input
        ref={input}
        id={id}
        type="file"
        hidden
        multiple={multiple}
        tabIndex={-1}
        onChange={(event) => {
          onFiles([...(event.target.files ?? [])])
          // So that the same file can be chosen again.
          event.target.value = ''
        }}
      />
    </>
  )
}
