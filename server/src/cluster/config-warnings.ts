/**
 * Values of a configuration that are each allowed and do not go together, of one node or between the nodes of a shard.
 * Pure. What a node did not report gives no warning.
 */
import type { ConfigWarning, NodeConfig } from '@vacancy/shared/contract'

export type ReportedConfig = { readonly node: string; readonly config: NodeConfig }

type Values = (key: string) => number
type OwnRule = {
  readonly keys: readonly string[]
  readonly level: ConfigWarning['level']
  /** Undefined while all is well. */
  readonly message: (number: Values, config: NodeConfig) => string | undefined
}

/** Of the registry, when nobody set it otherwise. */
const HEARTBEAT_TIMEOUT_SECONDS = 60
const MANY_WRITES = 1_000_000

const OWN: readonly OwnRule[] = [
  {
    keys: ['raft_heartbeat_tick', 'raft_election_tick'],
    level: 'crit',
    message: (number) =>
      number('raft_heartbeat_tick') >= number('raft_election_tick')
        ? `a heartbeat each ${number('raft_heartbeat_tick')} ticks comes no sooner than an election after ${number('raft_election_tick')}: no leader lasts`
        : undefined,
  },
  {
    keys: ['raft_heartbeat_tick', 'raft_election_tick'],
    level: 'warn',
    message: (number) => {
      const [heartbeat, election] = [number('raft_heartbeat_tick'), number('raft_election_tick')]
      return heartbeat < election && heartbeat * 3 > election
        ? `an election after ${election} ticks leaves no room for two heartbeats of ${heartbeat} that are lost`
        : undefined
    },
  },
  {
    keys: ['tcp_recv_buffer_size'],
    level: 'warn',
    message: (number) =>
      number('tcp_recv_buffer_size') === 0 ? 'a receive buffer of 0 bytes leaves its size to the system' : undefined,
  },
  {
    keys: ['snapshot_interval_sec', 'snapshot_trigger_count'],
    level: 'warn',
    message: (number) =>
      number('snapshot_interval_sec') === 0 && number('snapshot_trigger_count') >= MANY_WRITES
        ? `no snapshot by time, and one only after ${number('snapshot_trigger_count')} writes: a start replays all of them`
        : undefined,
  },
  {
    keys: ['registry_heartbeat_secs'],
    level: 'warn',
    message: (number) =>
      number('registry_heartbeat_secs') * 3 > HEARTBEAT_TIMEOUT_SECONDS
        ? `a heartbeat each ${number('registry_heartbeat_secs')} s: two that are lost take the node off a registry that waits ${HEARTBEAT_TIMEOUT_SECONDS} s, as it does unless told otherwise`
        : undefined,
  },
  {
    keys: ['tcp_port', 'api_port', 'quic_port'],
    level: 'warn',
    message: (number) => {
      const ports = ['tcp_port', 'api_port', 'quic_port'].map(number).filter((port) => port > 0)
      const twice = ports.find((port, at) => ports.indexOf(port) !== at)
      return twice === undefined ? undefined : `port ${twice} is given to two listeners`
    },
  },
  {
    keys: ['admin_requires_auth'],
    level: 'warn',
    message: (_, config) => {
      const entry = config['admin_requires_auth']
      return entry && String(entry.value) === 'false' && entry.origin !== 'default'
        ? 'without an auth file, admin paths are open to whoever reaches the API'
        : undefined
    },
  },
]

/** What must be equal, or is as good as the least of them, and what happens else. */
const BETWEEN: readonly {
  readonly keys: readonly string[]
  readonly of: (number: Values) => number
  readonly message: string
}[] = [
  {
    keys: ['raft_tick_ms', 'raft_election_tick'],
    of: (number) => number('raft_tick_ms') * number('raft_election_tick'),
    message: 'elections begin after different times: who waits least stands up first, each time',
  },
  {
    keys: ['max_dates_in_query'],
    of: (number) => number('max_dates_in_query'),
    message: 'the same search is answered by one node and refused by another',
  },
  {
    keys: ['query_limit'],
    of: (number) => number('query_limit'),
    message: 'the same search gets more rows from one node than from another',
  },
  {
    keys: ['memory_max_bytes'],
    of: (number) => number('memory_max_bytes'),
    message: 'the shard holds what the smallest of them can hold',
  },
]

export function configWarnings(reported: readonly ReportedConfig[]): ConfigWarning[] {
  const own = OWN.flatMap(({ keys, level, message }): ConfigWarning[] => {
    const byText = new Map<string, string[]>()
    for (const { node, config } of reported) {
      const text = keys.every((key) => config[key]) ? message(numbersOf(config), config) : undefined
      if (text !== undefined) byText.set(text, [...(byText.get(text) ?? []), node])
    }
    return [...byText].map(([text, nodes]) => ({ level, keys: [...keys], nodes, message: text }))
  })
  const between = BETWEEN.flatMap(({ keys, of, message }): ConfigWarning[] => {
    const known = reported.filter(({ config }) => keys.every((key) => config[key]))
    const values = new Map<number, string[]>()
    for (const { node, config } of known) {
      const value = of(numbersOf(config))
      values.set(value, [...(values.get(value) ?? []), node])
    }
    if (values.size < 2) return []
    // The fewest are the odd ones.
    const [odd] = [...values].sort(([, a], [, b]) => a.length - b.length)
    return [{ level: 'warn', keys: [...keys], nodes: odd?.[1] ?? [], message }]
  })
  return [...own, ...between]
}

function numbersOf(config: NodeConfig): Values {
  return (key) => Number(config[key]?.value)
}
