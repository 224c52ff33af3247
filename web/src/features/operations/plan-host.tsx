'use client'
/** Opens the plan dialog for `?plan=` on every page. The dialog is loaded on demand. */

import type { PlanRequest } from '@vacancy/shared/contract'
import { Suspense, useCallback, useEffect, useState } from 'react'
import { useUrlParam } from '../../lib/url.ts'
import { late } from '../../ui/late.tsx'
import { toast } from '../../ui/toast.tsx'
import { formatPlanLink, parsePlanLink } from './plan-link.ts'
import * as copy from './tray-copy.ts'

const PlanDialog = late(async () => (await import('./plan-dialog.tsx')).PlanDialog)

/** Opens a plan through the URL, so that it can be shared and left with the back button. */
export function useOpenPlan(): (request: PlanRequest) => void {
  const [, setLink] = useUrlParam('plan')
  return useCallback((request: PlanRequest) => setLink(formatPlanLink(request), { push: true }), [setLink])
}

const SHOWN_MAX = 60

export function PlanHost() {
  const [link, setLink] = useUrlParam('plan')
  const request = parsePlanLink(link)
  const isWrong = link !== '' && request === undefined
  // Not rendered on the server.
  const [isMounted, setMounted] = useState(false)
  useEffect(() => setMounted(true), [])
  useEffect(() => {
    if (!isWrong) return
    toast({ message: copy.planLink.invalid(link.slice(0, SHOWN_MAX)), level: 'warn' })
    setLink('')
  }, [isWrong, link, setLink])
  if (!request || !isMounted) return null
  return (
    <Suspense>
      <PlanDialog request={request} onRequest={(next) => setLink(formatPlanLink(next))} onClose={() => setLink('')} />
    </Suspense>
  )
}
