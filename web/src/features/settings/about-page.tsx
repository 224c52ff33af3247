'use client'
import { counted } from '../../lib/format.ts'
import { routes } from '../../lib/routes.ts'
import { Age } from '../../ui/age.tsx'
import { CopyButton } from '../../ui/copy-button.tsx'
import { Facts } from '../../ui/facts.tsx'
import { Link } from '../../ui/link.tsx'
import { Panel } from '../../ui/panel.tsx'
import * as copy from './copy.ts'
import { SettingsFrame } from './settings-frame.tsx'
import { useSettings } from './settings-query.ts'

export function AboutPage() {
  const settings = useSettings()
  return (
    <SettingsFrame id="about" ready={!settings.isPending}>
      <Panel
        title={copy.about.panel}
        query={settings}
        actions={
          settings.data && (
            <CopyButton label={copy.about.copy} kind="quiet" text={() => JSON.stringify(settings.data, null, 2)} />
          )
        }
      >
        {(data) => (
          <Facts
            facts={[
              [copy.about.version, data.version],
              [copy.about.started, <Age key="started" at={data.startedAt} />],
              [copy.about.database, copy.about.databases[data.database]],
              [copy.about.registry, data.registry ?? copy.about.noRegistry],
              [copy.about.resolver, data.resolver ?? copy.about.none],
              [copy.about.nodes, counted(data.nodes, 'node')],
              [
                copy.about.api,
                // A plain link, since it is not a page of the console.
                <a key="api" href="/docs" className="text-accent underline underline-offset-3">
                  {copy.about.apiReference}
                </a>,
              ],
            ]}
          />
        )}
      </Panel>
      <Panel title={copy.about.help}>
        <p className="prose text-text-2">
          <kbd className="font-sans">?</kbd> {copy.about.helpKey}{' '}
          <Link href={routes.audit()}>{copy.about.auditLog}</Link> {copy.about.auditHint}
        </p>
      </Panel>
    </SettingsFrame>
  )
}
