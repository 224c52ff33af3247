/** Texts of stays: their page, record, dialogs, and the list of a night. */
import { count, counted } from '../../lib/format.ts'

export const states = {
  held: 'On hold',
  booked: 'Booked',
  released: 'Released',
  expired: 'Expired',
  void: 'Void',
}

export const figures = {
  title: 'Now',
  held: 'On hold',
  heldOf: (held: number, most: number) => `${count(held)} of at most ${count(most)}`,
  next: 'Next deadline',
  none: 'none',
  records: 'Records',
  recordsTip: 'Held stays, and others until 72 h after their last night',
  space: 'Storage of records',
  oversold: 'Oversold nights',
  charts: 'Charts of stays',
  day: 'Day begins',
  dayTip: 'Until then the night before can be sold',
  changeDay: 'Change when the day begins…',
  read: (node: string, role: string) => `Reported by ${node}, ${role}.`,
}

export const day = {
  title: (shard: string) => `When the day of ${shard} begins`,
  at: (time: string, before: number) =>
    before === 0 ? `${time} UTC` : `${time} UTC ${before < 0 ? 'the day before' : 'the day after'}`,
  action: 'Change',
  minutes: 'Minutes after midnight UTC',
  hint: '−840 to 1,200. 480 is midnight in California in winter, −60 midnight in Vienna.',
  invalid: 'Enter a whole number from −840 to 1,200',
  same: 'It begins then already',
  effect: (time: string) =>
    `The day begins at ${time}. Until then the night before can be sold. All nodes of the shard follow at once.`,
  done: (shard: string, time: string) => `The day of ${shard} begins at ${time}`,
}

export const oversold = {
  title: (nights: number) => (nights === 1 ? '1 night is oversold' : `${count(nights)} nights are oversold`),
  why: 'The source of record lowered these nights below what guests have on hold, or deleted their packages. Nothing more is sold on them, and a hold without a room is not confirmed.',
  steps: [
    'Open a night to see who holds its rooms, and until when. Most holds end by themselves at their deadline.',
    'If the source is right, release holds until no room is missing.',
    'If the source is wrong, send the right number with SETROOMAVL. It includes the rooms on hold.',
  ],
  source: 'In full in docs/operators.md, “Runbook: oversold nights”.',
  table: 'Oversold nights',
  night: 'Night',
  property: 'Property',
  room: 'Room type',
  held: 'On hold',
  owed: 'Missing',
  open: 'Show stays',
  openOf: (property: string, room: string, date: string) => `Show stays of ${property}, ${room}, ${date}`,
  cut: (shown: number) => `The first ${count(shown)} are listed.`,
  unnamed: 'The node does not name them: it runs an older version.',
}

export const find = {
  title: 'Find a stay',
  id: 'Stay id',
  hint: 'A UUID, or 1 to 14 characters, as the booking system chose it.',
  submit: 'Find stay',
  close: 'Close record',
  empty: 'Enter the id of a stay first',
}

export const record = {
  title: (id: string) => `Stay ${id}`,
  id: 'Stay id',
  state: 'State',
  deadline: 'Deadline',
  left: (time: string) => `in ${time}`,
  passed: 'has passed',
  total: 'Total',
  source: 'Source',
  unknownSource: 'not known any more',
  index: 'In this state since',
  atIndex: (index: string) => `at index ${index}`,
  read: (node: string, role: string) => `Read on ${node}, ${role}.`,
  lines: 'Lines',
  line: (n: number) => `Line ${n}`,
  nights: 'Nights',
  nightsOf: (first: string, last: string, nights: number) =>
    nights === 1 ? `${first}, 1 night` : `${first} – ${last}, ${counted(nights, 'night')}`,
  uncounted: 'not in the total',
  days: 'Nights of the stay',
  night: 'Night',
  leftNow: 'Left now',
  price: 'Price',
  features: 'Rate features',
  confirm: 'Confirm…',
  release: 'Release…',
  listNight: 'Other stays of these nights',
  held: 'Its rooms are kept until the deadline, then they go back on sale.',
  booked: 'Its rooms are sold. The record is kept until 72 h after the last night.',
  released: 'Its rooms are back on sale.',
  expired: 'The deadline passed without a confirmation. Its rooms are back on sale.',
  void: 'The id was given up before it was used. A booking that arrives late is refused.',
}

export const whyNot = {
  confirm: { booked: 'It is booked already', ended: 'Only a stay on hold can be confirmed' },
  release: { ended: 'It has no rooms to give back' },
}

export const change = {
  confirmTitle: (id: string, shard: string) => `Confirm stay ${id} of ${shard}`,
  confirmAction: (id: string) => `Confirm stay ${id}`,
  confirmText: 'The stay on hold becomes booked. Its rooms stay taken.',
  confirmDone: (id: string) => `Stay ${id} is booked`,
  releaseTitle: (id: string, shard: string) => `Release stay ${id} of ${shard}`,
  releaseAction: (id: string) => `Release stay ${id}`,
  releaseHeld: 'The hold ends now, and its rooms go back on sale. A guest who is paying for it is refused.',
  releaseBooked: 'This cancels a booking. Its rooms go back on sale, and it cannot be taken back.',
  releaseDone: (id: string) => `Stay ${id} is released`,
  notNotified: 'The booking system is not notified: it sees the new state with its next call.',
  lines: 'Rooms',
}

export const list = {
  title: 'Stays of a property',
  property: 'Property id',
  room: 'Room type',
  anyRoom: 'any',
  night: 'Night',
  nightFormat: 'YYYY-MM-DD',
  nightInvalid: 'Enter the night as a date, such as 2026-11-20',
  submit: 'List stays',
  first: 'Enter a property id first',
  start: 'Enter a property to list its stays, newest first. A click on a night in its calendar lists them, too.',
  none: (property: string) =>
    `The shard remembers no stay of ${property}. Stays are kept until 72 h after their last night.`,
  noneOf: 'The shard remembers no such stay. Other nights or room types of the property may have some.',
  all: 'All stays of the property',
  label: 'Stays',
  id: 'Stay',
  state: 'State',
  deadline: 'Deadline',
  rooms: 'Rooms',
  nights: 'Nights',
  source: 'Source',
  since: 'Since',
  more: 'Load more stays',
  several: (rooms: string, more: number) => (more === 0 ? rooms : `${rooms} and ${counted(more, 'more line')}`),
}

export const night = {
  title: 'Stays of this night',
  roomsOf: (rooms: number) => counted(rooms, 'room'),
  none: 'The shard remembers no stay of this night.',
  all: 'Open in stays',
  more: (shown: number) => `The newest ${count(shown)} are listed.`,
}
