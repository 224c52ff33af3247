/** How many sources are silent, in words. Sources are nodes (`s1/n1`), single paths of one (`s1/n1 /metrics`), the registry. */
import type { MissingSource } from '@vacancy/shared/contract'
import { counted } from './format.ts'

const NODE = /^[^\s/]+\/[^\s/]+$/

/** "1 of 4 nodes and 1 other source did not answer". @param nodes how many there are */
export function missingSays(missing: readonly Pick<MissingSource, 'source'>[], nodes: number | undefined): string {
  const sources = new Set(missing.map(({ source }) => source))
  const silent = [...sources].filter((source) => NODE.test(source)).length
  const others = sources.size - silent
  const parts = [
    ...(silent > 0 ? [nodes === undefined ? counted(silent, 'node') : `${silent} of ${counted(nodes, 'node')}`] : []),
    ...(others > 0 ? [counted(others, silent > 0 ? 'other source' : 'source')] : []),
  ]
  return `${parts.join(' and ')} did not answer`
}
