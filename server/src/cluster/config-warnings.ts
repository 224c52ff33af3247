/**
 * Configuration values that are valid one by one but not together, on one node or between the nodes of a shard. Pure.
 * Values that a node did not report give no warning.
 */
import type { ConfigWarning, NodeConfig } from '@vacancy/shared/contract'

export type ReportedConfig = { readonly node: string; readonly config: NodeConfig }

type Values = (key: string) => number
type OwnRule = {
  readonly keys: readonly string[]
  readonly level: ConfigWarning['level']
  /** Undefined when the values are fine. */
  readonly message: (number: Values, config: NodeConfig) => string | undefined
}

/** The registry's default. */
const HEARTBEAT_TIMEOUT_SECONDS = 60
const MANY_WRITES = 1_000_000

const OWN: readonly OwnRule[] = [
  {
    keys: ['raft_heartbeat_tick', 'raft_election_tick'],
    level: 'crit',
    message: (number) =>
      number('raft_heartbeat_tick') >= number('raft_election_tick')
        ? `the heartbeat interval of ${number('raft_heartbeat_tick')} ticks is not below the election timeout of ${number('raft_election_tick')} ticks: leaders cannot stay elected`
        : undefined,
  },
  {
    keys: ['raft_heartbeat_tick', 'raft_election_tick'],
    level: 'warn',
    message: (number) => {
      const [heartbeat, election] = [number('raft_heartbeat_tick'), number('raft_election_tick')]
      return heartbeat < election && heartbeat * 3 > election
        ? `an election timeout of ${election} ticks does not tolerate two lost heartbeats at an interval of ${heartbeat} ticks`
        : undefined
    },
  },
  {
    keys: ['tcp_recv_buffer_size'],
    level: 'warn',
    message: (number) =>
      number('tcp_recv_buffer_size') === 0
        ? 'with 0 bytes the operating system chooses the size of the receive buffer'
        : undefined,
  },
  {
    keys: ['snapshot_interval_sec', 'snapshot_trigger_count'],
    level: 'warn',
    message: (number) =>
      number('snapshot_interval_sec') === 0 && number('snapshot_trigger_count') >= MANY_WRITES
        ? `snapshots are only saved after ${number('snapshot_trigger_count')} writes: a start replays all writes since the last one`
        : undefined,
  },
  {
    keys: ['registry_heartbeat_secs'],
    level: 'warn',
    message: (number) =>
      number('registry_heartbeat_secs') * 3 > HEARTBEAT_TIMEOUT_SECONDS
        ? `at a heartbeat interval of ${number('registry_heartbeat_secs')} s, two lost heartbeats remove the node from a registry with the default timeout of ${HEARTBEAT_TIMEOUT_SECONDS} s`
        : undefined,
  },
  {
    keys: ['tcp_port', 'api_port', 'quic_port'],
    level: 'warn',
    message: (number) => {
      const ports = ['tcp_port', 'api_port', 'quic_port'].map(number).filter((port) => port > 0)
      const twice = ports.find((port, at) => ports.indexOf(port) !== at)
      return twice === undefined ? undefined : `port ${twice} is used by two listeners`
    },
  },
  {
    keys: ['admin_requires_auth'],
    level: 'warn',
    message: (_, config) => {
      const entry = config['admin_requires_auth']
      return entry && String(entry.value) === 'false' && entry.origin !== 'default'
        ? 'without an auth file, admin paths are open to every client of the API'
        : undefined
    },
  },
]

/** Values that should be equal on all nodes, and the effect when they are not. */
const BETWEEN: readonly {
  readonly keys: readonly string[]
  readonly of: (number: Values) => number
  readonly message: string
}[] = [
  {
    keys: ['raft_tick_ms', 'raft_election_tick'],
    of: (number) => number('raft_tick_ms') * number('raft_election_tick'),
    message: 'election timeouts differ: the node with the shortest one always starts elections first',
  },
  {
    keys: ['max_dates_in_query'],
    of: (number) => number('max_dates_in_query'),
    message: 'one node answers a search that another one refuses',
  },
  {
    keys: ['query_limit'],
    of: (number) => number('query_limit'),
    message: 'nodes return different numbers of rows for the same search',
  },
  {
    keys: ['memory_max_bytes'],
    of: (number) => number('memory_max_bytes'),
    message: 'the node with the least memory limits the shard',
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
    // The smallest group deviates.
    const [odd] = [...values].sort(([, a], [, b]) => a.length - b.length)
    return [{ level: 'warn', keys: [...keys], nodes: odd?.[1] ?? [], message }]
  })
  return [...own, ...between]
}

function numbersOf(config: NodeConfig): Values {
  return (key) => Number(config[key]?.value)
}
