'use client'
/** The last handovers, as links; nothing while there was none. */

import { routes } from '../../lib/routes.ts'
import { Age } from '../../ui/age.tsx'
import { Link } from '../../ui/link.tsx'
import { Panel } from '../../ui/panel.tsx'
import * as copy from './copy.ts'
import { useHandovers } from './queries.ts'

const SHOWN_MAX = 5

export function Handovers() {
  const handovers = useHandovers().data?.handovers ?? []
  if (handovers.length === 0) return null
  return (
    <Panel title={copy.list.title}>
      <ul aria-label={copy.list.title} className="grid gap-1">
        {handovers.slice(0, SHOWN_MAX).map(({ id, title, state, createdAt, by }) => (
          <li key={id} data-handover={id} className="flex flex-wrap items-baseline gap-x-3">
            <Link href={routes.handover(id)}>{copy.list.label(title, copy.handover.states[state].toLowerCase())}</Link>
            <span className="text-small text-text-3">
              {copy.handover.by(by)} <Age at={createdAt} />
            </span>
          </li>
        ))}
      </ul>
    </Panel>
  )
}
