/**
 * Stores known nodes across restarts: their address and last observation. Without it, a control plane that starts while
 * the registry or a shard is down could not show which nodes are missing.
 */
import { VIEW_ROLES, type ViewRole } from '@vacancy/shared/contract'
import type { Transaction } from 'kysely'
import type { NodeAddress } from './cluster.ts'
import type { ClusterDatabase, ClusterTables } from './tables.ts'

export type KnownNode = {
  readonly address: NodeAddress
  /** Only the configured list contains it: a node that leaves the list is dropped at the next start. */
  readonly isListed: boolean
  /** Its role when it last responded. */
  readonly role: ViewRole | undefined
  /** When the registry, the configured list or its shard last listed it. */
  readonly namedAt: number
  readonly answeredAt: number | undefined
}

export type NodeStore = {
  load(): Promise<readonly KnownNode[]>
  /** Stores changes of known nodes and deletes all others. */
  write(nodes: readonly KnownNode[], precisionMs?: number): Promise<void>
  /** Deletes one node within the transaction of a change. */
  forget(within: Transaction<ClusterTables>, node: Pick<NodeAddress, 'shard' | 'id'>): Promise<void>
}

/** Stored times are updated when they are older than the observed ones by this much. */
const PRECISION_MS = 60_000
const BATCH = 100

type Row = ClusterTables['known_nodes']

export function createNodeStore(database: ClusterDatabase): NodeStore {
  const written = new Map<string, Row>()
  return {
    async load() {
      const rows = await database.selectFrom('known_nodes').selectAll().execute()
      for (const row of rows) written.set(keyOf(row), row)
      return rows.map(nodeOf)
    },

    async write(nodes, precisionMs = PRECISION_MS) {
      const rows = nodes.map(rowOf)
      const changed = rows.filter((row) => isNews(written.get(keyOf(row)), row, precisionMs))
      for (let at = 0; at < changed.length; at += BATCH) {
        const batch = changed.slice(at, at + BATCH)
        await database
          .insertInto('known_nodes')
          .values(batch)
          .onConflict((conflict) =>
            conflict.columns(['shard', 'id']).doUpdateSet(({ ref }) => ({
              zone: ref('excluded.zone'),
              api_url: ref('excluded.api_url'),
              tcp_host: ref('excluded.tcp_host'),
              tcp_port: ref('excluded.tcp_port'),
              listed: ref('excluded.listed'),
              role: ref('excluded.role'),
              named_at: ref('excluded.named_at'),
              answered_at: ref('excluded.answered_at'),
            })),
          )
          .execute()
        for (const row of batch) written.set(keyOf(row), row)
      }
      const keys = new Set(rows.map(keyOf))
      for (const row of [...written.values()].filter((each) => !keys.has(keyOf(each)))) {
        await database.deleteFrom('known_nodes').where('shard', '=', row.shard).where('id', '=', row.id).execute()
        written.delete(keyOf(row))
      }
    },

    async forget(within, { shard, id }) {
      // If the change is rolled back, the node is still known and will be stored again.
      written.delete(keyOf({ shard, id }))
      await within.deleteFrom('known_nodes').where('shard', '=', shard).where('id', '=', id).execute()
    },
  }
}

function keyOf({ shard, id }: Pick<Row, 'shard' | 'id'>): string {
  return `${shard}/${id}`
}

function isNews(before: Row | undefined, row: Row, precisionMs: number): boolean {
  if (!before) return true
  const { named_at: namedAt, answered_at: answeredAt, ...rest } = row
  if (Object.entries(rest).some(([name, value]) => before[name as keyof Row] !== value)) return true
  return namedAt - before.named_at >= precisionMs || (answeredAt ?? 0) - (before.answered_at ?? 0) >= precisionMs
}

function rowOf({ address, isListed, role, namedAt, answeredAt }: KnownNode): Row {
  return {
    shard: address.shard,
    id: address.id,
    zone: address.zone,
    api_url: address.apiUrl,
    tcp_host: address.tcp?.host ?? null,
    tcp_port: address.tcp?.port ?? null,
    listed: isListed ? 1 : 0,
    role: role ?? null,
    named_at: namedAt,
    answered_at: answeredAt ?? null,
  }
}

function nodeOf(row: Row): KnownNode {
  const { shard, id, zone, api_url: apiUrl, tcp_host: host, tcp_port: port } = row
  return {
    address: { id, shard, zone, apiUrl, tcp: host === null || port === null ? undefined : { host, port } },
    isListed: row.listed === 1,
    role: VIEW_ROLES.find((role) => role === row.role),
    namedAt: Number(row.named_at),
    answeredAt: row.answered_at === null ? undefined : Number(row.answered_at),
  }
}
