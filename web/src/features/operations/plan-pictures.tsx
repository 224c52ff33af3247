'use client'
/** A shard before and after a plan: roles, spare voters, data. */

import type { Plan } from '@vacancy/shared/contract'
import clsx from 'clsx'
import { days, shortCount } from '../../lib/format.ts'
import { RoleMark } from '../../ui/role-mark.tsx'
import * as copy from './plan-copy.ts'
import { spareText } from './plan-view.ts'

type Picture = Plan['before']

export function PlanPictures({ before, after }: { readonly before: Picture; readonly after: Picture }) {
  const roles = new Map(before.nodes.map((node) => [node.node, node.role]))
  return (
    <section aria-label={copy.plan.beforeAndAfter} className="grid gap-3 rounded-panel bg-sunken p-3 sm:grid-cols-2">
      <PictureOf title={copy.plan.before} picture={before} isChanged={() => false} />
      <PictureOf title={copy.plan.after} picture={after} isChanged={(node, role) => roles.get(node) !== role} />
    </section>
  )
}

type PictureOfProps = {
  readonly title: string
  readonly picture: Picture
  readonly isChanged: (node: string, role: Picture['nodes'][number]['role']) => boolean
}

function PictureOf({ title, picture, isChanged }: PictureOfProps) {
  return (
    <div className="grid content-start gap-2">
      <h3 className="text-body text-text-2">{title}</h3>
      <ul className="flex flex-wrap gap-2">
        {picture.nodes.map(({ node, role }) => {
          const changed = isChanged(node, role)
          return (
            <li
              key={node}
              className={clsx(
                'inline-flex min-h-6 items-center gap-1.5 rounded-control border bg-surface px-2',
                changed ? 'border-accent font-semibold' : 'border-line',
              )}
            >
              <RoleMark role={role} />
              <span className="font-mono text-table">{node}</span>
              {changed && <span className="text-small text-text-2">{role}</span>}
            </li>
          )
        })}
      </ul>
      <p className="text-small text-text-2">
        {copy.plan.voters(picture.voters, picture.majority, spareText(picture.spare))}
      </p>
      {picture.data && (
        <p className="text-small text-text-2">
          {copy.plan.data(
            shortCount(picture.data.packages),
            shortCount(picture.data.properties),
            days(picture.data.window),
          )}
        </p>
      )}
    </div>
  )
}
