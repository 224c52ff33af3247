/** Whether a component can do its work, from its own `/ready`, and what it needs on this machine. */

import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { Agent } from 'node:http'
import { type HttpFailure, type HttpResponse, requestHttp } from '@vacancy/shared/node'
import type { Component } from './plan.ts'

/** A component that takes longer is busy loading. */
const ANSWER_MS_MAX = 2_000
const ANSWER_BYTES_MAX = 1 << 20
const PAGE_BYTES = 4096
const TEXT_MAX = 500

export type Ready = {
  readonly isReady: boolean
  /** Why it is not ready; its role when it is a node that serves. */
  readonly text: string
}

/** The text of a node that leads its shard, and the beginning of that of a component that is still starting. */
export const LEADS = 'leads'
export const STARTING = 'nothing listens on'

export async function readinessOf(component: Component): Promise<Ready> {
  if (component.kind === 'queue-sample') return { isReady: true, text: '' }
  if (component.kind === 'control-plane') return await fromStatus(component, '/health')
  if (component.kind === 'node') return await readinessOfNode(component)
  return await fromStatus(component, '/ready')
}

async function fromStatus(component: Component, path: string): Promise<Ready> {
  const { status, text } = await get(component, path)
  if (status === 200) return { isReady: true, text: '' }
  return { isReady: false, text: status === 0 ? text : reasonsIn(text) || `HTTP ${status}` }
}

/** A node serves when its health names a role. */
async function readinessOfNode(node: Component): Promise<Ready> {
  const health = await get(node, '/healthz')
  if (health.status === 200 && health.text === 'active_leader') return { isReady: true, text: LEADS }
  if (health.status === 200 && health.text.startsWith('active')) return { isReady: true, text: 'follows' }
  if (health.status === 0) return { isReady: false, text: health.text }
  const [ready, cluster] = await Promise.all([get(node, '/ready'), get(node, '/cluster/info')])
  const why = at(at(parsed(cluster.text), 'bootstrap'), 'why')
  return { isReady: false, text: textOf(why) || reasonsIn(ready.text) || health.text }
}

/** The leader and the term as a node sees them; undefined without a leader. */
export async function leaderSeenBy(node: Component): Promise<{ name: string; term: number } | undefined> {
  const { status, text } = await get(node, '/cluster/info')
  const info = parsed(text)
  const name = textOf(at(info, 'leader_id'))
  return status === 200 && name !== '' ? { name, term: Number(at(info, 'term')) } : undefined
}

/**
 * The reasons of a `/ready` body as one text. Programs differ in the names of their fields, and some give plain texts.
 */
export function reasonsIn(text: string): string {
  const reasons = at(parsed(text), 'reasons')
  return (Array.isArray(reasons) ? reasons : [])
    .map((each: unknown) => {
      if (typeof each === 'string') return each
      const [message, detail, name, reason] = ['message', 'detail', 'name', 'reason'].map((key) =>
        textOf(at(each, key)),
      )
      return message || detail || (name || reason || '').replaceAll('_', ' ')
    })
    .filter((each) => each !== '')
    .join('; ')
    .slice(0, TEXT_MAX)
}

/** Undefined for text that is not JSON, such as the cut answer of a process that stops. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function at(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null ? (value as { readonly [key: string]: unknown })[key] : undefined
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** A running quick start looks at its nodes all the time. */
const agent = new Agent({ keepAlive: true })

/** @returns status 0 without an answer, with the reason */
async function get({ api: { host, port } }: Component, path: string): Promise<{ status: number; text: string }> {
  const options = { method: 'GET', headers: {}, timeoutMs: ANSWER_MS_MAX, bytesMax: ANSWER_BYTES_MAX }
  const ask = (from: Agent | false) =>
    new Promise<HttpResponse | HttpFailure>((resolve) => {
      requestHttp(`http://${host}:${port}${path}`, { ...options, agent: from }, resolve)
    })
  let result = await ask(agent)
  if ('why' in result && result.why === 'connection' && result.isStale) result = await ask(false)
  if (!('why' in result)) return { status: result.status, text: result.body.toString().trim() }
  const { code, message } = result.error
  if (result.why === 'timeout')
    return { status: 0, text: `no answer on ${host}:${port} within ${ANSWER_MS_MAX / 1000} s` }
  return { status: 0, text: code === 'ECONNREFUSED' ? `${STARTING} ${host}:${port} yet` : (code ?? message) }
}

/** Resident memory of a process in bytes; undefined when it has ended. */
export function residentBytes(pid: number): number | undefined {
  if (process.platform === 'linux') {
    try {
      return Number(readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1]) * PAGE_BYTES
    } catch {
      return undefined
    }
  }
  const kibibytes = Number(spawnSync('ps', ['-o', 'rss=', '-p', String(pid)], { encoding: 'utf8' }).stdout)
  return kibibytes > 0 ? kibibytes * 1024 : undefined
}
