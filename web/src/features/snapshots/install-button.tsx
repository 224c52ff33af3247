'use client'
import { Button } from '../../ui/button.tsx'
import { useOpenPlan } from '../operations/plan-host.tsx'
import * as copy from '../operations/tray-copy.ts'
import { useWhyNotOn } from '../shards/quorum.ts'

/** Opens the install plan; nothing is installed before it is confirmed. */
export function InstallButton({ shard, snapshot, why }: { shard: string; snapshot: string; why?: string | undefined }) {
  const openPlan = useOpenPlan()
  const whyNot = useWhyNotOn(shard, 'admin', 'change')
  return (
    <Button
      kind="primary"
      icon="upload"
      why={why ?? whyNot}
      onClick={() => openPlan({ kind: 'install', shard, snapshot })}
    >
      {copy.installButton(shard)}
    </Button>
  )
}
