'use client'
import { type FormEvent, useEffect, useState } from 'react'
import { ApiProblem } from '../../lib/api.ts'
import * as copy from '../../lib/copy.ts'

/** Submits a form one request at a time, and waits after too many attempts. */
export function useSubmit(send: () => Promise<void>) {
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<ApiProblem>()
  const [waitSeconds, setWaitSeconds] = useState(0)
  useEffect(() => {
    if (waitSeconds <= 0) return
    const timer = setTimeout(() => setWaitSeconds(waitSeconds - 1), 1_000)
    return () => clearTimeout(timer)
  }, [waitSeconds])
  const submit = async (event: FormEvent) => {
    event.preventDefault()
    if (busy || waitSeconds > 0) return
    setBusy(true)
    setError(undefined)
    try {
      await send()
    } catch (failure) {
      if (!(failure instanceof ApiProblem)) throw failure
      setError(failure)
      setWaitSeconds(Number(failure.more['retryAfterSeconds'] ?? 0))
    } finally {
      setBusy(false)
    }
  }
  return { busy, error, waitSeconds, submit }
}

export function SubmitProblem({ error, waitSeconds }: { error: ApiProblem | undefined; waitSeconds: number }) {
  if (!error) return null
  if (error.status === 429) {
    // After the wait there is nothing to show; during it the button counts down.
    if (waitSeconds <= 0) return null
    return (
      <p role="alert" className="text-warn">
        {copy.submit.tooManyAttempts}
      </p>
    )
  }
  return (
    <div role="alert" className="text-crit">
      <p>{error.message}</p>
      {error.hint && <p className="text-small text-text-2">{error.hint}</p>}
    </div>
  )
}
