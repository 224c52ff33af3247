/**
 * The console's icons (docs/design/console.md#appearance): 16 px grid, 1.5 px stroke, one colour. States and roles
 * differ by shape alone at 14 px.
 */
import type { ReactNode } from 'react'

const SHAPES = {
  // Roles
  key: <path d="M8 2.25a2.75 2.75 0 1 1 0 5.5 2.75 2.75 0 0 1 0-5.5ZM8 7.75v6.5M8 10.5h2.5M8 13.75h2" />,
  dot: <circle cx="8" cy="8" r="3.5" fill="currentColor" />,
  ring: <circle cx="8" cy="8" r="4.75" strokeDasharray="2.4 2.57" />,
  half: <path d="M8 3.5a4.5 4.5 0 0 1 0 9 4.5 4.5 0 0 1 0-9ZM8 3.5v9" />,
  square: <rect x="4" y="4" width="8" height="8" rx="1" />,
  // States
  check: <path d="m3 8.5 3.25 3.25L13 5" />,
  down: <path d="m3.5 6 4.5 4.5L12.5 6" />,
  'double-down': <path d="M3.5 3.75 8 8.25l4.5-4.5M3.5 8.5 8 13l4.5-4.5" />,
  'up-right': <path d="M4 12 12 4M5.5 4H12v6.5" />,
  'plug-off': <path d="M6 2v3M10 2v3M4.5 5h7v2.5a3.5 3.5 0 0 1-7 0ZM8 11v3M2 14 14 2" />,
  hourglass: <path d="M4 2h8M4 14h8M4.75 2v2.5L8 8l3.25-3.5V2M4.75 14v-2.5L8 8l3.25 3.5V14" />,
  chip: (
    <path d="M4.5 4.5h7v7h-7ZM6.5 4.5v-3M9.5 4.5v-3M6.5 14.5v-3M9.5 14.5v-3M4.5 6.5h-3M4.5 9.5h-3M14.5 6.5h-3M14.5 9.5h-3" />
  ),
  octagon: <path d="M5.5 2h5L14 5.5v5L10.5 14h-5L2 10.5v-5ZM8 5v3.75M8 11v.01" />,
  'two-keys': (
    <path d="M4.5 2.5a2 2 0 1 1 0 4 2 2 0 0 1 0-4ZM4.5 6.5v7M4.5 10H6M11.5 2.5a2 2 0 1 1 0 4 2 2 0 0 1 0-4ZM11.5 6.5v7M11.5 10H13" />
  ),
  'not-equal': <path d="M3 6h10M3 10h10M11 2.5 5 13.5" />,
  question: <path d="M5.25 6a2.75 2.75 0 1 1 4.2 2.33C8.5 8.95 8 9.4 8 10.25M8 13v.01" />,
  triangle: <path d="M8 2.25 14.5 13.5h-13ZM8 6.5v3M8 11.5v.01" />,
  info: <path d="M8 1.75a6.25 6.25 0 1 1 0 12.5 6.25 6.25 0 0 1 0-12.5ZM8 7.25V11M8 5v.01" />,
  stop: <path d="M8 1.75a6.25 6.25 0 1 1 0 12.5 6.25 6.25 0 0 1 0-12.5ZM5.75 5.75l4.5 4.5M10.25 5.75l-4.5 4.5" />,
  vote: <path d="M8 2v2M8 12v2M2 8h2M12 8h2M8 5.5a2.5 2.5 0 1 1 0 5 2.5 2.5 0 0 1 0-5Z" />,
  minus: <path d="M3 8h10" />,
  // Actions
  pause: <path d="M5.5 3.5v9M10.5 3.5v9" />,
  play: <path d="M4.5 3v10l8-5Z" />,
  copy: <path d="M5.5 5.5h8v8h-8ZM10.5 5.5v-3h-8v8h3" />,
  link: (
    <path d="M6.5 9.5 9.5 6.5M7 4.5 8.75 2.75a3.2 3.2 0 0 1 4.5 4.5L11.5 9M9 11.5l-1.75 1.75a3.2 3.2 0 0 1-4.5-4.5L4.5 7" />
  ),
  download: <path d="M8 2v8M4.5 7 8 10.5 11.5 7M2.5 13.5h11" />,
  upload: <path d="M8 10.5v-8M4.5 6 8 2.5 11.5 6M2.5 13.5h11" />,
  filter: <path d="M2 3h12L9.5 8.5v5l-3-1.75V8.5Z" />,
  columns: <path d="M2 3h12v10H2ZM6 3v10M10 3v10" />,
  calendar: <path d="M2.5 3.5h11v10h-11ZM2.5 6.5h11M5.5 2v3M10.5 2v3" />,
  map: <path d="m2 4 4-1.5 4 1.5 4-1.5V12l-4 1.5L6 12l-4 1.5ZM6 2.5V12M10 4v9.5" />,
  table: <path d="M2 3h12v10H2ZM2 6.5h12M2 9.75h12M6.5 6.5V13" />,
  clock: <path d="M8 1.75a6.25 6.25 0 1 1 0 12.5 6.25 6.25 0 0 1 0-12.5ZM8 4.5V8l2.5 1.75" />,
  shield: <path d="M8 1.75 13 3.5V8c0 3-2 5.25-5 6.25C5 13.25 3 11 3 8V3.5Z" />,
  plus: <path d="M8 3v10M3 8h10" />,
  cross: <path d="m4 4 8 8M12 4l-8 8" />,
  search: <path d="M7 2.5a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9ZM10.25 10.25 14 14" />,
  more: <path d="M3.5 8v.01M8 8v.01M12.5 8v.01" strokeWidth="2" />,
  menu: <path d="M2.5 4.5h11M2.5 8h11M2.5 11.5h11" />,
  refresh: <path d="M13 8a5 5 0 1 1-1.5-3.55M13 2v3h-3" />,
  back: <path d="M6.5 3.5 2.5 7.5l4 4M2.5 7.5h7a4 4 0 0 1 0 6H8" />,
  'chevron-down': <path d="m4 6 4 4 4-4" />,
  'chevron-up': <path d="m4 10 4-4 4 4" />,
  'chevron-right': <path d="m6 4 4 4-4 4" />,
  'chevron-left': <path d="m10 4-4 4 4 4" />,
  external: <path d="M9.5 2.5h4v4M13.5 2.5 7.5 8.5M11.5 9v4.5h-9v-9H7" />,
  eye: (
    <path d="M1.5 8S4 3.5 8 3.5 14.5 8 14.5 8 12 12.5 8 12.5 1.5 8 1.5 8ZM8 6.25a1.75 1.75 0 1 1 0 3.5 1.75 1.75 0 0 1 0-3.5Z" />
  ),
  'eye-off': (
    <path d="M3.5 5.25A11 11 0 0 0 1.5 8S4 12.5 8 12.5a6 6 0 0 0 2.5-.55M6 3.8a6 6 0 0 1 2-.3c4 0 6.5 4.5 6.5 4.5a11 11 0 0 1-1.5 1.9M2.5 2.5l11 11" />
  ),
  trash: <path d="M2.5 4h11M6 4V2.5h4V4M4 4l.75 9.5h6.5L12 4M6.75 7v3.5M9.25 7v3.5" />,
  edit: <path d="M10.5 2.75 13.25 5.5 5.5 13.25l-3.25.5.5-3.25Z" />,
  star: <path d="m8 2 1.8 3.9 4.2.5-3.1 2.9.8 4.2L8 11.4l-3.7 2.1.8-4.2L2 6.4l4.2-.5Z" />,
  // Navigation
  overview: <path d="M2.5 2.5h4.5v5H2.5ZM9 2.5h4.5v3H9ZM9 7.5h4.5v6H9ZM2.5 9.5h4.5v4H2.5Z" />,
  topology: (
    <path d="M1.75 6.25h3.5v3.5h-3.5ZM10.75 2h3.5v3.5h-3.5ZM10.75 10.5h3.5V14h-3.5ZM5.25 8h2.5M10.75 3.75h-3v8.5h3" />
  ),
  shards: <path d="M2.5 2.5h11v3h-11ZM2.5 6.5h11v3h-11ZM2.5 10.5h11v3h-11ZM4.75 4v.01M4.75 8v.01M4.75 12v.01" />,
  playground: <path d="m2.5 4 3.5 4-3.5 4M8 12.5h5.5" />,
  imports: <path d="M8 2v6.5M5 6l3 3 3-3M2.5 9.5v4h11v-4" />,
  snapshots: <path d="M8 2 14 5 8 8 2 5ZM2 8l6 3 6-3M2 11l6 3 6-3" />,
  queue: <path d="M2.5 3h3v3h-3ZM2.5 10h3v3h-3ZM8 4.5h5.5M8 11.5h5.5M4 6v4" />,
  metrics: <path d="M2 2.5v11h12M4.5 10.5 7 6.5l2.5 2.5L13 4" />,
  operations: <path d="M2.5 5.5h9M9 3l2.5 2.5L9 8M13.5 10.5h-9M7 8l-2.5 2.5L7 13" />,
  audit: <path d="M4 1.75h5.5L12.5 5v9.25H4ZM9.25 2v3.25h3M6.25 8h4M6.25 11h4" />,
  registry: (
    <path d="M8 1.75v3M8 4.75a2 2 0 1 1 0 4 2 2 0 0 1 0-4ZM6.4 8 3.75 10.5M9.6 8l2.65 2.5M3 10.5a1.5 1.5 0 1 1 0 3 1.5 1.5 0 0 1 0-3ZM13 10.5a1.5 1.5 0 1 1 0 3 1.5 1.5 0 0 1 0-3Z" />
  ),
  settings: (
    <path d="M2 4.5h6M12 4.5h2M10 2.75a1.75 1.75 0 1 1 0 3.5 1.75 1.75 0 0 1 0-3.5ZM2 11.5h2M8 11.5h6M6 9.75a1.75 1.75 0 1 1 0 3.5 1.75 1.75 0 0 1 0-3.5Z" />
  ),
  person: (
    <path d="M8 2.5a2.75 2.75 0 1 1 0 5.5 2.75 2.75 0 0 1 0-5.5ZM2.75 14c.4-3 2.4-4.5 5.25-4.5s4.85 1.5 5.25 4.5" />
  ),
} as const satisfies { readonly [name: string]: ReactNode }

export type IconName = keyof typeof SHAPES
/** Decoration beside a word, or named by what holds it: hidden from the accessibility tree. */
export function Icon({ name, size = 16, className }: { name: IconName; size?: number; className?: string }) {
  return (
    <svg
      width={size}
      height={size}
      viewBox="0 0 16 16"
      fill="none"
      stroke="currentColor"
      strokeWidth={1.5}
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
      focusable="false"
      className={className ? `shrink-0 ${className}` : 'shrink-0'}
    >
      {SHAPES[name]}
    </svg>
  )
}
