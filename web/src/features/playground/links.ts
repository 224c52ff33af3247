'use client'
/** Copies a request as a link or opens it in the editor. Errors are shown as notifications. */
import { ApiProblem } from '../../lib/api.ts'
import { navigate } from '../../lib/navigate.ts'
import { routes } from '../../lib/routes.ts'
import { copyText } from '../../ui/copy-button.tsx'
import { toast } from '../../ui/toast.tsx'
import { isWrite } from './catalogue.ts'
import * as copy from './copy.ts'
import type { Draft } from './request.ts'
import { shareOf } from './share.ts'

/** Copies a link that opens the request, and runs it if it is a read. */
export async function copyLink(draft: Draft): Promise<void> {
  const isRead = !isWrite(draft.command)
  const path = await pathTo(draft, isRead)
  if (path === undefined) return
  const link = location.origin + path
  if (!(await copyText(link))) toast({ message: copy.links.blocked(link), level: 'warn' })
  else if (isRead) toast({ message: copy.links.read })
  else toast({ message: copy.links.write })
}

export async function openInPlayground(draft: Draft, { run = false } = {}): Promise<void> {
  const path = await pathTo(draft, run)
  if (path !== undefined) navigate(path)
}

async function pathTo(draft: Draft, run: boolean): Promise<string | undefined> {
  try {
    return routes.playground({ q: await shareOf(draft), ...(run && { run: '1' }) })
  } catch (error) {
    if (!(error instanceof ApiProblem)) throw error
    toast({ message: `${error.message} ${error.hint}`, level: 'crit' })
    return undefined
  }
}
