/**
 * `vacancy cluster`: the state of a shard, and its changes (docs/design/http.md#cluster-changes). An accepted change
 * has only been started. With --wait a command ends when the shard shows the result, or with the reason of the failure.
 */

import { isAbsolute } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { EXIT, ID_RULE, parseId, VacancyError } from '@vacancy/shared'
import {
  type ClusterInfo,
  type ClusterOperation,
  type ClusterOperations,
  clusterInfoBody,
  NODE_ROUTES,
  type NodeMember,
  type NodeSetTime,
  operationsBody,
  setTimeBody,
  statusBody,
} from '@vacancy/shared/contract'
import { type Command, defineCommand, named, runCommands, whole } from '@vacancy/shared/node'
import {
  type Access,
  fetchDocument,
  parseReply,
  readAuthorities,
  readToken,
  refusal,
  schemeOf,
  send,
  usage,
} from '@vacancy/shared/node-api'

/** Polling interval of a waiting command. */
const POLL_MS = 250
/** A leader waits 10 minutes for a learner to catch up; after that its entry must be committed. */
const WAIT_SECONDS = 660
/** How long a changed setting may take to be shown. */
const SETTING_MS = 10_000
/** Tolerated clock difference between nodes when earlier operations are distinguished from the present one. */
const CLOCKS_DIFFER_MS = 60_000

const CLIENT_FLAGS = {
  node: {
    type: 'list',
    value: 'HOST:PORT,…',
    default: ['127.0.0.1:8080'],
    summary: 'HTTP address of any node of the shard; of several, the first that responds is used.',
  },
  'token-file': { ...named('FILE'), summary: 'File whose first line is a token of the auth file.' },
  'tls-ca': { ...named('FILE'), summary: 'CA certificates for the nodes, PEM. Selects TLS.' },
  json: { type: 'boolean', summary: 'One JSON document instead of text.' },
} as const

const CHANGE_FLAGS = {
  ...CLIENT_FLAGS,
  wait: { type: 'boolean', summary: 'Ends when the shard shows the result; progress goes to stderr.' },
  'wait-secs': {
    ...whole(WAIT_SECONDS, 1, 86_400, 'seconds'),
    summary: 'How long to wait, with --wait. The change continues after that.',
  },
} as const

type ClientFlags = {
  readonly node: readonly string[]
  readonly tokenFile: string | undefined
  readonly tlsCa: string | undefined
}
type ChangeFlags = ClientFlags & { readonly json: boolean; readonly wait: boolean; readonly waitSecs: number }

function open({ node, tokenFile, tlsCa }: ClientFlags): Promise<ClusterClient> {
  for (const each of node) {
    if (!/^(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+):\d{1,5}$/.test(each)) throw usage(`--node: ${each} is not HOST:PORT`)
  }
  return openClient({ nodes: node, token: readToken(tokenFile), ca: readAuthorities(tlsCa) })
}

function print(lines: readonly string[]): void {
  process.stdout.write(`${lines.join('\n')}\n`)
}

const infoCommand = defineCommand({
  name: 'vacancy cluster info',
  component: 'CLUSTER',
  summary: 'Shows the leader, the members with their progress, and what the shard waits for.',
  flags: CLIENT_FLAGS,
  run: async ({ flags }) => {
    const client = await open(flags)
    const info = await client.info()
    print(flags.json ? [JSON.stringify(info, undefined, 2)] : infoLines(info))
    return EXIT.ok
  },
})

const operationsCommand = defineCommand({
  name: 'vacancy cluster operations',
  component: 'CLUSTER',
  summary: 'Shows the running change and the latest finished ones with their results.',
  flags: CLIENT_FLAGS,
  run: async ({ flags }) => {
    const client = await open(flags)
    const shown = await client.operations()
    print(flags.json ? [JSON.stringify(shown, undefined, 2)] : operationLines(shown.operation, shown.operations))
    return EXIT.ok
  },
})

/** A requested change, and how its result is recognized. */
type Change = {
  readonly label: string
  readonly path: string
  readonly body: Body
  /** Its possible kinds among the operations. */
  readonly kinds: readonly ClusterOperation['kind'][]
  /** Undefined where it is unknown beforehand: a file's digest. */
  readonly node: string | undefined
  /** Whether the shard shows the result, given its earlier state; undefined when only the operations show it. */
  readonly isShown?: (now: ClusterInfo, before: ClusterInfo) => boolean
}

const promoteCommand = defineCommand({
  name: 'vacancy cluster promote',
  component: 'CLUSTER',
  summary: 'Promotes a learner to voter once it has caught up.',
  flags: CHANGE_FLAGS,
  operands: { name: 'NODE', min: 1, max: 1, summary: 'Id of the learner.' },
  run: ({ flags, operands }) => {
    const node = nodeOf(operands)
    return run(flags, {
      label: `promote ${node}`,
      path: '/cluster/promote-learner',
      body: { node_id: node },
      kinds: ['promote'],
      node,
      isShown: ({ members }) => members.voters.includes(node),
    })
  },
})

const demoteCommand = defineCommand({
  name: 'vacancy cluster demote',
  component: 'CLUSTER',
  summary: 'Demotes a voter to learner. A learner leaves the shard.',
  flags: CHANGE_FLAGS,
  operands: { name: 'NODE', min: 1, max: 1, summary: 'Id of the voter or learner.' },
  run: ({ flags, operands }) => {
    const node = nodeOf(operands)
    return run(flags, {
      label: `demote ${node}`,
      path: '/cluster/demote-voter',
      body: { node_id: node },
      kinds: ['demote', 'remove'],
      node,
      isShown: ({ members: now }, { members: before }) =>
        before.voters.includes(node)
          ? now.learners.includes(node) && !now.voters.includes(node)
          : ![...now.voters, ...now.learners].includes(node),
    })
  },
})

const transferCommand = defineCommand({
  name: 'vacancy cluster transfer',
  component: 'CLUSTER',
  summary: 'Transfers leadership to another voter.',
  flags: CHANGE_FLAGS,
  operands: { name: 'NODE', min: 1, max: 1, summary: 'Id of the voter.' },
  run: ({ flags, operands }) => run(flags, transferTo(nodeOf(operands))),
})

function transferTo(node: string): Change {
  return {
    label: `transfer to ${node}`,
    path: '/cluster/transfer-leader',
    body: { target_node_id: node },
    kinds: ['transfer'],
    node,
    isShown: (now) => now.leader_id === node,
  }
}

const stepDownCommand = defineCommand({
  name: 'vacancy cluster step-down',
  component: 'CLUSTER',
  summary:
    'Transfers leadership from the node of --node to the active voter with the least lag. Does nothing where it does not lead.',
  flags: CHANGE_FLAGS,
  run: async ({ flags }) => {
    const client = await open(flags)
    const { node_id, leader_id, nodes } = await client.own()
    if (leader_id !== node_id) {
      const [request, reason] = ['step down', `${node_id} does not lead`]
      print([
        flags.json
          ? JSON.stringify({ request, node: client.url, answer: '', result: 'done', reason })
          : wordsOf(request, '', 'done', reason),
      ])
      return EXIT.ok
    }
    const lagOf = ({ lag_entries }: NodeMember) => lag_entries ?? Number.MAX_SAFE_INTEGER
    const [target] = nodes
      .filter(({ id, voter, health }) => id !== node_id && voter && health === 'active')
      .toSorted((a, b) => lagOf(a) - lagOf(b))
    if (target === undefined)
      throw new VacancyError('failure', { reason: `${node_id} leads, and no other voter is active` })
    return await run(flags, transferTo(target.id))
  },
})

const loadCommand = defineCommand({
  name: 'vacancy cluster load',
  component: 'CLUSTER',
  summary: 'Replaces the data of the running shard with a snapshot, at one log index on all nodes.',
  flags: CHANGE_FLAGS,
  operands: {
    name: 'FILE|DIGEST',
    min: 1,
    max: 1,
    summary:
      'A seed.snapshot on the machine of --node, by its absolute path; or one that the shard holds, by its content digest.',
  },
  run: ({ flags, operands }) => {
    const [what = ''] = operands
    const isHeld = isDigest(what)
    if (!isHeld && !isAbsolute(what)) throw usage(`${what} is neither an absolute path nor 64 hexadecimal digits`)
    return run(flags, {
      label: `load ${what}`,
      path: '/cluster/load',
      body: isHeld ? { digest: what } : { file: what },
      kinds: ['load'],
      node: isHeld ? what : undefined,
    })
  },
})

const dropLoadCommand = defineCommand({
  name: 'vacancy cluster drop-load',
  component: 'CLUSTER',
  summary: 'Deletes the snapshot of the data that a load replaced. This cannot be undone.',
  flags: CHANGE_FLAGS,
  operands: {
    name: 'DIGEST',
    min: 1,
    max: 1,
    summary: 'Content digest, as shown by `vacancy cluster operations`.',
  },
  run: ({ flags, operands }) => {
    const [digest = ''] = operands
    if (!isDigest(digest)) throw usage(`${digest} is not 64 hexadecimal digits`)
    const label = `drop ${digest}`
    return run(flags, { label, path: '/cluster/drop-load', body: { digest }, kinds: ['drop-load'], node: digest })
  },
})

const setTimeCommand = defineCommand({
  name: 'vacancy cluster set-time',
  component: 'CLUSTER',
  summary:
    'Sets shard time, back or forward, to the clock that a majority of the voters shares. Also for a standalone node.',
  flags: {
    ...CLIENT_FLAGS,
    'dry-run': { type: 'boolean', summary: 'Prints the plan, as without --yes.' },
    yes: { type: 'boolean', summary: 'Does it.' },
  },
  run: async ({ flags }) => {
    if (flags.yes && flags.dryRun) throw usage('--yes and --dry-run exclude each other')
    const client = await open(flags)
    const done = await client.setTime(flags.yes)
    print(flags.json ? [JSON.stringify(done, undefined, 2)] : setTimeLines(done))
    return EXIT.ok
  },
})

const settingsCommand = defineCommand({
  name: 'vacancy cluster settings',
  component: 'CLUSTER',
  summary: 'Shows the settings that all nodes of a shard share, or changes one. Also for a standalone node.',
  flags: CLIENT_FLAGS,
  operands: {
    name: 'NAME=VALUE',
    min: 0,
    max: 1,
    summary: 'The new value, such as day_begins_minutes=480. Without it the settings are shown.',
  },
  run: async ({ flags, operands: [operand] }) => {
    const wanted = operand === undefined ? undefined : settingOf(operand)
    const client = await open(flags)
    if (wanted) await client.change(NODE_ROUTES.setting.path, wanted)
    const settings = await settingsOf(client, wanted)
    const rows = Object.entries(settings).map(([name, value]) => [name, value ?? ''])
    print(flags.json ? [JSON.stringify(settings, undefined, 2)] : table(['setting', 'value'], rows))
    return EXIT.ok
  },
})

function settingOf(operand: string): { readonly name: string; readonly value: number } {
  const [, name = '', value = ''] = /^([a-z_]+)=(-?\d{1,15})$/.exec(operand) ?? []
  if (name === '') throw usage(`${operand} is not NAME=VALUE with a whole number`)
  return { name, value: Number(value) }
}

/** A change is shown when the node has applied it; a node measures its figures once a second. */
async function settingsOf(
  client: ClusterClient,
  wanted: { readonly name: string; readonly value: number } | undefined,
) {
  const started = performance.now()
  for (;;) {
    const settings = await client.settings()
    if (!wanted || settings[wanted.name] === wanted.value) return settings
    if (performance.now() - started > SETTING_MS) {
      throw new VacancyError('failure', { reason: `${wanted.name} was accepted but is not shown yet; look again` })
    }
    await sleep(POLL_MS)
  }
}

function setTimeLines({ applied, ...plan }: NodeSetTime): string[] {
  const { shard_time, new_time, import_nights, missed_nights, dropped_from } = plan
  const range = ({ from, to }: { readonly from: string; readonly to: string }) =>
    from === to ? from : `${from} to ${to}`
  return [
    `shard time   ${shard_time}`,
    `new time     ${new_time}`,
    ...(import_nights
      ? [`new import   ${range(import_nights)}: maintenance dropped these nights; they can be sold again`]
      : []),
    ...(missed_nights ? [`missed       ${range(missed_nights)}: writes for these nights were refused as past`] : []),
    ...(dropped_from ? [`dropped      ${dropped_from} and later: too far ahead to be held with the new time`] : []),
    '',
    applied ? 'The time is set.' : 'Nothing was changed. Add --yes to set the time.',
  ]
}

function nodeOf([text = '']: readonly string[]): string {
  const node = parseId(text)
  if (node === undefined) throw usage(`${text}: a node id is ${ID_RULE}`)
  return node
}

const isDigest = (text: string) => /^[0-9a-f]{64}$/.test(text)

export const CLUSTER_COMMANDS: readonly Command[] = [
  infoCommand,
  promoteCommand,
  demoteCommand,
  transferCommand,
  stepDownCommand,
  operationsCommand,
  loadCommand,
  dropLoadCommand,
  setTimeCommand,
  settingsCommand,
]

/** Runs one command of `vacancy cluster`; sets the exit code. */
export async function clusterMain(args: readonly string[]): Promise<void> {
  const [word] = args
  if (word === undefined || word === '--help') {
    print(help())
    process.exitCode = word === undefined ? EXIT.usage : EXIT.ok
    return
  }
  await runCommands(CLUSTER_COMMANDS, args)
}

function help(): string[] {
  const rows = CLUSTER_COMMANDS.map(({ name, summary }) => `  ${(name.split(' ').at(-1) ?? '').padEnd(12)}${summary}`)
  return [
    'usage: vacancy cluster <command> [flags]',
    '',
    'Queries a node of a shard over HTTP. Any node forwards changes to the leader. Changes need an admin token.',
    '',
    ...rows,
    '',
    'flags of all       --node HOST:PORT,…  --token-file FILE  --tls-ca FILE  --json',
    'of changes, also   --wait  --wait-secs N',
    'of set-time, also  --yes  --dry-run',
    '',
    'Each has --help. For example:',
    '  vacancy cluster info --node 127.0.0.1:8080',
    '  vacancy cluster promote n4 --node 127.0.0.1:8080 --token-file admin.token --wait',
  ]
}

/** Requests a change and, with --wait, follows it to its end. */
async function run(flags: ChangeFlags, change: Change): Promise<number> {
  const client = await open(flags)
  const before = await client.info()
  const known = await client.operations()
  const { text, atMs } = await client.change(change.path, change.body)
  const report = (result: string, reason = '') => {
    const { label } = change
    const { url: node } = client
    print([
      flags.json
        ? JSON.stringify({ request: label, node, answer: text, result, reason })
        : wordsOf(label, text, result, reason),
    ])
  }
  if (!flags.wait) {
    report('begun')
    return EXIT.ok
  }
  const old = new Set(known.operations.map((operation) => JSON.stringify(operation)))
  const isNew = (operation: ClusterOperation) =>
    !old.has(JSON.stringify(operation)) && Date.parse(operation.at) > atMs - CLOCKS_DIFFER_MS
  const ended = await follow(client, change, { before, isNew, waitMs: flags.waitSecs * 1000 })
  if (ended.result === 'done' || flags.json) report(ended.result, ended.reason)
  if (ended.result === 'done') return EXIT.ok
  throw new VacancyError('failure', { reason: `${change.label}: ${ended.reason}` })
}

function wordsOf(label: string, text: string, result: string, reason: string): string {
  if (result === 'begun') return `${label}: ${text}; see \`vacancy cluster operations\` for the result`
  return `${label}: ${result}${result === 'done' && reason !== '' ? ` (${reason})` : ''}`
}

type Watch = {
  readonly before: ClusterInfo
  readonly isNew: (operation: ClusterOperation) => boolean
  readonly waitMs: number
}

/** Polls until the shard shows the result, the leader reports a failure, or the time is over. */
async function follow(
  client: ClusterClient,
  change: Change,
  { before, isNew, waitMs }: Watch,
): Promise<{ result: 'done' | 'failed' | 'unknown'; reason: string }> {
  const started = performance.now()
  let printed = ''
  const progress = (line: string) => {
    if (line === printed) return
    printed = line
    process.stderr.write(`${change.label}: ${line}\n`)
  }
  const isOurs = ({ kind, node }: { readonly kind: ClusterOperation['kind']; readonly node: string }) =>
    change.kinds.includes(kind) && (change.node === undefined || change.node === node)
  while (performance.now() - started < waitMs) {
    try {
      const info = await client.info()
      const { operations } = await client.operations()
      const ended = operations.find((operation) => isNew(operation) && isOurs(operation))
      if (change.isShown?.(info, before)) return { result: 'done', reason: '' }
      if (ended && (ended.result === 'failed' || !change.isShown)) return ended
      const running = info.operation && isOurs(info.operation) ? info.operation.step : undefined
      progress(running ?? (info.leader_id === '' ? 'no leader at the moment' : 'the shard does not show it yet'))
    } catch (error) {
      if (!(error instanceof VacancyError)) throw error
      // Nodes may restart, and the leader may change: the change continues.
      progress(error.message)
    }
    await sleep(POLL_MS)
  }
  return { result: 'unknown', reason: `not seen within ${waitMs / 1000} s; the change continues` }
}

function infoLines(info: ClusterInfo): string[] {
  const { bootstrap, operation, last_operation: last } = info
  const place = `shard ${info.shard_id}${info.zone_id === '' ? '' : `, zone ${info.zone_id}`}`
  const leader = info.leader_id === '' ? 'no leader' : `leader ${info.leader_id}`
  return [
    `${place}: ${leader}, term ${info.term}, committed to ${info.commit_index}, as ${info.node_id} sees it`,
    ...(info.joint ? ['a change of the voters is running: both the old and the new majority count'] : []),
    ...(info.nodes.length === 0 ? [] : ['', ...table(MEMBER_COLUMNS, info.nodes.map(memberRow))]),
    ...(bootstrap
      ? [
          '',
          `not formed: ${bootstrap.why}`,
          ...table(
            ['voter', 'state', 'snapshot', 'index', 'details'],
            bootstrap.voters.map(({ id, state, snapshot, index, detail }) => [
              id,
              state,
              snapshot.slice(0, 12),
              snapshot === '' ? '' : index,
              detail,
            ]),
          ),
        ]
      : []),
    ...(operation
      ? ['', `running: ${operation.kind} ${operation.node}, since ${operation.started_at}: ${operation.step}`]
      : []),
    ...(last ? ['', `last change: ${last.kind} ${last.node} ${last.result} at ${last.at}${because(last)}`] : []),
  ]
}

const MEMBER_COLUMNS = ['node', 'role', 'voter', 'health', 'index', 'behind', 'seconds', 'host']

function memberRow(member: NodeMember): (string | number)[] {
  const { id, role, voter, health, match_index, lag_entries, lag_seconds, host } = member
  return [id, role, voter ? 'yes' : 'no', health, match_index ?? '', lag_entries ?? '', lag_seconds ?? '', host]
}

function because({ reason }: ClusterOperation): string {
  return reason === '' ? '' : `: ${reason}`
}

function operationLines(running: ClusterInfo['operation'], ended: readonly ClusterOperation[]): string[] {
  const rows = ended.map(({ at, kind, node, result, reason }) => [at, kind, node, result, reason])
  const lines = [
    ...(running ? [`running: ${running.kind} ${running.node}, since ${running.started_at}: ${running.step}`] : []),
    ...(rows.length > 0 ? table(['ended', 'change', 'node', 'result', 'details'], rows) : []),
  ]
  return lines.length === 0 ? ['no changes since the leader was elected'] : lines
}

/** Aligned columns, numbers to the right. */
function table(columns: readonly string[], rows: readonly (readonly (string | number)[])[]): string[] {
  const isNumber = columns.map((_, at) => rows.some((row) => typeof row[at] === 'number'))
  const widths = columns.map((name, at) => Math.max(name.length, ...rows.map((row) => String(row[at]).length)))
  return [columns, ...rows].map((row) =>
    row
      .map((cell, at) => (isNumber[at] ? String(cell).padStart(widths[at] ?? 0) : String(cell).padEnd(widths[at] ?? 0)))
      .join('  ')
      .trimEnd(),
  )
}

/** HTTP client for the commands of `vacancy cluster`: reads the state of a shard and requests changes. */
type Body = { readonly [key: string]: string | number | boolean }

/** Older nodes lack some. */
type Settings = { readonly [name: string]: number | undefined }

type ClusterClient = {
  /** The node in use, as `http://HOST:PORT`. */
  readonly url: string
  /** The document of the node in use. */
  readonly own: () => Promise<ClusterInfo>
  /** The document of the leader, since other nodes know less; that of the node in use if the leader is unreachable. */
  readonly info: () => Promise<ClusterInfo>
  readonly operations: () => Promise<ClusterOperations>
  /** @returns the text of the 202 reply, and its time by the clock of the node */
  readonly change: (path: string, body: Body) => Promise<{ readonly text: string; readonly atMs: number }>
  /** Sets shard time, or returns the plan without `confirm`. Also for a standalone node. */
  readonly setTime: (confirm: boolean) => Promise<NodeSetTime>
  /** Settings that all nodes share, as the node in use has them. Also of a standalone node. */
  readonly settings: () => Promise<Settings>
}

/**
 * Finds the first node that responds.
 *
 * @throws VacancyError failure when none does, with a line per node
 */
async function openClient(access: Access): Promise<ClusterClient> {
  const faults: string[] = []
  for (const node of access.nodes) {
    const url = `${schemeOf(access)}//${node}`
    try {
      await send(access, 'GET', `${url}/health`)
      return clientOf(access, url)
    } catch (error) {
      if (!(error instanceof VacancyError)) throw error
      faults.push(error.message)
    }
  }
  throw new VacancyError('failure', { reason: faults.join('\n') })
}

function clientOf(access: Access, url: string): ClusterClient {
  const infoFrom = (from: string) => fetchDocument(access, `${from}/cluster/info`, clusterInfoBody)
  // A token sent over TLS must not be sent without.
  const isElsewhere = (info: ClusterInfo) =>
    info.leader_id !== info.node_id && info.leader_url.startsWith(schemeOf(access))
  const orElse = async <T>(first: Promise<T>, second: () => T | Promise<T>): Promise<T> => {
    try {
      return await first
    } catch (error) {
      if (!(error instanceof VacancyError)) throw error
      return await second()
    }
  }
  return {
    url,
    own: () => infoFrom(url),
    async info() {
      const info = await infoFrom(url)
      return isElsewhere(info) ? await orElse(infoFrom(info.leader_url), () => info) : info
    },
    async operations() {
      const operationsFrom = (from: string) => fetchDocument(access, `${from}/cluster/operations`, operationsBody)
      const info = await infoFrom(url)
      return await (isElsewhere(info)
        ? orElse(operationsFrom(info.leader_url), () => operationsFrom(url))
        : operationsFrom(url))
    },
    async change(path, body) {
      const reply = await send(access, 'POST', `${url}${path}`, JSON.stringify(body))
      if (reply.status !== 202) throw refusal(url, reply)
      return { text: reply.body, atMs: reply.atMs }
    },
    async settings() {
      const { stays } = await fetchDocument(access, `${url}/status`, statusBody)
      if (stays) return stays.settings
      throw new VacancyError('failure', { reason: `${url} has not loaded its data yet, or knows no settings` })
    },
    async setTime(confirm) {
      const at = `${url}${NODE_ROUTES.setTime.path}`
      return parseReply(at, await send(access, 'POST', at, JSON.stringify({ confirm })), setTimeBody)
    },
  }
}
