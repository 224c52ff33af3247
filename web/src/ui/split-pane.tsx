'use client'
/** Two panes side by side, each as high as the window allows, with a divider that pointer and keys move. Stacked below 1024 px. */
import {
  type CSSProperties,
  type KeyboardEvent,
  type PointerEvent,
  type ReactNode,
  useId,
  useRef,
  useState,
} from 'react'

type SplitProps = {
  /** Accessible name of the divider: "Width of the request". */
  readonly label: string
  readonly first: ReactNode
  readonly second: ReactNode
}

const LEAST = 25
const MOST = 65
const STEP = 2
/** Percent of the first pane at the start. */
const START = 38

export function SplitPane({ label, first, second }: SplitProps) {
  const box = useRef<HTMLDivElement>(null)
  const [share, setShare] = useState(START)
  const id = useId()
  const set = (percent: number) => setShare(Math.min(MOST, Math.max(LEAST, Math.round(percent))))
  const onKeyDown = (event: KeyboardEvent) => {
    const to = { ArrowLeft: share - STEP, ArrowRight: share + STEP, Home: LEAST, End: MOST, Enter: START }[event.key]
    if (to === undefined) return
    event.preventDefault()
    set(to)
  }
  const onPointerMove = ({ clientX, currentTarget, pointerId }: PointerEvent<HTMLDivElement>) => {
    const bounds = box.current?.getBoundingClientRect()
    if (!bounds || !currentTarget.hasPointerCapture(pointerId)) return
    const isLeftToRight = getComputedStyle(currentTarget).direction === 'ltr'
    const along = isLeftToRight ? clientX - bounds.left : bounds.right - clientX
    set((along / bounds.width) * 100)
  }
  return (
    <div
      ref={box}
      style={{ '--split': `${share}%` } as CSSProperties}
      className="grid min-w-0 grid-cols-1 gap-4 lg:grid-cols-[minmax(0,var(--split))_1rem_minmax(0,1fr)] lg:gap-0"
    >
      <div id={id} className="flex min-w-0 flex-col">
        {first}
      </div>
      {/* biome-ignore lint/a11y/useSemanticElements: a thematic break cannot be moved. */}
      <div
        role="separator"
        tabIndex={0}
        aria-label={label}
        aria-orientation="vertical"
        aria-controls={id}
        aria-valuenow={share}
        aria-valuemin={LEAST}
        aria-valuemax={MOST}
        onKeyDown={onKeyDown}
        onPointerDown={(event) => {
          event.preventDefault()
          event.currentTarget.focus()
          event.currentTarget.setPointerCapture(event.pointerId)
        }}
        onPointerMove={onPointerMove}
        onDoubleClick={() => set(START)}
        className="group flex cursor-col-resize touch-none items-center justify-center rounded-control max-lg:hidden"
      >
        <span className="h-12 w-1 rounded-full bg-line-strong/60 group-hover:bg-accent group-focus-visible:bg-accent" />
      </div>
      <div className="flex min-w-0 flex-col">{second}</div>
    </div>
  )
}
