'use client'
/** The change of members or leadership that the nodes report, requested here or elsewhere. */

import type { ShardView } from '@vacancy/shared/contract'
import { Age, Duration } from '../../ui/age.tsx'
import { Badge } from '../../ui/badge.tsx'
import { Panel } from '../../ui/panel.tsx'
import { common } from './copy.ts'
import * as copy from './shard-copy.ts'

export function ShardChange({ shard }: { readonly shard: ShardView }) {
  const { change, lastChange } = shard
  if (!change && !lastChange) return null
  return (
    <Panel title={copy.change.title}>
      <div className="grid gap-2">
        {change && (
          <p className="flex flex-wrap items-center gap-2" data-change={change.kind}>
            <Badge level="info" icon="clock">
              {copy.change.inProgress}
            </Badge>
            {copy.change.of(change.kind)} <span className="font-mono">{change.node}</span>
            {change.step !== '' && <span className="text-text-2">{change.step}</span>}
            <span className="text-text-3">
              {common.for} <Duration from={change.startedAt} />
            </span>
          </p>
        )}
        {lastChange && (
          <p className="flex flex-wrap items-center gap-2">
            <Badge level={lastChange.result === 'done' ? 'ok' : 'warn'}>{lastChange.result}</Badge>
            {copy.change.last(lastChange.kind)} <span className="font-mono">{lastChange.node}</span>
            {lastChange.reason !== '' && <span className="break-words text-text-2">{lastChange.reason}</span>}
            <Age at={lastChange.at} />
          </p>
        )}
      </div>
    </Panel>
  )
}
