/** Texts of the queue pages. */
import type {
  DeadReason,
  JobEvent,
  JobState,
  RedriveState,
  TailEventKind,
  TopicConfig,
  TopicSeries,
} from '@vacancy/shared/contract'
import { count, counted } from '../../lib/format.ts'

export const common = {
  queue: 'Queue',
  cancel: 'Cancel',
  close: 'Close',
  jobs: (jobs: number) => counted(jobs, 'job'),
  submit: 'Submit job',
  consumers: 'Consumers',
}

export const topics = {
  lead: (topics: number, ready: number, dead: number) =>
    `${counted(topics, 'topic')}, ${count(ready)} ready, ${count(dead)} dead`,
  panel: 'All topics',
  empty:
    'No topics yet. A topic is a named list of jobs: producers submit to it, consumers connect to it and acknowledge each job.',
  create: 'New topic',
  filter: 'Filter topics',
  filtered: (topics: number, filter: string) => `None of ${counted(topics, 'topic')} matches ${filter}`,
  ignored: (part: string) => `Ignored: ${part}`,
  unknownColumn: (column: string) => `unknown column ${column}`,
  unknownSort: (sort: string) => `cannot sort by ${sort}`,
  unknownKey: (key: string, known: string) => `unknown key ${key}; known keys are ${known}`,
  needsNumber: (key: string, value: string) => `${key} needs a number, as in ${key}:>100, not ${value}`,
  views: 'Views of the list of topics',
  all: 'all topics',
  absent: 'This control plane does not serve a job queue.',
  standby: 'Standby',
  standbyHint: 'Another process owns the journal of this queue. Topics are shown there.',
}

export const columns = {
  topic: 'Topic',
  state: 'State',
  ready: 'Ready',
  readyTip: 'Jobs that wait for a consumer',
  leased: 'Leased',
  leasedTip: 'Jobs that a consumer works on',
  delayed: 'Delayed',
  delayedTip: 'Jobs that wait for their time or for their next attempt',
  dead: 'Dead',
  deadOf: (topic: string) => ` dead jobs of ${topic}`,
  deadTip: 'Jobs that failed for good, kept with their payloads',
  in: 'In',
  inTip: 'Jobs accepted per second, over the last minute',
  out: 'Out',
  outTip: 'Jobs finished per second, over the last minute',
  failed: 'Failed',
  failedTip: 'Failed deliveries per second, over the last minute',
  oldest: 'Oldest ready',
  oldestTip: 'Age of the oldest job that waits for a consumer',
  consumers: 'Consumers',
  trend: 'Ready, 10 min',
  trendTip: 'Jobs that waited for a consumer in the last ten minutes',
  trendOf: (topic: string, low: number, high: number, now: number) =>
    `Ready jobs of ${topic} in the last ten minutes: ${count(low)} to ${count(high)}, last ${count(now)}`,
  delivery: 'Delivery p99, 10 min',
  deliveryTip:
    'Time from acceptance to the first delivery, p99 of each ten seconds, in the last ten minutes; last value',
  deliveryOf: (topic: string, low: string, high: string, last: string) =>
    `Time to delivery of ${topic}, p99, in the last ten minutes: ${low} to ${high}, last ${last}`,
  bytes: 'Size',
  bytesTip: 'Payloads of unfinished jobs',
}

export const states = {
  paused: 'Paused',
  stalled: (consumers: number) => `${counted(consumers, 'consumer')} stalled`,
  noConsumers: 'No consumers',
  dead: (jobs: number) => `${count(jobs)} dead`,
  active: 'Active',
  idle: 'Idle',
}

export const jobStates: Readonly<Record<JobState, string>> = {
  ready: 'Ready',
  leased: 'Leased',
  delayed: 'Delayed',
  dead: 'Dead',
  done: 'Done',
}

export const deadReasons: Readonly<Record<DeadReason, string>> = {
  max_attempts: 'failed too often',
  max_deliveries: 'its consumers disconnected too often',
  rejected: 'rejected by a consumer',
}

export const topic = {
  label: (topic: string) => `Topic ${topic}`,
  unknownTitle: 'Topic not found',
  unknown: (topic: string) => `There is no topic ${topic}.`,
  similar: 'Similar topics:',
  openTopics: 'Open all topics',
  tabs: {
    ready: 'Ready',
    leased: 'Leased',
    delayed: 'Delayed',
    dead: 'Dead',
    done: 'Done',
    consumers: 'Consumers',
    charts: 'Charts',
    tail: 'Live',
    config: 'Configuration',
  },
  numbers: 'Numbers',
  size: 'Size',
  redrive: 'Redrive dead…',
  noDead: 'There are no dead jobs',
  more: 'More',
  moreActions: (topic: string) => `More actions for ${topic}`,
  pause: 'Pause…',
  resume: 'Resume…',
  purge: 'Purge…',
  delete: 'Delete topic…',
}

export const charts = {
  title: 'Topic over time',
  range: 'Time range',
  minutes: (minutes: string) => (minutes === '60' ? '1 hour' : `${minutes} minutes`),
  rates: 'Rates',
  waiting: 'Waiting',
  oldest: 'Oldest ready',
  dead: 'Dead',
  delivery: 'Time to delivery',
  handling: 'Handling time',
  jobs: 'jobs',
  noData: 'No values yet. One is taken every ten seconds while the queue runs.',
  series: {
    in: 'in',
    out: 'out',
    failed: 'failed',
    ready: 'ready',
    delayed: 'delayed',
    leased: 'leased',
    dead: 'dead',
    oldest: 'age',
    deliveryP50: 'p50',
    deliveryP99: 'p99',
    handlingP50: 'p50',
    handlingP99: 'p99',
  } satisfies Record<TopicSeries, string>,
}

export const tail = {
  title: 'Live tail',
  filter: 'Filter events',
  filtered: (events: number, filter: string) => `None of ${counted(events, 'event')} matches ${filter}`,
  pause: 'Pause',
  resume: 'Resume',
  skipped: (events: number) =>
    `${counted(events, 'event')} not shown: a live tail takes 50 events a second, and keeps the newest 200`,
  empty: 'Nothing has happened since this page was opened.',
  at: 'Time',
  event: 'Event',
  error: 'Error',
  events: {
    accepted: 'Accepted',
    delivered: 'Delivered',
    done: 'Done',
    failed: 'Failed',
    expired: 'Lease expired',
    disconnected: 'Disconnected',
    released: 'Released',
    dead: 'Dead',
    redriven: 'Redriven',
    cancelled: 'Cancelled',
  } satisfies Record<TailEventKind, string>,
}

export const jobs = {
  views: 'Views of jobs',
  viewText: (parts: readonly (readonly [name: string, value: string])[]) =>
    parts.length === 0 ? 'ready jobs' : parts.map(([name, value]) => `${name}: ${value}`).join(', '),
  id: 'Job',
  age: 'Age',
  tries: 'Failures',
  triesTip: 'Failed attempts, of the attempts before the job is dead',
  triesOf: (failures: number, max: number) => `${failures} of ${max}`,
  priority: 'Priority',
  runAt: 'Due in',
  due: 'now',
  lease: 'Lease ends in',
  consumer: 'Consumer',
  finished: 'Finished',
  died: 'Died',
  size: 'Size',
  error: 'Last error',
  noError: 'none',
  head: 'Payload',
  noPayload: 'no payload',
  binary: (size: string) => `binary, ${size}`,
  more: 'Show more jobs',
  titles: {
    ready: 'Ready jobs',
    leased: 'Leased jobs',
    delayed: 'Delayed jobs',
    dead: 'Dead jobs',
    done: 'Finished jobs',
  } satisfies Record<JobState, string>,
  empty: {
    ready: 'No jobs wait for a consumer.',
    leased: 'No consumer works on a job right now.',
    delayed: 'No jobs wait for their time or for their next attempt.',
    dead: 'No dead jobs. A job is dead after too many failures, or when a consumer rejects it.',
    done: 'No jobs finished since the queue started. The last 1,000 are remembered.',
  } satisfies Record<JobState, string>,
}

export const dead = {
  groups: 'Errors',
  groupsHint: 'Dead jobs by error. Numbers, quoted parts and IDs are replaced by *.',
  group: 'Error',
  count: 'Jobs',
  first: 'First',
  last: 'Last',
  actions: 'Actions',
  noText: 'without an error text',
  redriveGroup: 'Redrive…',
  chosen: 'Error group',
  clearGroup: 'Show all errors',
  filter: 'Filter dead jobs',
  error: 'Error contains',
  failures: 'Failures at least',
  timeFormat: 'YYYY-MM-DD HH:MM',
  timeInvalid: 'Not a time, such as 2026-11-20 18:30.',
  after: 'Died after (UTC)',
  before: 'Died before (UTC)',
  clear: 'Clear filters',
  filtered: 'No dead job matches these filters.',
  redriveShown: 'Redrive matching…',
  redriveSelected: (jobs: number) => `Redrive ${count(jobs)} selected…`,
  deleteSelected: (jobs: number) => `Delete ${count(jobs)} selected…`,
  deleteMatching: 'Delete matching…',
  downloadJson: 'Download JSON lines',
  downloadCsv: 'Download CSV',
  downloading: (jobs: number) => `${counted(jobs, 'job')} read`,
  downloaded: (jobs: number, name: string) => `${counted(jobs, 'job')} saved to ${name}`,
}

export const redrive = {
  title: (topic: string) => `Redrive dead jobs of ${topic}`,
  matching: 'Matching now',
  counting: 'counting…',
  atLeast: (jobs: number) => `at least ${count(jobs)}`,
  group: 'Error',
  filter: 'Which',
  all: 'all dead jobs',
  selected: (jobs: number) => `${counted(jobs, 'selected job')}`,
  to: 'To topic',
  same: (topic: string) => `${topic} (their own topic)`,
  effects: 'What will happen',
  effect: [
    'The jobs become ready again, oldest first, at the end of the queue. Their failures and deliveries are counted from 0 again.',
    'A job leaves the dead list only once its topic has stored it. Cancelling or a crash loses nothing.',
    'Jobs that fail again become dead again. Fix the cause first.',
  ],
  rateHint: (rate: string) => `The topic delivers at most ${rate}.`,
  pausedHint: 'The topic is paused: the jobs wait until it is resumed.',
  sample: (jobs: number) => `The first ${counted(jobs, 'job')}`,
  confirm: (jobs: string, topic: string) => `Redrive ${jobs} to ${topic}`,
  nothing: 'No dead job matches',
  running: (moved: number) => `${counted(moved, 'job')} redriven`,
  begun: (jobs: string, topic: string) => `Redriving ${jobs} to ${topic}`,
  speed: 'Speed',
  speedHint: 'More than 10,000 jobs move at a rate. The queue continues after a restart.',
  atOnce: 'At once',
  perSecond: (jobs: number) => `${count(jobs)} jobs per second`,
  done: (moved: number, topic: string) => `${counted(moved, 'job')} redriven to ${topic}`,
  missing: (jobs: number) => `${counted(jobs, 'job')} had left the dead list already:`,
  conflicts: (jobs: number, topic: string) => `${counted(jobs, 'job')} stayed dead, because ${topic} knows the ID:`,
}

export const running = {
  title: (topic: string) => `Redrive of ${topic}`,
  states: { running: 'Running', paused: 'Paused', cancelled: 'Canceled', done: 'Done' } satisfies Record<
    RedriveState,
    string
  >,
  facts: (rate: number, to: string, by: string) => `${count(rate)} jobs per second to ${to}, started by ${by}`,
  progress: (done: number, total: number) => `${count(done)} of ${counted(total, 'job')}`,
  pausedBecause: (reason: string) => `Paused by the queue: ${reason}`,
  left: (jobs: number) => `${counted(jobs, 'job')} stayed dead`,
  pause: 'Pause redrive',
  resume: 'Resume redrive',
  cancel: 'Cancel redrive',
  cancelHint: 'Jobs that were not redriven yet stay dead.',
}

export const purge = {
  title: (topic: string) => `Purge ${topic}`,
  states: 'Jobs to remove',
  option: (state: string, jobs: number) => `${state}: ${counted(jobs, 'job')}`,
  effect: (jobs: number) =>
    jobs === 0
      ? 'Choose which jobs to remove.'
      : `About ${counted(jobs, 'job')} with their payloads are deleted for good. Jobs that consumers work on are kept.`,
  download: 'Download the dead jobs first:',
  confirm: (topic: string) => `Purge ${topic}`,
  choose: 'Choose at least one state',
  done: (jobs: number) => `${counted(jobs, 'job')} removed`,
}

export const remove = {
  title: (topic: string) => `Delete topic ${topic}`,
  effect: (jobs: number, dead: number) =>
    `The topic is deleted with ${counted(jobs, 'unfinished job')} and ${counted(dead, 'dead job')}. Its consumers are disconnected, and producers get errors. This cannot be undone.`,
  confirm: (topic: string) => `Delete ${topic}`,
  done: (topic: string, jobs: number) => `${topic} deleted with ${counted(jobs, 'job')}`,
}

export const deleteDead = {
  title: (topic: string) => `Delete dead jobs of ${topic}`,
  effect: (jobs: string) => `${jobs} with their payloads are deleted for good.`,
  confirm: (jobs: string) => `Delete ${jobs}`,
  done: (jobs: number) => `${counted(jobs, 'dead job')} deleted`,
}

export const pause = {
  title: (topic: string) => `Pause ${topic}`,
  effect: (consumers: number) =>
    `${counted(consumers, 'consumer')} will receive no further jobs. Jobs are still accepted, and deliveries in progress continue.`,
  confirm: (topic: string) => `Pause ${topic}`,
  done: (topic: string) => `${topic} is paused`,
  resumeTitle: (topic: string) => `Resume ${topic}`,
  resumeEffect: (ready: number, consumers: number) =>
    `${counted(ready, 'ready job')} will be delivered to ${counted(consumers, 'consumer')}.`,
  resumeConfirm: (topic: string) => `Resume ${topic}`,
  resumed: (topic: string) => `${topic} is resumed`,
}

export const consumers = {
  title: 'Consumers',
  titleOf: (topic: string) => `Consumers of ${topic}`,
  lead: 'Programs that are connected and receive jobs.',
  empty: 'No consumers are connected. A consumer opens a WebSocket, names a topic and acknowledges each job.',
  id: 'Consumer',
  name: 'Name',
  topic: 'Topic',
  token: 'Token',
  noToken: 'unnamed',
  remote: 'Address',
  inFlight: 'In flight',
  inFlightTip: 'Jobs it works on, of the most it receives at once',
  inFlightOf: (leased: number, prefetch: number) => `${leased} of ${prefetch}`,
  acked: 'Finished',
  ackedOf: (acked: number, delivered: number) => `${count(acked)} of ${count(delivered)}`,
  connected: 'Connected',
  lastMessage: 'Last message',
  state: 'State',
  stalled: 'Stalled',
  stalledTip: 'Three deliveries in a row expired without a message from it',
  active: 'Active',
  actions: 'Actions',
  disconnect: 'Disconnect…',
  disconnectTitle: (id: string) => `Disconnect consumer ${id}`,
  disconnectEffect: (name: string, leased: number) =>
    `The connection of ${name} is closed with code 4403. ${leased === 0 ? 'It works on no job.' : `${counted(leased, 'job')} it works on ${leased === 1 ? 'goes' : 'go'} to other consumers at once.`} It may connect again.`,
  disconnectConfirm: (id: string) => `Disconnect ${id}`,
  disconnected: (id: string) => `${id} disconnected`,
  more: 'Show more consumers',
}

export const job = {
  unknownTitle: 'Job not found',
  unknown: (job: string, topic: string) =>
    `${topic} does not know job ${job}. It finished some time ago, was cancelled or deleted, or never existed.`,
  openTopic: (topic: string) => `Open ${topic}`,
  label: (job: string) => `Job ${job}`,
  panel: 'Job',
  close: 'Close job',
  openPage: 'Open as page',
  previous: 'Previous job',
  next: 'Next job',
  none: 'no further job in this list',
  state: 'State',
  submitted: 'Submitted',
  priority: 'Priority',
  failures: 'Failures',
  deliveries: 'Deliveries',
  size: 'Payload',
  consumer: 'Consumer',
  lease: 'Lease ends',
  runAt: 'Ready at',
  finished: 'Finished',
  died: 'Died',
  reason: 'Reason',
  error: 'Last error',
  timeline: 'Timeline',
  timelineCut: 'Only the last 20 events are kept.',
  redrive: 'Redrive job…',
  editSubmit: 'Edit and submit as new',
  copyCurl: 'Copy as curl',
  events: {
    submitted: 'submitted',
    delivered: 'delivered to',
    nack: 'failed on',
    expired: 'lease ended on',
    disconnect: 'returned, disconnected:',
    release: 'released by',
    dead: 'dead',
    redriven: 'redriven',
    done: 'finished by',
  } satisfies Record<JobEvent | 'submitted' | 'done', string>,
}

export const payload = {
  title: 'Payload',
  label: 'Payload as',
  json: 'JSON',
  text: 'Text',
  hex: 'Hex',
  none: 'This job has no payload.',
  gone: 'Payloads of finished jobs are not kept.',
  empty: 'The payload is empty: 0 bytes.',
  notText: 'Not valid UTF-8. The hex view shows the bytes.',
  notJson: (fault: string) => `Not valid JSON: ${fault}`,
  cut: (shown: string, size: string) => `Showing the first ${shown} of ${size}. Download the rest.`,
  cutJson: (shown: string, size: string) =>
    `Showing the first ${shown} of ${size}, as submitted. Download the payload to read all of it.`,
  download: (size: string) => `Download (${size})`,
}

export const submit = {
  title: 'Submit job',
  titleTo: (topic: string) => `Submit job to ${topic}`,
  topic: 'Topic',
  topicFirst: 'Choose a topic first',
  unknownTopic: (topic: string) => `There is no topic ${topic}. Create it first`,
  id: 'Job ID',
  idHint: 'A topic stores each ID once, so repeating a request is harmless.',
  badId: 'Enter 1 to 256 bytes without control characters',
  payload: 'Payload',
  kind: 'Payload type',
  kinds: { json: 'JSON', text: 'Text', base64: 'Base64', none: 'None' },
  badJson: (fault: string) => `Not valid JSON: ${fault}`,
  badBase64: 'Not valid base64: use A–Z, a–z, 0–9, + and /, padded with =',
  bytes: (size: string) => `${size} of payload`,
  priority: 'Priority',
  priorityHint: '0 to 9, the highest first',
  delay: 'Delay in seconds',
  delayHint: 'Leave empty to deliver it at once',
  badDelay: 'Enter 0 to 31,536,000 seconds',
  confirm: (topic: string) => `Submit to ${topic}`,
  done: (id: string) => `${id} submitted`,
  open: 'Open job',
  duplicate: (id: string, topic: string) =>
    `${topic} knows ${id} already, so nothing was submitted. Choose another ID.`,
  copyOf: (job: string) => `A new job with the payload of ${job}. The old one stays where it is.`,
  fromCommandLine: 'From the command line',
}

export const create = {
  title: 'New topic',
  name: 'Name',
  nameHint: 'Letters, digits and . _ : - such as hotel-sync. It cannot be renamed.',
  badName: 'Enter 1 to 200 letters, digits or . _ : - that begin with a letter or digit',
  exists: (topic: string) => `${topic} exists already`,
  settings: 'Settings',
  confirm: (topic: string) => (topic === '' ? 'Create topic' : `Create ${topic}`),
  done: (topic: string) => `${topic} created`,
}

export const config = {
  title: 'Configuration',
  hint: 'Changes apply to the next delivery.',
  save: 'Save configuration',
  nothing: 'Nothing is changed',
  revert: 'Revert',
  saved: (keys: string) => `Saved: ${keys}`,
  bad: 'Check the marked values first',
  range: (min: string, max: string) => `Enter ${min} to ${max}`,
  keys: {
    ack_deadline_ms: ['Acknowledgement deadline (ms)', 'How long a consumer may take before its lease ends'],
    max_attempts: ['Attempts', 'Failures until a job is dead'],
    max_deliveries: ['Deliveries', 'Deliveries after which a disconnect makes a job dead'],
    retry_base_ms: ['First retry after (ms)', 'Doubles with each further failure'],
    retry_max_ms: ['Longest retry delay (ms)', 'Upper bound of the delay after a failure'],
    max_jobs: ['Jobs', 'Unfinished jobs beyond which submissions are refused'],
    max_bytes: ['Bytes', 'Payload bytes of unfinished jobs beyond which submissions are refused'],
    dedup_window_sec: ['Deduplication window (s)', 'How long the IDs of finished jobs are known'],
    dlq_max_jobs: ['Dead jobs', 'Beyond it the oldest dead jobs are dropped for good'],
    dlq_max_bytes: ['Dead bytes', 'The same for their payload bytes'],
    dlq_max_age_ms: ['Dead job age (ms)', 'Older dead jobs are dropped for good'],
    ordered: ['One delivery at a time', 'In the whole topic'],
    max_leased: ['Deliveries at a time', 'Over all consumers; 0 for no limit'],
    rate_per_sec: ['Deliveries per second', '0 for no limit'],
    exclusive_consumer_name: ['Exclusive consumer names', 'A new connection closes older ones with its name'],
    starvation_guard: ['Starvation guard', 'Every so many deliveries the oldest job goes first; 0 for never'],
    paused: ['Paused', 'Accepts jobs and delivers none'],
  } satisfies Record<keyof TopicConfig, readonly [string, string]>,
}
