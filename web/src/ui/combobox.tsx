'use client'
import clsx from 'clsx'
import {
  type ChangeEvent,
  type KeyboardEvent,
  type ReactNode,
  type RefObject,
  useEffect,
  useId,
  useLayoutEffect,
  useRef,
  useState,
} from 'react'
import { Chip } from './badge.tsx'
import * as copy from './data-copy.ts'
import type { Wire } from './field.tsx'

export type ComboOption = { readonly value: string; readonly label?: string; readonly hint?: string }

/** All options, or a function that finds those for a text. */
export type ComboOptions =
  | readonly ComboOption[]
  | ((text: string, signal: AbortSignal) => Promise<readonly ComboOption[]>)

type Common = {
  /** From Field; without it `label` is the accessible name. */
  readonly wire?: Wire
  readonly label?: string
  readonly options: ComboOptions
  /** Accepts text that matches no option. */
  readonly free?: boolean
  readonly placeholder?: string
  readonly why?: string | undefined
}

type ComboboxProps = Common & { readonly value: string; readonly onChange: (value: string) => void }

const SHOWN_MAX = 100
const DEBOUNCE_MS = 120

/** Text with suggestions: arrows choose, Enter accepts, Escape closes (ARIA combobox with listbox). */
export function Combobox({ value, onChange, ...rest }: ComboboxProps) {
  const [text, setText] = useState<string>()
  const take = (taken: string) => {
    setText(undefined)
    onChange(taken)
  }
  return (
    <ComboInput
      {...rest}
      text={text ?? value}
      onText={(typed) => {
        setText(typed)
        if (rest.free || typed === '') onChange(typed)
      }}
      onTake={take}
      onLeave={() => setText(undefined)}
    />
  )
}

type MultiProps = Common & {
  readonly values: readonly string[]
  readonly onChange: (values: readonly string[]) => void
}

/** Several values as removable chips; Backspace in the empty field removes the last one. */
export function MultiCombobox({ values, onChange, ...rest }: MultiProps) {
  const [text, setText] = useState('')
  const add = (value: string) => {
    setText('')
    if (value && !values.includes(value)) onChange([...values, value])
  }
  return (
    <ComboInput
      {...rest}
      text={text}
      onText={setText}
      onTake={add}
      onLeave={() => (rest.free ? add(text.trim()) : setText(''))}
      onBackspace={() => onChange(values.slice(0, -1))}
      taken={values}
    >
      {values.map((value) => (
        <Chip
          key={value}
          removeLabel={copy.combobox.remove(value)}
          onRemove={() => onChange(values.filter((other) => other !== value))}
        >
          {value}
        </Chip>
      ))}
    </ComboInput>
  )
}

type InputProps = Common & {
  readonly text: string
  readonly onText: (text: string) => void
  readonly onTake: (value: string) => void
  readonly onLeave: () => void
  readonly onBackspace?: () => void
  readonly taken?: readonly string[]
  readonly children?: ReactNode
}

function ComboInput(props: InputProps) {
  const { wire, label, options, free = false, placeholder, why, text, onText, onTake, onLeave, onBackspace } = props
  const { taken = [], children } = props
  const ownId = useId()
  const id = wire?.id ?? ownId
  const box = useRef<HTMLDivElement>(null)
  const list = useRef<HTMLUListElement>(null)
  const [isOpen, setOpen] = useState(false)
  const [isTyped, setTyped] = useState(false)
  const [at, setAt] = useState(-1)
  const { found, failed } = useFound(options, isTyped ? text : '', isOpen)
  const shown = found.filter(({ value }) => !taken.includes(value)).slice(0, SHOWN_MAX)

  useEffect(() => {
    list.current?.children[at]?.scrollIntoView({ block: 'nearest' })
  }, [at])

  const close = () => {
    setOpen(false)
    setTyped(false)
    setAt(-1)
  }
  const take = (value: string) => {
    onTake(value)
    close()
  }
  const onKeyDown = (event: KeyboardEvent<HTMLInputElement>) => {
    const chosen = shown[at]
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      event.preventDefault()
      const step = event.key === 'ArrowDown' ? 1 : -1
      if (isOpen) setAt((at + step + shown.length) % Math.max(shown.length, 1))
      setOpen(true)
    } else if (event.key === 'Enter' && isOpen) {
      if (chosen) take(chosen.value)
      else if (!free && isTyped && shown[0]) take(shown[0].value)
      else if (free && children) take(text.trim())
      else return close()
      event.preventDefault()
    } else if (event.key === 'Escape' && isOpen) {
      event.stopPropagation()
      close()
    } else if (event.key === 'Backspace' && text === '') {
      onBackspace?.()
    } else if (event.key === ',' && free && children && text.trim()) {
      event.preventDefault()
      take(text.trim())
    }
  }
  const isListed = isOpen && (shown.length > 0 || failed !== undefined || (!free && isTyped))
  usePlaced(box, list, isListed ? Math.max(1, shown.length) : 0)
  return (
    <div className="min-w-0">
      <div
        ref={box}
        className={clsx(
          'flex min-h-control w-full flex-wrap items-center gap-1 rounded-control border bg-surface px-1 has-focus-visible:outline-2 has-focus-visible:outline-focus has-focus-visible:outline-offset-2',
          wire?.['aria-invalid'] ? 'border-crit' : 'border-line-strong',
        )}
      >
        {children}
        <input
          id={id}
          role="combobox"
          aria-label={wire ? undefined : label}
          aria-describedby={wire?.['aria-describedby']}
          aria-invalid={wire?.['aria-invalid']}
          aria-required={wire?.required || undefined}
          aria-expanded={isListed}
          aria-controls={`${id}-list`}
          aria-autocomplete="list"
          aria-activedescendant={isListed && at >= 0 ? `${id}-${at}` : undefined}
          autoComplete="off"
          autoCapitalize="none"
          spellCheck={false}
          readOnly={why !== undefined}
          data-tip={why}
          value={text}
          placeholder={taken.length === 0 ? placeholder : undefined}
          onChange={(event: ChangeEvent<HTMLInputElement>) => {
            setOpen(true)
            setTyped(true)
            setAt(-1)
            onText(event.target.value)
          }}
          onClick={() => why === undefined && setOpen(true)}
          onKeyDown={onKeyDown}
          onBlur={() => {
            close()
            onLeave()
          }}
          className="h-[calc(var(--control)-2px)] min-w-16 grow basis-16 bg-transparent px-1.5 text-body outline-none"
        />
      </div>
      <ul
        ref={list}
        id={`${id}-list`}
        // biome-ignore lint/a11y/noNoninteractiveElementToInteractiveRole: the list of a combobox; focus stays in its field.
        role="listbox"
        aria-label={label ?? copy.combobox.choices}
        popover="manual"
        className="fixed inset-auto m-0 min-w-48 overflow-y-auto rounded-panel border border-line bg-overlay px-0 py-1 text-text shadow-layer"
      >
        {shown.map((option, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: its keys are handled in the field, which keeps the focus.
          // biome-ignore lint/a11y/useFocusableInteractive: referenced by aria-activedescendant.
          <li
            key={option.value}
            id={`${id}-${index}`}
            // biome-ignore lint/a11y/noNoninteractiveElementToInteractiveRole: an option of the listbox.
            role="option"
            aria-selected={index === at}
            onMouseDown={(event) => event.preventDefault()}
            onClick={() => take(option.value)}
            className={clsx(
              'flex min-h-control cursor-pointer items-center justify-between gap-3 px-3 text-table',
              index === at ? 'bg-accent text-on-accent' : 'hover:bg-sunken',
            )}
          >
            <span className="min-w-0 truncate">{option.label ?? option.value}</span>
            {option.hint && (
              <span className={clsx('shrink-0 text-small', index === at ? '' : 'text-text-3')}>{option.hint}</span>
            )}
          </li>
        ))}
        {shown.length === 0 && (
          <li role="presentation" className="px-3 py-1.5 text-small text-text-3">
            {failed ?? copy.combobox.noMatch}
          </li>
        )}
      </ul>
    </div>
  )
}

const LIST_HEIGHT_MAX = 288
const GAP = 4

/**
 * Places the list in the top layer, where no scrolling panel or dialog clips it: below its field, or above if there is
 * more room.
 *
 * @param lines of the list; 0 while it is closed
 */
function usePlaced(box: RefObject<HTMLElement | null>, list: RefObject<HTMLElement | null>, lines: number): void {
  useLayoutEffect(() => {
    const [field, layer] = [box.current, list.current]
    if (!field || !layer || lines === 0) return
    const place = () => {
      const { left, top, bottom, width } = field.getBoundingClientRect()
      const [above, below] = [top - 2 * GAP, innerHeight - bottom - 2 * GAP]
      const isAbove = below < Math.min(layer.scrollHeight, LIST_HEIGHT_MAX) && above > below
      Object.assign(layer.style, {
        width: `${width}px`,
        maxHeight: `${Math.min(LIST_HEIGHT_MAX, isAbove ? above : below)}px`,
        left: `${Math.max(GAP, Math.min(left, innerWidth - layer.offsetWidth - GAP))}px`,
        top: isAbove ? 'auto' : `${bottom + GAP}px`,
        bottom: isAbove ? `${innerHeight - top + GAP}px` : 'auto',
      })
    }
    layer.showPopover()
    place()
    addEventListener('scroll', place, true)
    addEventListener('resize', place)
    return () => {
      layer.hidePopover()
      removeEventListener('scroll', place, true)
      removeEventListener('resize', place)
    }
  }, [box, list, lines])
}

/** The options for a text: from a list at once, from a function after a pause in typing. */
function useFound(options: ComboOptions, text: string, isOpen: boolean) {
  const [loaded, setLoaded] = useState<{ found: readonly ComboOption[]; failed?: string }>({ found: [] })
  const latest = useRef(options)
  useEffect(() => {
    latest.current = options
  })
  const isDynamic = typeof options === 'function'
  useEffect(() => {
    if (!isDynamic || !isOpen) return
    const abort = new AbortController()
    const timer = setTimeout(() => {
      const load = latest.current
      if (typeof load !== 'function') return
      load(text, abort.signal).then(
        (found) => !abort.signal.aborted && setLoaded({ found }),
        (error) => !abort.signal.aborted && setLoaded({ found: [], failed: String(error?.message ?? error) }),
      )
    }, DEBOUNCE_MS)
    return () => {
      clearTimeout(timer)
      abort.abort()
    }
  }, [isDynamic, isOpen, text])
  if (typeof options === 'function') return { found: loaded.found, failed: loaded.failed }
  const wanted = text.trim().toLowerCase()
  const matches = options.filter((option) => (option.label ?? option.value).toLowerCase().includes(wanted))
  return { found: matches, failed: undefined }
}
