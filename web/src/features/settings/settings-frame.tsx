'use client'
import type { ReactNode } from 'react'
import { routes } from '../../lib/routes.ts'
import { type NextStep, NextSteps } from '../../ui/next-steps.tsx'
import { Page } from '../../ui/page.tsx'
import { PathTabs } from '../../ui/tabs.tsx'
import * as copy from './copy.ts'

const TABS = [
  { href: routes.profile(), label: copy.settings.tabs.profile },
  { href: routes.appearance(), label: copy.settings.tabs.appearance },
  { href: routes.tokens(), label: copy.settings.tabs.tokens },
  { href: routes.people(), label: copy.settings.tabs.people },
  { href: routes.environment(), label: copy.settings.tabs.environment },
  { href: routes.about(), label: copy.settings.tabs.about },
]

const NEXT: { readonly [id in SettingsFrameProps['id']]: readonly NextStep[] } = {
  profile: [
    { href: routes.tokens(), ...copy.next.tokens },
    { href: routes.appearance(), ...copy.next.appearance },
  ],
  appearance: [{ href: routes.profile(), ...copy.next.profile }],
  tokens: [{ href: routes.playground(), ...copy.next.playground }],
  people: [{ href: routes.audit(), ...copy.next.audit }],
  environment: [{ href: routes.people(), ...copy.next.people }],
  about: [{ href: routes.topology(), ...copy.next.topology }],
}

type SettingsFrameProps = {
  readonly id: 'profile' | 'appearance' | 'tokens' | 'people' | 'environment' | 'about'
  readonly ready: boolean
  readonly actions?: ReactNode
  readonly children: ReactNode
}

export function SettingsFrame({ id, ready, actions, children }: SettingsFrameProps) {
  const label = TABS.find(({ href }) => href === routes[id]())?.label ?? ''
  return (
    <Page
      id={`settings-${id}`}
      title={label}
      where={copy.settings.title}
      heading={copy.settings.title}
      ready={ready}
      actions={actions}
      tabs={<PathTabs label={copy.settings.title} tabs={TABS} />}
    >
      {children}
      <NextSteps steps={NEXT[id]} />
    </Page>
  )
}
