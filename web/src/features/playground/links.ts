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

/** How the page shows a result, for links to it. */
export function shownNow(): { readonly [name: string]: string } {
  const search = new URLSearchParams(location.search)
  return Object.fromEntries(
    ['view', 'sort'].flatMap((name) => (search.has(name) ? [[name, search.get(name) ?? '']] : [])),
  )
}

/** Copies a link that opens the request with its view and order, and runs it if it is a read. */
export async function copyLink(draft: Draft): Promise<void> {
  const isRead = !isWrite(draft.command)
  const path = await pathTo(draft, isRead, shownNow())
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

async function pathTo(draft: Draft, run: boolean, shown = {}): Promise<string | undefined> {
  try {
    return routes.playground({ q: await shareOf(draft), ...shown, ...(run && { run: '1' }) })
  } catch (error) {
    if (!(error instanceof ApiProblem)) throw error
    toast({ message: `${error.message} ${error.hint}`, level: 'crit' })
    return undefined
  }
}
