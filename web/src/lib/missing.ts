/** Counts the sources that did not respond: nodes (`s1/n1`), paths of a node (`s1/n1 /metrics`), the registry. */
import type { MissingSource } from '@vacancy/shared/contract'
import * as copy from './copy.ts'
import { counted } from './format.ts'

const NODE = /^[^\s/]+\/[^\s/]+$/

/** Whether a whole node did not respond, rather than one of its paths or another source. */
export const isNodeSource = ({ source }: Pick<MissingSource, 'source'>): boolean => NODE.test(source)

/** "1 of 4 nodes and 1 other source did not respond". @param nodes the number of all nodes */
export function missingText(missing: readonly Pick<MissingSource, 'source'>[], nodes: number | undefined): string {
  const sources = new Set(missing.map(({ source }) => source))
  const silent = [...sources].filter((source) => isNodeSource({ source })).length
  const others = sources.size - silent
  const parts = [
    ...(silent > 0
      ? [
          nodes === undefined
            ? counted(silent, copy.missing.node)
            : copy.missing.nodesOf(silent, counted(nodes, copy.missing.node)),
        ]
      : []),
    ...(others > 0 ? [counted(others, silent > 0 ? copy.missing.otherSource : copy.missing.source)] : []),
  ]
  return copy.missing.didNotRespond(parts.join(copy.missing.and))
}
