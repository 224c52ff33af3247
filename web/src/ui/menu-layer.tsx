'use client'
import clsx from 'clsx'
import * as Primitive from 'radix-ui/dropdown-menu'
import type { RefObject } from 'react'
import { Icon, type IconName } from '../icons/icon.tsx'
import { navigate } from '../lib/navigate.ts'
import { giveBackFocus } from './give-back-focus.ts'

type MenuItem =
  | {
      readonly label: string
      readonly icon?: IconName
      readonly onSelect?: () => void
      readonly href?: string
      /** Why it is disabled. */
      readonly why?: string | undefined
      readonly danger?: boolean
    }
  | 'line'

export type MenuLayerProps = {
  /** Accessible name: "More actions for n3". */
  readonly label: string
  readonly items: readonly MenuItem[]
  readonly anchor: RefObject<HTMLButtonElement | null>
  readonly onClose: () => void
}

export default function MenuLayer({ label, items, anchor, onClose }: MenuLayerProps) {
  return (
    <Primitive.Root open onOpenChange={(isOpen) => !isOpen && onClose()} modal={false}>
      {/* The real button was rendered before this code loaded: an empty span over it is the anchor. */}
      <Primitive.Trigger asChild>
        <span aria-hidden="true" className="pointer-events-none absolute inset-0" />
      </Primitive.Trigger>
      <Primitive.Portal>
        <Primitive.Content
          aria-label={label}
          aria-labelledby={undefined}
          align="end"
          sideOffset={4}
          collisionPadding={8}
          onCloseAutoFocus={(event) => giveBackFocus(event, anchor.current)}
          className="enter z-50 min-w-48 max-w-[calc(100vw-16px)] rounded-panel border border-line bg-overlay py-1 shadow-layer outline-none"
        >
          {items.map((item, at) =>
            item === 'line' ? (
              <Primitive.Separator key={at} className="my-1 border-line border-t" />
            ) : (
              <Primitive.Item
                key={item.label}
                aria-disabled={item.why !== undefined || undefined}
                onSelect={(event) => {
                  if (item.why !== undefined) return event.preventDefault()
                  // A dialog opened from here returns focus to the button, since the item is gone by then.
                  anchor.current?.focus()
                  item.onSelect?.()
                  if (item.href) navigate(item.href)
                }}
                className={clsx(
                  'flex min-h-control cursor-pointer items-center gap-2 px-3 text-table outline-none data-highlighted:bg-sunken data-highlighted:outline-2 data-highlighted:outline-focus data-highlighted:-outline-offset-2',
                  item.why !== undefined ? 'cursor-not-allowed text-text-3' : item.danger ? 'text-crit' : 'text-text',
                )}
              >
                {item.icon && <Icon name={item.icon} size={14} />}
                <span className="min-w-0">
                  {item.label}
                  {item.why !== undefined && <span className="block text-small text-text-3">{item.why}</span>}
                </span>
              </Primitive.Item>
            ),
          )}
        </Primitive.Content>
      </Primitive.Portal>
    </Primitive.Root>
  )
}
