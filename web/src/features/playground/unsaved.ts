'use client'
/**
 * Saves the draft of each tab on the control plane and restores it after a crash or reload
 * (docs/design/control-plane.md#playground). The browser stores only an id of the tab; without storage the draft is not
 * found again.
 */
import { useEffect, useRef, useState } from 'react'
import { ApiProblem, call } from '../../lib/api.ts'
import type { Draft } from './request.ts'
import { requestOf } from './share.ts'

export type Edits = {
  readonly draft: Draft
  /** Text of the JSON editor while it is not a valid request. */
  readonly text: string | undefined
}

export type KeptEdits = Edits & { readonly at: string }

const KEEP_MS = 2_000
const TAB_KEY = 'vacancy-tab'
const TAB_BYTES = 12

/** Id that this tab saves under, and the id of the draft to restore. */
type Tab = { readonly id: string; before: string | undefined }

let own: Promise<Tab> | undefined

function tabOf(): Promise<Tab> {
  own ??= nameTab()
  return own
}

/** A duplicated tab has the id of its original, which still saves under it, and takes a new one. */
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

/** Locks the id until the tab closes. Without locks, which need TLS, duplicates share an id and the last save wins. */
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
    // Storage is disabled: a reloaded tab counts as a new one.
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

/** The last draft of this tab. @throws ApiProblem */
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

/** The save of the page that was left. Reopening the page waits for it. */
let leaving: Promise<void> = Promise.resolve()

/** Saves changes every two seconds and when the page is left. @returns why saving fails; '' when it works */
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
        // A rejected draft is not sent again until it changes; other failures are retried.
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
