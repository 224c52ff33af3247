'use client'
/** Components whose code is loaded when they are first shown. One that cannot be loaded leaves the rest of the page working. */
import { type ComponentType, lazy, useState } from 'react'
import { Boundary } from './boundary.tsx'
import * as copy from './copy.ts'
import { ErrorState } from './panel.tsx'
import { toast } from './toast.tsx'

/** Between attempts. While the network of a computer changes, requests fail for a moment. */
const RETRY_MS = [300, 1_500] as const

/** Loads code; a failed download is repeated. @throws Error in words, with the error of the last attempt as its cause */
export async function loadCode<T>(load: () => Promise<T>): Promise<T> {
  for (const ms of RETRY_MS) {
    try {
      return await load()
    } catch (error) {
      console.warn('code could not be loaded, trying again', error)
      await new Promise((resolve) => setTimeout(resolve, ms))
    }
  }
  return await load().catch((cause: unknown) => {
    throw new Error(copy.late.notLoaded, { cause })
  })
}

/**
 * As `lazy` of React. When the code cannot be loaded, or fails, a layer (with `onClose`) is closed with a message, and
 * opening it tries again; anything else shows the error and a button in its place.
 */
export function late<P extends object>(load: () => Promise<ComponentType<P>>): ComponentType<P> {
  const create = () => lazy(async () => ({ default: await loadCode(load) }))
  // The result of a component that failed is final: another one is needed to try again.
  let latest = create()
  return function Late(props: P) {
    const [Code, setCode] = useState(() => latest)
    const { onClose } = props as { readonly onClose?: () => void }
    const onError = (error: unknown) => {
      latest = create()
      setCode(() => latest)
      if (!onClose) return
      onClose()
      toast({ message: copy.late.failed(error instanceof Error ? error.message : String(error)), level: 'crit' })
    }
    return (
      <Boundary
        name="a part of the page"
        onError={onError}
        fallback={(error, retry) => (onClose ? null : <ErrorState error={error} onRetry={retry} />)}
      >
        <Code {...props} />
      </Boundary>
    )
  }
}
