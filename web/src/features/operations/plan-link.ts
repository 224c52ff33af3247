/**
 * A plan in a URL: `?plan=transfer:s3:n3` opens its dialog and never runs it
 * (docs/design/control-plane.md#plan).
 */

import type { OperationKind, PlanRequest } from '@vacancy/shared/contract'

/** Meaning of the third part, by kind. */
const THIRD_PART: Record<OperationKind, 'node' | 'snapshot' | undefined> = {
  transfer: 'node',
  promote: 'node',
  demote: 'node',
  'transfer-then-demote': 'node',
  'replace-voter': 'node',
  install: 'snapshot',
  'undo-install': undefined,
}
const WAIT = 'wait'
const PART_CHARACTERS_MAX = 128

/** Parts are separated by colons, which ids do not contain. The fourth is `wait`, or the replacement of a voter. */
export function formatPlanLink(request: PlanRequest): string {
  const third = request.node ?? request.snapshot ?? ''
  const parts = [request.kind, request.shard, third, request.waitForLag ? WAIT : (request.replacement ?? '')]
  while (parts.at(-1) === '') parts.pop()
  return parts.join(':')
}

/** Parses a plan link; undefined when invalid. A transfer without a node lets the user choose the target. */
export function parsePlanLink(text: string): PlanRequest | undefined {
  const [kind = '', shard = '', third = '', fourth, ...more] = text.split(':')
  if (!Object.hasOwn(THIRD_PART, kind) || shard === '' || more.length > 0) return undefined
  if (shard.length > PART_CHARACTERS_MAX || third.length > PART_CHARACTERS_MAX) return undefined
  const known = kind as OperationKind
  const isReplacement = known === 'replace-voter' && fourth !== undefined
  if (isReplacement && (fourth === '' || fourth.length > PART_CHARACTERS_MAX)) return undefined
  if (!isReplacement && fourth !== undefined && (fourth !== WAIT || known !== 'transfer')) return undefined
  const part = THIRD_PART[known]
  if ((part === undefined) !== (third === '') && known !== 'transfer') return undefined
  return {
    kind: known,
    shard,
    ...(part && third !== '' ? { [part]: third } : {}),
    ...(isReplacement ? { replacement: fourth } : fourth === WAIT ? { waitForLag: true } : {}),
  }
}
