/** Texts of the past view. */
import { counted } from '../../lib/format.ts'

export const bar = {
  label: 'Past view',
  title: (at: string) => `Past: ${at}`,
  disabled: 'Actions are disabled.',
  partial: 'This page shows only the present. Overview, shards, nodes, topology, events and charts have a past.',
  back: 'Back to now',
  moment: 'Moment (UTC)',
  invalid: 'Not a moment in the past. Such as 18:20 or 2026-11-20 18:00.',
  scrubber: 'Time',
  window: 'Shown time',
  windows: { '3600': '1 h', '21600': '6 h', '86400': '24 h', '259200': '72 h' },
  previousEvent: 'Previous event',
  nextEvent: 'Next event',
  earlier: 'One minute earlier',
  later: 'One minute later',
  play: 'Play',
  pause: 'Pause',
  speed: 'Speed',
  speeds: { '1': '1×', '10': '10×', '60': '60×' },
  noEvent: 'No other event was recorded.',
  events: (events: number, leaders: number) =>
    `${counted(events, 'event')} in the shown time, ${counted(leaders, 'change')} of leader`,
  changed: 'What changed…',
  more: 'Show more controls',
  less: 'Show fewer controls',
}

export const changes = {
  title: 'What changed',
  from: 'From (UTC)',
  to: 'To (UTC)',
  compare: 'Compare',
  invalid: 'Not a moment in the past.',
  order: 'The first moment must be before the second.',
  differences: 'Differences between the two states',
  same: 'No difference: the two states are the same.',
  events: 'What happened in between',
  noEvents: 'No events in between.',
  more: 'More events exist than are shown.',
  note: 'Copy incident note',
}

export const note = {
  title: (where: string) => `Incident note: ${where}`,
  cluster: 'the whole cluster',
  range: (from: string, to: string) => `From ${from} to ${to}.`,
  differences: 'Differences',
  none: 'None.',
  timeline: 'Timeline',
  head: '| Time (UTC) | Shard | Node | Event |',
  more: 'Further events are not listed.',
  link: (url: string) => `View of the end: ${url}`,
}
