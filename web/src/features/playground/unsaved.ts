'use client'
/**
 * What is being written stays with the control plane, by tab, and is there again after a crash or a reload of the tab
 * (docs/design/control-plane.md#playground). The browser keeps no more than the tab's own name; one that may keep
 * nothing only forgets that.
 */
import { useEffect, useRef, useState } from 'react'
import { ApiProblem, call } from '../../lib/api.ts'
import type { Draft } from './request.ts'
import { requestOf } from './share.ts'

export type Edits = {
  readonly draft: Draft
  /** Of the JSON editor, while it is no request. */
  readonly text: string | undefined
}

export type KeptEdits = Edits & { readonly at: string }

const KEEP_MS = 2_000
const TAB_KEY = 'vacancy-tab'
const TAB_BYTES = 12

/** Where edits of this tab are kept, and under which name those lie that it begins with. */
type Tab = { readonly id: string; before: string | undefined }

let own: Promise<Tab> | undefined

function tabOf(): Promise<Tab> {
  own ??= nameTab()
  return own
}

/** A copy of a tab has the name of the one that it was made of, which still writes under it: it takes a new one. */
async function nameTab(): Promise<Tab> {
  const before = remembered() ?? undefined
  if (before !== undefined && (await isOurs(before))) return { id: before, before }
  const id = Array.from(crypto.getRandomValues(new Uint8Array(TAB_BYTES)), (byte) =>
    byte.toString(16).padStart(2, '0'),
  ).join('')
  remember(id)
  await isOurs(id)
  return { id, before }
}

/** Held until the tab goes. Without locks, which need a page over TLS, two copies write under one name: the last wins. */
function isOurs(id: string): Promise<boolean> {
  if (!navigator.locks) return Promise.resolve(true)
  return new Promise((resolve, reject) => {
    const held = navigator.locks.request(`${TAB_KEY} ${id}`, { ifAvailable: true }, (lock) => {
      resolve(lock !== null)
      return lock === null ? undefined : new Promise<void>(() => {})
    })
    held.catch(reject)
  })
}

function remembered(): string | null {
  try {
    return sessionStorage.getItem(TAB_KEY)
  } catch {
    // Storage is switched off: a tab that is loaded anew is then a new one.
    return null
  }
}

function remember(id: string): void {
  try {
    sessionStorage.setItem(TAB_KEY, id)
  } catch {
    // As above.
  }
}

/** What was last written in this tab. @throws ApiProblem */
export async function keptEdits(): Promise<KeptEdits | undefined> {
  await leaving
  const { before } = await tabOf()
  if (before === undefined) return undefined
  const { request } = await call('GET /api/v1/unsaved-requests/{id}', { params: { id: before } })
  if (!request) return undefined
  const { shard, node, command, fields, text, at } = request
  const read = requestOf({ s: shard, n: node ?? '', c: command, f: fields })
  return read.ok ? { draft: read.draft, text: text ?? undefined, at } : undefined
}

/** The last edits of a page that was left are on their way: whoever comes back at once waits for them. */
let leaving: Promise<void> = Promise.resolve()

/** Keeps what changes, every two seconds and when the page is left. @returns why it is not kept; '' when it is */
export function useKeptEdits(edits: Edits): string {
  const [fault, setFault] = useState('')
  const now = JSON.stringify(edits)
  const latest = useRef(now)
  latest.current = now
  const kept = useRef(now)
  useEffect(() => {
    let sending: Promise<void> | undefined
    const send = async () => {
      const text = latest.current
      if (text === kept.current) return
      try {
        await put(JSON.parse(text) as Edits)
        kept.current = text
        setFault('')
      } catch (error) {
        if (!(error instanceof ApiProblem)) throw error
        // What is refused stays refused until it is changed; where nobody answered it is tried again.
        if (error.status >= 400 && error.status < 500) kept.current = text
        setFault(error.message)
      }
    }
    const keep = () => {
      sending ??= send().finally(() => {
        sending = undefined
      })
      return sending
    }
    const timer = setInterval(() => void keep(), KEEP_MS)
    return () => {
      clearInterval(timer)
      leaving = (sending ?? Promise.resolve()).then(keep)
    }
  }, [])
  return fault
}

async function put({ draft, text = null }: { readonly draft: Draft; readonly text?: string | null | undefined }) {
  const tab = await tabOf()
  const { shard, node, command, fields } = draft
  const body = { shard, node: node || null, command, fields: { ...fields } as never, text }
  await call('PUT /api/v1/unsaved-requests/{id}', { params: { id: tab.id }, body })
  tab.before = tab.id
}
