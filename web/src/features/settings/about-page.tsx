'use client'
import { counted } from '../../lib/format.ts'
import { Age } from '../../ui/age.tsx'
import { CopyButton } from '../../ui/copy-button.tsx'
import { Facts } from '../../ui/facts.tsx'
import { Link } from '../../ui/link.tsx'
import { Panel } from '../../ui/panel.tsx'
import { SettingsFrame } from './settings-frame.tsx'
import { useSettings } from './settings-query.ts'

const DATABASES = { sqlite: 'SQLite, in the data folder', postgresql: 'PostgreSQL' } as const

export function AboutPage() {
  const settings = useSettings()
  return (
    <SettingsFrame id="about" ready={!settings.isPending}>
      <Panel
        title="This control plane"
        query={settings}
        actions={
          settings.data && <CopyButton label="Copy" kind="quiet" text={() => JSON.stringify(settings.data, null, 2)} />
        }
      >
        {(data) => (
          <Facts
            facts={[
              ['Version', data.version],
              ['Started', <Age key="started" at={data.startedAt} />],
              ['Database', DATABASES[data.database]],
              ['Registry', data.registry ?? 'none: nodes stand in the configuration'],
              ['Resolver', data.resolver ?? 'none'],
              ['Nodes', counted(data.nodes, 'node')],
              [
                'API',
                // Not a page of the console: the router would look for one.
                <a key="api" href="/docs" className="text-accent underline underline-offset-3">
                  Reference of the API
                </a>,
              ],
            ]}
          />
        )}
      </Panel>
      <Panel title="Help">
        <p className="prose text-text-2">
          Press <kbd className="font-sans">?</kbd> anywhere for the keys of the page. What was changed by whom stands in
          the <Link href="/audit">audit log</Link>.
        </p>
      </Panel>
    </SettingsFrame>
  )
}
