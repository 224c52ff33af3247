'use client'
/** The request a page starts with, from the URL or the last draft of the tab, and its copy in the URL. */
import { useEffect, useRef, useState } from 'react'
import { ApiProblem } from '../../lib/problem.ts'
import { useSetUrl } from '../../lib/url.ts'
import { isWrite } from './catalogue.ts'
import * as copy from './copy.ts'
import type { Draft } from './request.ts'
import { encodeShare, openShare, SHARE_CHARS_MAX } from './share.ts'
import { type KeptEdits, keptEdits } from './unsaved.ts'

const URL_AFTER_MS = 300

export type Opened = {
  readonly draft: Draft | undefined
  /** Text of the JSON editor while it is not a valid request. */
  readonly text: string | undefined
  readonly run: boolean
  /** When this draft of the tab was saved; undefined for a request from a link. */
  readonly keptAt: string | undefined
  readonly faults: readonly string[]
}

/** The initial request, determined once, before anything is rendered. */
export function useOpened(): Opened | undefined {
  const [opened, setOpened] = useState<Opened>()
  useEffect(() => {
    void openedBy(new URLSearchParams(location.search)).then(setOpened)
  }, [])
  return opened
}

/** Opens the request in the URL, or restores the last draft of this tab. */
async function openedBy(search: URLSearchParams): Promise<Opened> {
  const q = search.get('q')
  const [kept, shared] = await Promise.all([keptOrFault(), q === null ? undefined : openShare(q)])
  const none = { draft: undefined, text: undefined, run: false, keptAt: undefined }
  if (!shared) {
    if (typeof kept === 'string') return { ...none, faults: [copy.page.draftUnreadable(kept)] }
    return kept ? { ...kept, run: false, keptAt: kept.at, faults: [] } : { ...none, faults: [] }
  }
  if (!shared.ok) return { ...none, faults: [copy.page.linkUnreadable(shared.reason)] }
  const { draft } = shared
  // The URL follows the draft: JSON text that is not valid yet belongs to it only if both have the same draft.
  const isOwn = typeof kept === 'object' && JSON.stringify(kept.draft) === JSON.stringify(draft)
  return {
    draft,
    text: isOwn ? kept.text : undefined,
    // A link never runs a write.
    run: search.get('run') === '1' && !isWrite(draft.command),
    keptAt: undefined,
    faults: [],
  }
}

async function keptOrFault(): Promise<KeptEdits | string | undefined> {
  try {
    return await keptEdits()
  } catch (error) {
    if (error instanceof ApiProblem) return error.message
    throw error
  }
}

/** Keeps the request in the URL, for reloads, bookmarks and other tabs. */
export function useDraftInUrl(draft: Draft, fromLink: boolean): void {
  const set = useSetUrl()
  const text = JSON.stringify(draft)
  const first = useRef(text)
  useEffect(() => {
    if (!fromLink && text === first.current) return
    let isGone = false
    const timer = setTimeout(async () => {
      const q = await encodeShare(JSON.parse(text) as Draft)
      if (isGone) return
      if (q.length <= SHARE_CHARS_MAX) set({ q, run: null })
      // Too long for the URL. A short link that was opened stays valid until the request changes.
      else if (text === first.current) set({ run: null })
      else set({ q: null, run: null })
    }, URL_AFTER_MS)
    return () => {
      isGone = true
      clearTimeout(timer)
    }
  }, [text, fromLink, set])
}
