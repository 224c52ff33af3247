'use client'
/** Opens the plan dialog for what `?plan=` asks, on every page. The dialog itself is loaded when one is asked for. */

import type { PlanRequest } from '@vacancy/shared/contract'
import dynamic from 'next/dynamic'
import { useCallback, useEffect } from 'react'
import { useUrlParam } from '../../lib/url.ts'
import { toast } from '../../ui/toast.tsx'
import { formatPlanLink, parsePlanLink } from './plan-link.ts'

const PlanDialog = dynamic(() => import('./plan-dialog.tsx').then((module) => module.PlanDialog), { ssr: false })

/** Opens a plan: the address gets it, so that it can be shared and gone back from. */
export function useOpenPlan(): (request: PlanRequest) => void {
  const [, setLink] = useUrlParam('plan')
  return useCallback((request: PlanRequest) => setLink(formatPlanLink(request), { push: true }), [setLink])
}

const SHOWN_MAX = 60

export function PlanHost() {
  const [link, setLink] = useUrlParam('plan')
  const request = parsePlanLink(link)
  const isWrong = link !== '' && request === undefined
  useEffect(() => {
    if (!isWrong) return
    toast({ message: `The address asks for a plan that cannot be read: ${link.slice(0, SHOWN_MAX)}`, level: 'warn' })
    setLink('')
  }, [isWrong, link, setLink])
  if (!request) return null
  return (
    <PlanDialog request={request} onRequest={(next) => setLink(formatPlanLink(next))} onClose={() => setLink('')} />
  )
}
