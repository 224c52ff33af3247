'use client'
/** What the playground keeps, beside the workbench: own runs, saved queries and saved results. */
import { type ComponentProps, useState } from 'react'
import { Drawer } from '../../ui/dialog.tsx'
import { ViewTabs } from '../../ui/tabs.tsx'
import * as copy from './copy.ts'
import { HistoryPanel, SavedPanel, SavedResultsPanel } from './history-panel.tsx'

type DrawerProps = ComponentProps<typeof HistoryPanel> & { readonly onClose: () => void }

const VIEWS = [
  { id: 'history', label: copy.history.title },
  { id: 'queries', label: copy.savedQueries.title },
  { id: 'results', label: copy.savedResults.title },
] as const

export function HistoryDrawer({ onClose, ...history }: DrawerProps) {
  const [view, setView] = useState<string>('history')
  return (
    <Drawer open onClose={onClose} title={copy.history.drawer} wide>
      <ViewTabs label={copy.history.drawer} value={view} onChange={setView} tabs={VIEWS}>
        {view === 'history' && <HistoryPanel {...history} />}
        {view === 'queries' && <SavedPanel />}
        {view === 'results' && <SavedResultsPanel />}
      </ViewTabs>
    </Drawer>
  )
}
