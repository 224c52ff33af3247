import type { Level } from '@vacancy/shared/contract'
import clsx from 'clsx'
import type { ReactNode } from 'react'
import { Icon } from '../icons/icon.tsx'
import { LEVEL_ICONS } from './badge.tsx'

/** Border, background and text of something that speaks for everything below it. */
export const BANNER_TINTS: Record<Level, string> = {
  ok: 'border-ok/40 bg-ok-bg text-ok',
  info: 'border-info/40 bg-info-bg text-info',
  warn: 'border-warn/40 bg-warn-bg text-warn',
  crit: 'border-crit/40 bg-crit-bg text-crit',
  unk: 'border-unk/40 bg-unk-bg text-unk',
}

type BannerProps = {
  readonly level: Level
  readonly title: string
  readonly children?: ReactNode
  readonly actions?: ReactNode
  readonly className?: string
}

/** A condition that applies to everything below it. */
export function Banner({ level, title, children, actions, className }: BannerProps) {
  return (
    <div
      role="status"
      data-banner={level}
      className={clsx(
        'flex flex-wrap items-center gap-x-3 gap-y-1 rounded-panel border px-4 py-2',
        BANNER_TINTS[level],
        className,
      )}
    >
      <Icon name={LEVEL_ICONS[level]} />
      <div className="min-w-0 grow basis-60">
        <p className="font-semibold">{title}</p>
        {children && <div className="prose text-text">{children}</div>}
      </div>
      {actions && <div className="flex flex-wrap gap-2">{actions}</div>}
    </div>
  )
}
