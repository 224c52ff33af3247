'use client'
import { useState } from 'react'
import { CodeView } from './code-view.tsx'
import { ViewTabs } from './tabs.tsx'

type CodeTabsProps = {
  readonly label: string
  readonly tabs: readonly { readonly id: string; readonly label: string; readonly code: string }[]
  readonly wrap?: boolean
}

/** The same code in several languages. */
export function CodeTabs({ label, tabs, wrap = false }: CodeTabsProps) {
  const [chosen, setChosen] = useState(tabs[0]?.id ?? '')
  const tab = tabs.find(({ id }) => id === chosen) ?? tabs[0]
  return (
    <ViewTabs label={label} value={tab?.id ?? ''} onChange={setChosen} tabs={tabs}>
      {tab && <CodeView label={tab.label} code={tab.code} wrap={wrap} hideLabel />}
    </ViewTabs>
  )
}
