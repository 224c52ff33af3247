'use client'
import type { ReactNode } from 'react'
import { routes } from '../../lib/routes.ts'
import { type NextStep, NextSteps } from '../../ui/next-steps.tsx'
import { Page } from '../../ui/page.tsx'
import { PathTabs } from '../../ui/tabs.tsx'
import * as copy from './copy.ts'

const TABS = [
  { href: routes.services(), label: copy.tabs.services },
  { href: routes.datasets(), label: copy.tabs.datasets },
  { href: routes.codecs(), label: copy.tabs.codecs },
  { href: routes.resolver(), label: copy.tabs.resolver },
]

const NEXT: { readonly [id in RegistryFrameProps['id']]: readonly NextStep[] } = {
  services: [{ href: routes.topology(), ...copy.next.topology }],
  datasets: [{ href: routes.topology({ view: 'text' }), ...copy.next.route }],
  codecs: [{ href: routes.snapshots(), ...copy.next.snapshots }],
  resolver: [{ href: routes.services(), ...copy.next.services }],
}

type RegistryFrameProps = {
  readonly id: 'services' | 'datasets' | 'codecs' | 'resolver'
  readonly ready: boolean
  readonly children: ReactNode
}

export function RegistryFrame({ id, ready, children }: RegistryFrameProps) {
  return (
    <Page
      id={`registry-${id}`}
      title={TABS.find(({ href }) => href.endsWith(id))?.label ?? ''}
      where={copy.common.registry}
      heading={copy.common.registry}
      ready={ready}
      tabs={<PathTabs label={copy.common.registry} tabs={TABS} />}
    >
      {children}
      <NextSteps steps={NEXT[id]} />
    </Page>
  )
}
