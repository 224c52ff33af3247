'use client'
import { useWhyNotOn } from '../../lib/quorum.ts'
import { Button } from '../../ui/button.tsx'
import { useOpenPlan } from './plan-host.tsx'
import * as copy from './tray-copy.ts'

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
