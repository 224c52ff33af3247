/** The plan of a change of the codec list: what changes, what is concerned, and the steps to get there. Pure. */
import { type CodecList, createCodecList, VacancyError } from '@vacancy/shared'
import type { CodecEntries, CodecPlan, CodecStep, ShardView, SnapshotView } from '@vacancy/shared/contract'
import { problem } from '../http/errors.ts'
import type { Principal } from '../http/route.ts'
import { type Codecs, codecFile } from './codecs.ts'

/** Packages by rate feature. */
export type Counted = { readonly [feature: string]: number }

/** What a plan is made of. */
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

/** What registry and nodes report now. */
export type Reported = {
  /** Null: there is none. Undefined: it does not answer. */
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
      hint: 'Mend that entry; the others may stay as they are.',
      cause: error,
    })
  }
}

/** Each entry of the list in force goes on as one entry at most. */
export function checkOrigins(entries: CodecEntries, before: readonly string[]): void {
  const taken = new Set<string>()
  for (const { name, was } of entries) {
    if (was === null) continue
    if (before.includes(was) && !taken.has(was)) {
      taken.add(was)
      continue
    }
    const why = taken.has(was) ? 'goes on as another entry already' : 'is not in the list that is in force'
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
      changes.push({ kind: 'added', name, message: `${name} is new, at place ${at}` })
      continue
    }
    const from = before.indexOf(was)
    if (was !== name) changes.push({ kind: 'renamed', name, message: `${was} is called ${name}` })
    if (from !== at) {
      changes.push({
        kind: 'moved',
        name,
        message: `${name} moves from place ${from} to ${at}: what has bit ${from} now would be read as another feature`,
      })
    }
  }
  for (const name of before) {
    if (entries.some(({ was }) => was === name)) continue
    changes.push({ kind: 'removed', name, message: `${name} goes; nothing can have it any more` })
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

/** In the order in which they are to be done, each with what is reported of it. Pure. */
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
    title: 'Keep what will be invalid',
    text: `${stored === 0 ? 'Export the data of each shard first.' : `Download what is stored here (${stored}) and export the data of each shard first.`} They fit the old list only: they are the way back, and nothing makes new ones of them but the files that they were built from.`,
    commands: [
      { label: 'Of each shard, on a node that is stopped', code: 'vacancy export DATA_DIR --output-path backup' },
    ],
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
    text: 'Nodes with different lists refuse each other, so this cannot be done one by one. From here until the data are back, searches and writes are answered by nobody.',
    commands: [
      {
        label: `Each node${urls.length > shown.length ? `, ${urls.length - shown.length} more like these` : ''}`,
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
          ? 'no node answers with another list'
          : `${left.length} of ${nodes.length} nodes run with another list: ${namesOf(left)}`,
  }
}

function registryStep({ after }: Hashes, registry: NonNullable<Reported['registry']>): CodecStep {
  const { address, hash } = registry
  return {
    id: 'registry',
    title: 'Start the registry with the new file',
    text: 'Put the new codecs.yml where --codecs-path points, and start the registry again with the flags that it had. It takes the new list, keeps everything else, and says so in its log.',
    commands: [
      { label: 'On the machine of the registry', code: 'vacancy registry --codecs-path codecs.yml …' },
      { label: 'What it must answer', code: `curl ${address}/codecs\n# "ordered_hash":"${after.hash}"` },
    ],
    state: hash === undefined ? 'unknown' : hash === after.hash ? 'done' : 'open',
    evidence:
      hash === undefined
        ? `the registry at ${address} does not answer`
        : hash === after.hash
          ? 'the registry serves the new list'
          : `the registry serves another list, ${hash.slice(0, 12)}`,
  }
}

function startStep({ after }: Hashes, { shards, registry }: Reported): CodecStep {
  const nodes = nodesOf(shards)
  const ready = nodes.filter((node) => isUp(node) && node.hash === after.hash)
  return {
    id: 'start',
    title: 'Start all nodes',
    text: `Each ${registry ? 'takes the list of the registry' : 'reads the new codecs.yml that its --codecs names'}, finds that its data were made with another one, and moves them to quarantine/ in its data_dir, where nothing reads or deletes them but you (vacancy quarantine list, restore, remove). It starts empty.`,
    commands: [
      { label: 'On each machine, to see what was set aside', code: 'vacancy quarantine list --data-dir DATA_DIR' },
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
    title: 'Import the files of each shard again, and install',
    text: 'A snapshot is built with the list that is in force, so this comes after the registry. Rows with a feature that is not in the list any more stop the build.',
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
    title: 'Mend the saved queries',
    text: 'Those that name an entry that is gone are refused from now on. They are listed above; everybody mends their own.',
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
