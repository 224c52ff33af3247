'use client'
/** The request as runnable code. */
import type { PlaygroundAnswer } from '@vacancy/shared/contract'
import { curlOf, EDGE_TARGET, goOf, proxyCurlOf, typescriptOf, typescriptSetupOf } from '@vacancy/shared/snippets'
import { useState } from 'react'
import { useRoute } from '../../lib/use-route.ts'
import { copyText } from '../../ui/copy-button.tsx'
import { toast } from '../../ui/toast.tsx'
import type { Code } from './code-dialog.tsx'
import * as copy from './copy.ts'
import { type Compiled, type Draft, hexOf, jsonOf } from './request.ts'

type CopyKind = 'TypeScript' | 'curl' | 'curl (proxy)' | 'Go' | 'JSON' | 'hex'

/** One key copies it in the last used language. */
export function useCopies(
  draft: Draft,
  compiled: Compiled,
  { shard, proxies }: Pick<PlaygroundAnswer, 'shard' | 'proxies'>,
) {
  const [last, setLast] = useState<CopyKind>('TypeScript')
  const settings = useRoute('GET /api/v1/settings', {}, { group: ['settings'], staleTime: 60_000 })
  const nodes = (shard?.nodes ?? []).flatMap(({ id, tcp }) =>
    tcp !== null && (draft.node === '' || draft.node === EDGE_TARGET || draft.node === id) ? [tcp] : [],
  )
  const why = compiled.ok ? undefined : compiled.reason
  const textOf = (kind: CopyKind): string => {
    if (!compiled.ok) return ''
    const { command } = draft
    const { fields, frame } = compiled
    if (kind === 'TypeScript') return typescriptOf(command, fields, nodes)
    if (kind === 'curl (proxy)') return proxyCurlOf(proxies[0] ?? '', command, fields)
    if (kind === 'JSON') return jsonOf(draft)
    if (kind === 'hex') return hexOf(frame)
    const own = fields['propertyId'] ?? fields['segment']
    const confirm = command.startsWith('DEL') ? String(own) : undefined
    const base = settings.data?.baseUrl || location.origin
    const query = { command, fields, shard: shard?.id, node: draft.node || undefined, confirm }
    return kind === 'Go' ? goOf(base, query) : curlOf(base, query)
  }
  const copyAs = async (kind: CopyKind) => {
    setLast(kind)
    if (why !== undefined) return toast({ message: why, level: 'warn' })
    toast(
      (await copyText(textOf(kind)))
        ? { message: copy.actions.copiedAs(kind) }
        : { message: copy.actions.copyBlocked, level: 'warn' },
    )
  }
  const noAddress = nodes.length === 0 ? copy.actions.noNodeAddress : undefined
  const kinds: readonly CopyKind[] = [
    ...(['TypeScript', 'curl'] as const),
    ...(proxies.length > 0 ? (['curl (proxy)'] as const) : []),
    ...(['Go', 'JSON', 'hex'] as const),
  ]
  const items = kinds.map((kind) => ({
    label: kind === last ? copy.actions.copyWithKey(kind) : kind,
    why: why ?? (kind === 'TypeScript' ? noAddress : undefined),
    onSelect: () => void copyAs(kind),
  }))
  const setupBase = settings.data?.baseUrl || location.origin
  const codes = (): Code[] =>
    kinds
      .filter((kind) => kind !== 'TypeScript' || noAddress === undefined)
      .map((kind) => ({ kind, text: textOf(kind), setup: kind === 'TypeScript' ? typescriptSetupOf(setupBase) : '' }))
  return { items, codes, last: () => void copyAs(last) }
}
