'use client'
import type { ReactNode } from 'react'
import { routes } from '../../lib/routes.ts'
import { Page } from '../../ui/page.tsx'
import { PathTabs } from '../../ui/tabs.tsx'
import * as copy from './copy.ts'

const TABS = [
  { href: routes.setting('profile'), label: copy.settings.tabs.profile },
  { href: routes.setting('appearance'), label: copy.settings.tabs.appearance },
  { href: routes.setting('tokens'), label: copy.settings.tabs.tokens },
  { href: routes.setting('people'), label: copy.settings.tabs.people },
  { href: routes.setting('environment'), label: copy.settings.tabs.environment },
  { href: routes.setting('about'), label: copy.settings.tabs.about },
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
      where={copy.settings.title}
      ready={ready}
      crumbs={[{ href: routes.settings(), label: copy.settings.title }]}
      actions={actions}
      tabs={<PathTabs label={copy.settings.title} tabs={TABS} />}
    >
      {children}
    </Page>
  )
}
