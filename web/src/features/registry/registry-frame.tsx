'use client'
import type { ReactNode } from 'react'
import { routes } from '../../lib/routes.ts'
import { Page } from '../../ui/page.tsx'
import { PathTabs } from '../../ui/tabs.tsx'
import * as copy from './copy.ts'

const TABS = [
  { href: routes.services(), label: copy.tabs.services },
  { href: routes.datasets(), label: copy.tabs.datasets },
  { href: routes.codecs(), label: copy.tabs.codecs },
  { href: routes.resolver(), label: copy.tabs.resolver },
]

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
      ready={ready}
      crumbs={[{ href: routes.registry(), label: copy.common.registry }]}
      tabs={<PathTabs label={copy.common.registry} tabs={TABS} />}
    >
      {children}
    </Page>
  )
}
