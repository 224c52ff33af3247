'use client'
import type { ReactNode } from 'react'
import { routes } from '../../lib/routes.ts'
import { Page } from '../../ui/page.tsx'
import { PathTabs } from '../../ui/tabs.tsx'

const TABS = [
  { href: routes.services(), label: 'Services' },
  { href: routes.codecs(), label: 'Codec list' },
  { href: routes.resolver(), label: 'Resolver' },
]

type RegistryFrameProps = {
  readonly id: 'services' | 'codecs' | 'resolver'
  readonly ready: boolean
  readonly children: ReactNode
}

export function RegistryFrame({ id, ready, children }: RegistryFrameProps) {
  return (
    <Page
      id={`registry-${id}`}
      title={TABS.find(({ href }) => href.endsWith(id))?.label ?? ''}
      where="Registry"
      ready={ready}
      crumbs={[{ href: routes.registry(), label: 'Registry' }]}
      tabs={<PathTabs label="Registry" tabs={TABS} />}
    >
      {children}
    </Page>
  )
}
