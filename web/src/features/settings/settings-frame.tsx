'use client'
import type { ReactNode } from 'react'
import { routes } from '../../lib/routes.ts'
import { Page } from '../../ui/page.tsx'
import { PathTabs } from '../../ui/tabs.tsx'

const TABS = [
  { href: routes.setting('profile'), label: 'Profile' },
  { href: routes.setting('appearance'), label: 'Appearance' },
  { href: routes.setting('tokens'), label: 'API tokens' },
  { href: routes.setting('people'), label: 'People' },
  { href: routes.setting('environment'), label: 'Environment' },
  { href: routes.setting('about'), label: 'About' },
]

type SettingsFrameProps = {
  readonly id: 'profile' | 'appearance' | 'tokens' | 'people' | 'environment' | 'about'
  readonly ready: boolean
  readonly actions?: ReactNode
  readonly children: ReactNode
}

export function SettingsFrame({ id, ready, actions, children }: SettingsFrameProps) {
  const label = TABS.find(({ href }) => href === routes.setting(id))?.label ?? ''
  return (
    <Page
      id={`settings-${id}`}
      title={label}
      where="Settings"
      ready={ready}
      crumbs={[{ href: routes.settings(), label: 'Settings' }]}
      actions={actions}
      tabs={<PathTabs label="Settings" tabs={TABS} />}
    >
      {children}
    </Page>
  )
}
