'use client'
import type { AttentionItem, MissingSource } from '@vacancy/shared/contract'
import { missingText } from '../../lib/missing.ts'
import { Banner } from '../../ui/banner.tsx'
import { LinkButton } from '../../ui/button.tsx'
import * as copy from './missing-copy.ts'

const NAMED_MAX = 3

type MissingBannerProps = {
  readonly missing: readonly MissingSource[]
  /** The number of all nodes. */
  readonly nodes: number
  readonly worst: AttentionItem | undefined
}

/** Whether the item names all silent sources itself: each fact is stated once. */
function isOf({ shard, node, message }: AttentionItem, missing: readonly MissingSource[]): boolean {
  const isNamed = (name: string) => (node === null ? message.split(/[^\w.-]+/).includes(name) : name === node)
  return missing.every(({ source }) => source.startsWith(`${shard}/`) && isNamed(source.slice(`${shard}/`.length)))
}

/** In the colour of the worst state; it is the title, and its button leads to what to do. */
export default function MissingBanner({ missing, nodes, worst }: MissingBannerProps) {
  const named = missing.slice(0, NAMED_MAX).map(({ source, message }) => `${source} (${message})`)
  const names = `${named.join(', ')}${missing.length > NAMED_MAX ? ', …' : '.'}`
  const silent = missingText(missing, nodes)
  if (!worst) {
    return (
      <Banner level="warn" title={silent}>
        {names}
        {copy.missing}
      </Banner>
    )
  }
  return (
    <Banner
      level={worst.level}
      title={worst.message}
      actions={<LinkButton href={worst.href}>{worst.action}</LinkButton>}
    >
      {isOf(worst, missing) ? copy.known : copy.silent(silent, names)}
    </Banner>
  )
}
