/** The plan of a codec list change: the changes, the affected objects, and the steps. Pure. */
import { type CodecList, createCodecList, VacancyError } from '@vacancy/shared'
import { problem } from '@vacancy/shared/api/errors'
import type { Principal } from '@vacancy/shared/api/route'
import type { CodecEntries, CodecPlan, CodecStep, ShardView, SnapshotView } from '@vacancy/shared/contract'
import { type Codecs, codecFile } from './codecs.ts'

/** Packages by rate feature. */
export type Counted = { readonly [feature: string]: number }

/** The input of a plan. */
export type PlanParts = {
  readonly before: Codecs
  readonly after: CodecList
  readonly entries: CodecEntries
  readonly snapshots: readonly SnapshotView[]
  readonly queries: readonly SavedQuery[]
  readonly principal: Pick<Principal, 'id'>
}

export type SavedQuery = {
  readonly id: string
  readonly name: string
  readonly owner: string
  readonly owner_name: string
  readonly shared: number
  readonly fields: string
}

/** Current reports of registry and nodes. */
export type Reported = {
  /** Null: there is no registry. Undefined: it does not respond. */
  readonly registry: { readonly address: string; readonly hash: string | undefined } | null
  readonly shards: readonly ShardView[]
  readonly snapshots: readonly SnapshotView[]
}

export function listOf(entries: CodecEntries): CodecList {
  try {
    return createCodecList(entries.map(({ name }) => name))
  } catch (error) {
    if (!(error instanceof VacancyError)) throw error
    throw problem('invalid-codecs', {
      detail: error.message,
      field: 'entries',
      hint: 'Fix that entry.',
      cause: error,
    })
  }
}

/** Each entry of the current list may become at most one new entry. */
export function checkOrigins(entries: CodecEntries, before: readonly string[]): void {
  const taken = new Set<string>()
  for (const { name, was } of entries) {
    if (was === null) continue
    if (before.includes(was) && !taken.has(was)) {
      taken.add(was)
      continue
    }
    const why = taken.has(was) ? 'already became another entry' : 'is not in the current list'
    throw problem('list-moved-on', { detail: `${name}: ${was} ${why}.`, field: 'entries' })
  }
}

/** Pure. */
export function planOf(parts: PlanParts, now: Reported): CodecPlan {
  const { before, after, entries, snapshots, queries, principal } = parts
  const gone = before.names.filter((name) => !after.names.includes(name))
  const using = queries
    .map((query) => ({ query, uses: gone.filter((name) => namesIn(query.fields).has(name)) }))
    .filter(({ uses }) => uses.length > 0)
  const isShown = ({ query }: (typeof using)[number]) => query.shared === 1 || query.owner === principal.id
  const plan: CodecPlan = {
    before: { names: before.names, hash: before.hash, source: before.source },
    after: { names: [...after.names], hash: after.orderedHash },
    file: codecFile(after.names),
    same: before.hash === after.orderedHash,
    changes: changesOf(before.names, entries),
    snapshots: snapshots
      .filter(({ codecHash }) => codecHash !== after.orderedHash)
      .map(({ id, name, shard, stored, bytes, heldBy }) => ({
        ...{ id, name, shard, stored, bytes },
        heldBy: heldBy.map(({ node }) => node),
      })),
    queries: using
      .filter(isShown)
      .map(({ query: { id, name, owner_name }, uses }) => ({ id, name, owner: owner_name, uses })),
    hiddenQueries: using.filter((one) => !isShown(one)).length,
    nodes: nodesOf(now.shards),
    steps: [],
  }
  return { ...plan, steps: stepsOf(plan, now) }
}

function changesOf(before: readonly string[], entries: CodecEntries): CodecPlan['changes'] {
  const changes: CodecPlan['changes'] = []
  for (const [at, { name, was }] of entries.entries()) {
    if (was === null) {
      changes.push({ kind: 'added', name, message: `${name} is added at position ${at}` })
      continue
    }
    const from = before.indexOf(was)
    if (was !== name) changes.push({ kind: 'renamed', name, message: `${was} is renamed to ${name}` })
    if (from !== at) {
      changes.push({
        kind: 'moved',
        name,
        message: `${name} moves from position ${from} to ${at}: existing data with bit ${from} would be read as another feature`,
      })
    }
  }
  for (const name of before) {
    if (entries.some(({ was }) => was === name)) continue
    changes.push({ kind: 'removed', name, message: `${name} is removed; no package can have it any more` })
  }
  return changes
}

/** Rate features that a saved request names. */
function namesIn(fields: string): ReadonlySet<string> {
  const given = (JSON.parse(fields) as { readonly rateFeatures?: unknown }).rateFeatures
  const list = Array.isArray(given) ? given : typeof given === 'string' ? given.split(',') : []
  return new Set(list.map((name) => String(name).trim()))
}

export function nodesOf(shards: readonly ShardView[]): CodecPlan['nodes'] {
  return shards.flatMap(({ id: shard, nodes }) =>
    nodes.map(({ id: node, orderedHash, freshness }) => ({
      ...{ shard, node, hash: orderedHash },
      answers: freshness === 'live' || freshness === 'delayed',
    })),
  )
}

// Steps

/** The steps in order, each with its reported state. Pure. */
export function stepsOf(
  plan: Pick<CodecPlan, 'before' | 'after' | 'snapshots' | 'queries' | 'hiddenQueries'>,
  now: Reported,
): CodecStep[] {
  const { registry } = now
  return [
    keepStep(plan),
    stopStep(plan, now),
    ...(registry ? [registryStep(plan, registry)] : []),
    startStep(plan, now),
    dataStep(plan, now),
    ...(plan.queries.length + plan.hiddenQueries > 0 ? [queriesStep()] : []),
  ]
}

type Hashes = Pick<CodecPlan, 'before' | 'after'>

function keepStep({ snapshots }: Pick<CodecPlan, 'snapshots'>): CodecStep {
  const stored = snapshots.filter((each) => each.stored).length
  return {
    id: 'keep',
    title: 'Back up the data',
    text: `${stored === 0 ? 'Export the data of each shard first.' : `Download the snapshots stored here (${stored}) and export the data of each shard first.`} These files are valid with the old list only: they are the way back. With the new list, data can only be imported from the original CSV files.`,
    commands: [{ label: 'For each shard, on a stopped node', code: 'vacancy export DATA_DIR --output-path backup' }],
    state: 'hand',
    evidence: '',
  }
}

function stopStep({ after }: Hashes, { shards }: Reported): CodecStep {
  const nodes = nodesOf(shards)
  const left = nodes.filter((node) => isUp(node) && node.hash !== after.hash)
  const urls = shards.flatMap(({ nodes: own }) => own.map(({ apiUrl }) => apiUrl)).filter((url) => url !== '')
  const shown = urls.slice(0, COMMANDS_MAX)
  return {
    id: 'stop',
    title: 'Stop all nodes of all shards',
    text: 'Nodes with different lists refuse each other, so a rolling change is not possible. From here until the data is imported again, no searches and writes are served.',
    commands: [
      {
        label: `Each node${urls.length > shown.length ? `, and ${urls.length - shown.length} more` : ''}`,
        code: shown
          .map(
            (url) =>
              `curl -X POST ${url}/shutdown -H "authorization: Bearer $ADMIN_TOKEN" -H 'content-type: application/json' -d '{"confirm":true}'`,
          )
          .join('\n'),
      },
    ],
    state: nodes.length === 0 ? 'unknown' : left.length === 0 ? 'done' : 'open',
    evidence:
      nodes.length === 0
        ? 'no node is known'
        : left.length === 0
          ? 'no responding node has a different list'
          : `${left.length} of ${nodes.length} nodes run with a different list: ${namesOf(left)}`,
  }
}

function registryStep({ after }: Hashes, registry: NonNullable<Reported['registry']>): CodecStep {
  const { address, hash } = registry
  return {
    id: 'registry',
    title: 'Start the registry with the new file',
    text: 'Replace the file of --codecs-path with the new codecs.yml, and restart the registry with the same flags. It reads the new list, keeps all other state, and logs the change.',
    commands: [
      { label: 'On the registry machine', code: 'vacancy registry --codecs-path codecs.yml …' },
      { label: 'Check the list', code: `curl ${address}/codecs\n# "ordered_hash":"${after.hash}"` },
    ],
    state: hash === undefined ? 'unknown' : hash === after.hash ? 'done' : 'open',
    evidence:
      hash === undefined
        ? `the registry at ${address} does not respond`
        : hash === after.hash
          ? 'the registry serves the new list'
          : `the registry serves a different list, ${hash.slice(0, 12)}`,
  }
}

function startStep({ after }: Hashes, { shards, registry }: Reported): CodecStep {
  const nodes = nodesOf(shards)
  const ready = nodes.filter((node) => isUp(node) && node.hash === after.hash)
  return {
    id: 'start',
    title: 'Start all nodes',
    text: `Each ${registry ? 'reads the list of the registry' : 'reads the new codecs.yml given with --codecs'}, detects that its data was written with a different one, moves the data to quarantine/ in its data_dir, and starts empty. Quarantined data is neither read nor deleted automatically (vacancy quarantine list, restore, remove).`,
    commands: [
      { label: 'On each machine, to list the quarantined data', code: 'vacancy quarantine list --data-dir DATA_DIR' },
    ],
    state: nodes.length === 0 ? 'unknown' : ready.length === nodes.length ? 'done' : 'open',
    evidence:
      nodes.length === 0
        ? 'no node is known'
        : ready.length === nodes.length
          ? `all ${nodes.length} nodes run with the new list`
          : `${ready.length} of ${nodes.length} nodes run with the new list; not yet: ${namesOf(nodes.filter((node) => !ready.includes(node)))}`,
  }
}

function dataStep({ after }: Hashes, { shards, snapshots }: Reported): CodecStep {
  const back = shards.filter(({ nodes, packages }) => {
    const isNew = nodes.some(({ orderedHash }) => orderedHash === after.hash)
    return isNew && (packages ?? 0) > 0
  })
  const built = shards.filter(({ id }) => snapshots.some((each) => each.shard === id && each.codecHash === after.hash))
  const open = shards.filter((shard) => !back.includes(shard))
  return {
    id: 'data',
    title: 'Import the files of each shard again, and install them',
    text: 'A snapshot is built with the current list, so this step comes after the registry. Rows with a removed feature fail the build.',
    commands: [
      {
        label: 'Without the console',
        code: 'vacancy build-snapshot --shard-id SHARD --codecs codecs.yml --input-path DIR --output-path DIR',
      },
    ],
    state: shards.length === 0 ? 'unknown' : open.length === 0 ? 'done' : 'open',
    evidence:
      shards.length === 0
        ? 'no shard is known'
        : open.length === 0
          ? `all ${shards.length} shards serve packages with the new list`
          : `${back.length} of ${shards.length} shards serve packages with the new list, ${built.length} have a snapshot for it; not yet: ${limited(open.map(({ id }) => id))}`,
  }
}

function queriesStep(): CodecStep {
  return {
    id: 'queries',
    title: 'Fix the saved queries',
    text: 'Saved queries with a removed entry are refused from now on. They are listed above; each owner fixes their own.',
    commands: [],
    state: 'hand',
    evidence: '',
  }
}

function namesOf(nodes: readonly CodecPlan['nodes'][number][]): string {
  return limited(nodes.map(({ shard, node }) => `${shard}/${node}`))
}

function limited(ids: readonly string[]): string {
  const more = ids.length - NAMES_MAX
  return more > 0 ? `${ids.slice(0, NAMES_MAX).join(', ')} and ${more} more` : ids.join(', ')
}

const COMMANDS_MAX = 12

const NAMES_MAX = 6

function isUp({ answers }: CodecPlan['nodes'][number]): boolean {
  return answers
}
