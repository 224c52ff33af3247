// The units of systemd in deploy/systemd, made from the tables of the programs by `npm run docs`: limits, deadlines and exit
// codes follow the defaults of the configuration.
import { ENGINE_SCHEMA } from '../engine/src/config.ts'
import { EXIT_CODES } from '../engine/src/exit-codes.ts'
import { BRIDGE_FLAGS } from '../fabric/src/bridge/config.ts'
import { REGISTRY_FLAGS, RESOLVER_FLAGS } from '../fabric/src/config.ts'
import { PROXY_SCHEMA } from '../fabric/src/proxy/config.ts'
import { ROUTER_FLAGS } from '../fabric/src/router/config.ts'
import { SERVE_SCHEMA } from '../queue/src/config.ts'
import { CONTROL_SCHEMA } from '../server/src/config.ts'
import { EXIT } from '../shared/src/errors.ts'
import { DESCRIPTORS_KEPT } from '../shared/src/node/descriptors.ts'

/** A link to the program. */
export const PROGRAM = '/usr/local/bin/vacancy'
/** Files, threads and connections of a program to others, beside those of its clients. */
const OWN_DESCRIPTORS = 2_000
/** Between the deadline of the program, after which it ends itself, and the kill of systemd. */
export const KILL_AFTER_SECS = 10
/** Beyond its drain time a program closes what is open; see `runProgram` in each. */
const CLOSE_SECS = 5
/** Programs whose table has no limit of connections: registry and resolver serve the components of a platform. */
const FEW_CONNECTIONS = 10_000

const DRAIN_SECS = 10
const node = {
  connections: ENGINE_SCHEMA.tcp_max_connections.default,
  stopSecs: DRAIN_SECS + CLOSE_SECS,
  // A limit of which 4 GiB, the most that a node can hold, are left for data.
  memory: '5G',
}

/**
 * By name of the unit: the subcommand with the flags that say where its files are, and limits. `%S` is /var/lib, `%i` the
 * instance. Everything else is in the configuration file, and in variables of `/etc/vacancy/NAME.env`.
 */
export const UNITS = {
  'vacancy-node': {
    ...node,
    title: 'Vacancy standalone node',
    table: ENGINE_SCHEMA,
    command: ['run', '--codecs', '/etc/vacancy/codecs.yml', '--data-dir', '%S/vacancy/node'],
  },
  'vacancy-member': {
    ...node,
    title: 'Vacancy member of a shard',
    table: ENGINE_SCHEMA,
    command: ['run-clustered', '--data-dir', '%S/vacancy/member'],
    isMember: true,
  },
  'vacancy-registry': {
    title: 'Vacancy registry',
    table: REGISTRY_FLAGS,
    command: [
      'registry',
      ...['--state-file', '%S/vacancy/registry/state.json'],
      ...['--codecs-path', '/etc/vacancy/codecs.yml'],
    ],
    connections: FEW_CONNECTIONS,
    stopSecs: DRAIN_SECS + CLOSE_SECS,
    memory: '1G',
  },
  'vacancy-resolver': {
    title: 'Vacancy resolver of node hosts',
    table: RESOLVER_FLAGS,
    command: ['resolver', '--file', '/etc/vacancy/resolver.yml'],
    connections: FEW_CONNECTIONS,
    stopSecs: DRAIN_SECS + CLOSE_SECS,
    memory: '512M',
  },
  'vacancy-bridge': {
    title: 'Vacancy bridge of a shard',
    table: BRIDGE_FLAGS,
    command: ['bridge', '--cache-dir', '%S/vacancy/bridge'],
    connections: BRIDGE_FLAGS['max-connections'].default,
    stopSecs: DRAIN_SECS + CLOSE_SECS,
    memory: '2G',
  },
  'vacancy-router@': {
    title: 'Vacancy %i router',
    table: ROUTER_FLAGS,
    command: ['router', '--mode', '%i', '--cache-dir', '%S/vacancy/router-%i'],
    connections: ROUTER_FLAGS['max-connections'].default,
    stopSecs: DRAIN_SECS + CLOSE_SECS,
    memory: '2G',
  },
  'vacancy-proxy': {
    title: 'Vacancy HTTP proxy',
    table: PROXY_SCHEMA,
    command: ['proxy'],
    connections: PROXY_SCHEMA.max_active_conns.default,
    stopSecs: DRAIN_SECS + CLOSE_SECS,
    memory: '2G',
  },
  'vacancy-queue': {
    title: 'Vacancy job queue',
    table: SERVE_SCHEMA,
    command: ['queue', 'serve', '--data-dir', '%S/vacancy/queue'],
    connections: SERVE_SCHEMA.max_connections.default,
    stopSecs: SERVE_SCHEMA.shutdown_grace_ms.default / 1000 + 10,
    // Half of it is for jobs, as with max_bytes_total: 0.
    memory: '2G',
  },
  'vacancy-control-plane': {
    title: 'Vacancy control plane and console',
    table: CONTROL_SCHEMA,
    command: ['control-plane', '--data-dir', '%S/vacancy/control-plane'],
    connections: CONTROL_SCHEMA.max_connections.default,
    stopSecs: CONTROL_SCHEMA.drain_secs.default + CLOSE_SECS + CONTROL_SCHEMA.queue_shutdown_grace_ms.default / 1000,
    // Builds of imports run in it.
    memory: '6G',
    extra: [
      'Environment=NODE_ENV=production',
      '# A build that needs too much memory ends alone.',
      'OOMPolicy=continue',
    ],
  },
}

/** Text of every unit by its path in the repository. */
export function unitFiles() {
  const units = Object.entries(UNITS).map(([name, unit]) => [`deploy/systemd/${name}.service`, unitText(name, unit)])
  return { ...Object.fromEntries(units), 'deploy/systemd/vacancy.sysusers.conf': USER_TEXT }
}

const USER_TEXT = `# Made by \`npm run docs\`. The user of all units: copy to /usr/lib/sysusers.d/vacancy.conf and run systemd-sysusers.
u vacancy - "Vacancy" /var/lib/vacancy
`

/** After these a restart ends in the same way: the configuration or the data need an operator. */
function lastingCodes(isMember) {
  return Object.entries(EXIT_CODES)
    .filter(([name, { restart }]) => EXIT[name] !== EXIT.ok && (restart === 'member' ? !isMember : !restart))
    .map(([name]) => EXIT[name])
}

/** Descriptors for all connections that the configuration allows, so that none is refused for want of one. */
function descriptorsOf({ connections }) {
  return Math.ceil((connections + DESCRIPTORS_KEPT.client + OWN_DESCRIPTORS) / 1024) * 1024
}

/** Ports that a program listens on without a configuration: 0 as the least value of a port means any free one. */
export function portsOf({ table, isMember = false }) {
  return Object.entries(table)
    .filter(([key, row]) => /(?:^|[-_])port$/.test(key) && row.min === 0 && row.default > 0)
    .filter(([, { appliesTo }]) => isMember || appliesTo === undefined)
    .map(([key, row]) => ({ key, port: row.default }))
}

function unitText(name, unit) {
  const { title, command, memory, isMember = false, extra = [] } = unit
  const state = name.replace('vacancy-', '').replace('@', '-%i')
  return `# Made by \`npm run docs\` from scripts/units.mjs. Changes of yours belong into \`systemctl edit ${name.replace('@', '@edge')}\`.
[Unit]
Description=${title}
After=network-online.target
Wants=network-online.target
StartLimitIntervalSec=300
StartLimitBurst=10

# Listens on ${portsOf(unit)
    .map(({ key, port }) => `${port} (${key})`)
    .join(', ')}, unless configured otherwise.
[Service]
Type=exec
User=vacancy
Group=vacancy
ExecStart=${[PROGRAM, ...command].join(' ')}
ExecReload=/bin/kill -HUP $MAINPID
# Variables such as ${exampleOf(command)}, one a line.
EnvironmentFile=-/etc/vacancy/${state}.env
Environment=NODE_COMPILE_CACHE=%C/vacancy/code
${extra.map((line) => `${line}\n`).join('')}StateDirectory=vacancy/${state}
StateDirectoryMode=0700
CacheDirectory=vacancy
WorkingDirectory=%S/vacancy/${state}
UMask=0077

# SIGTERM drains; the program ends itself after ${unit.stopSecs} s at most.
KillSignal=SIGTERM
KillMode=mixed
TimeoutStopSec=${unit.stopSecs + KILL_AFTER_SECS}
Restart=on-failure
RestartSec=2
# docs/reasons.md#exit-codes: these need an operator.
RestartPreventExitStatus=${lastingCodes(isMember).join(' ')}

# ${unit.connections} connections, and files.
LimitNOFILE=${descriptorsOf(unit)}
MemoryMax=${memory}
LimitCORE=0

${HARDENING.join('\n')}

[Install]
WantedBy=multi-user.target
`
}

const exampleOf = ([word]) =>
  word === 'queue' || word === 'control-plane'
    ? `VACANCY_${word.replace('-', '_').toUpperCase()}_LISTEN_PORT`
    : `VACANCY_${word.replace('-', '_').toUpperCase()}_LOG_LEVEL`

/** Compiled code needs memory that is written and executed, so MemoryDenyWriteExecute is missing. */
const HARDENING = [
  'NoNewPrivileges=yes',
  'CapabilityBoundingSet=',
  'AmbientCapabilities=',
  'ProtectSystem=strict',
  'ProtectHome=yes',
  'PrivateTmp=yes',
  'PrivateDevices=yes',
  'ProtectClock=yes',
  'ProtectHostname=yes',
  'ProtectKernelLogs=yes',
  'ProtectKernelModules=yes',
  'ProtectKernelTunables=yes',
  'ProtectControlGroups=yes',
  '# The list of network interfaces is read over AF_NETLINK.',
  'RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK',
  'RestrictNamespaces=yes',
  'RestrictRealtime=yes',
  'RestrictSUIDSGID=yes',
  'LockPersonality=yes',
  'RemoveIPC=yes',
  'SystemCallArchitectures=native',
  'SystemCallFilter=@system-service',
]
