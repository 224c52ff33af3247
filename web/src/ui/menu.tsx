'use client'
import { type ReactNode, Suspense, useRef, useState } from 'react'
import type { IconName } from '../icons/icon.tsx'
import { Button } from './button.tsx'
import { IconButton } from './icon-button.tsx'
import { late } from './late.tsx'
import type { MenuLayerProps } from './menu-layer.tsx'

type MenuProps = Pick<MenuLayerProps, 'label' | 'items'> & {
  /** Text of the button; without it an icon button named by the label. */
  readonly button?: ReactNode
  readonly icon?: IconName
  /** Class of an icon button of another size. */
  readonly size?: string
}

const Layer = late(async () => (await import('./menu-layer.tsx')).default)

export function Menu({ label, button, icon = 'more', size, items }: MenuProps) {
  const anchor = useRef<HTMLButtonElement>(null)
  const [isOpen, setOpen] = useState(false)
  const wire = {
    ref: anchor,
    'aria-haspopup': 'menu' as const,
    'aria-expanded': isOpen,
    onClick: () => setOpen(true),
    onKeyDown: (event: { key: string; preventDefault(): void }) => {
      if (event.key !== 'ArrowDown') return
      event.preventDefault()
      setOpen(true)
    },
  }
  return (
    <span className="relative inline-flex">
      {button ? (
        <Button {...wire} icon="chevron-down" className="flex-row-reverse">
          {button}
        </Button>
      ) : (
        <IconButton label={label} icon={icon} className={size} {...wire} />
      )}
      {isOpen && (
        <Suspense fallback={null}>
          <Layer label={label} items={items} anchor={anchor} onClose={() => setOpen(false)} />
        </Suspense>
      )}
    </span>
  )
}
