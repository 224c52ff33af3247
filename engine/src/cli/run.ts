/**
 * Commands `vacancy run` and `vacancy run-clustered`: a standalone node, or a member of a shard
 * (docs/design/http.md#node-flags).
 */

import { ID_RULE, parseDay, parseId, VacancyError } from '@vacancy/shared'
import {
  choice,
  createLogger,
  defineCommand,
  LOG_FORMATS,
  type Log,
  loadCodecFile,
  loadTls,
  named,
  runProgram,
  type TlsFiles,
  VERSION,
  whole,
} from '@vacancy/shared/node'
import type { ClusterNodeOptions } from '../cluster-node.ts'
import {
  COMPONENTS,
  codecsFileOf,
  ENGINE_SCHEMA,
  type EngineConfig,
  loadEngineConfig,
  requireNodeIdOf,
} from '../config.ts'
import { type NodeOptions, type RunningNode, startNode } from '../node.ts'
import { checkPeerTls } from '../transport/peer-tls.ts'

const TLS_FLAGS = {
  'tcp-cert-path': { ...named('FILE'), summary: 'Certificate of the TCP listener, PEM; with --tcp-key-path.' },
  'tcp-key-path': { ...named('FILE'), summary: 'Its key.' },
  'tcp-client-ca-path': {
    ...named('FILE'),
    summary: 'CA certificates that TCP clients must have a certificate from, PEM.',
  },
  'api-cert-path': { ...named('FILE'), summary: 'Certificate of the HTTP listener, PEM; with --api-key-path.' },
  'api-key-path': { ...named('FILE'), summary: 'Its key.' },
} as const

const COMMON_FLAGS = {
  config: { ...named('FILE'), summary: 'Configuration. Default: ./vacancy.yml, then /etc/vacancy/vacancy.yml.' },
  'auth-file': { ...named('FILE'), summary: 'Tokens and roles; read again when it changes.' },
  'tcp-listen-addr': { ...named('HOST'), default: '127.0.0.1', summary: 'Address of the TCP listener.' },
  'api-listen-addr': { ...named('HOST'), default: '127.0.0.1', summary: 'Address of the HTTP listener.' },
  ...TLS_FLAGS,
  'accept-date': {
    ...named('YYYY-MM-DD'),
    summary: 'Lets maintenance advance to this date, however long ago the last one was.',
  },
  'drain-secs': { ...whole(10, 0, 600, 'seconds'), summary: 'Time to finish requests in flight when stopping.' },
  'log-format': { ...choice(LOG_FORMATS, 'json'), summary: 'Log lines as JSON or as text.' },
} as const

export const runCommand = defineCommand({
  name: 'vacancy run',
  component: COMPONENTS.run,
  logsWarnings: true,
  summary: 'Starts a standalone node: TCP protocol and HTTP API over the data in its folder.',
  flags: {
    codecs: { ...named('FILE'), summary: 'Codec list. Default: codecs.yml beside the configuration.' },
    'shard-id': { ...named('ID'), summary: 'Shard that the data must belong to. Default: any.' },
    'node-id': { ...named('ID'), default: 'node-1', summary: 'Id of this node, kept in its folder.' },
    'accept-loss': {
      type: 'boolean',
      summary: 'Sets damaged data aside, starts from the valid part, and prints the loss.',
    },
    ...COMMON_FLAGS,
  },
  settings: ENGINE_SCHEMA,
  run: async ({ flags, given, warnings }) => {
    const config = loadEngineConfig({ file: flags.config, given })
    const codecs = loadCodecFile(flags.codecs ?? codecsFileOf(config), 'codecs')
    const log = openLog(config, flags, warnings)
    await runNode(log, flags, () =>
      Promise.resolve({
        ...commonOptions(config, flags, log),
        codecs,
        shardId: flags.shardId,
        acceptLoss: flags.acceptLoss,
        rejoin: false,
        cluster: undefined,
      }),
    )
    return undefined
  },
})

export const runClusteredCommand = defineCommand({
  name: 'vacancy run-clustered',
  component: COMPONENTS.runClustered,
  logsWarnings: true,
  summary:
    'Starts a member of a shard: as `run`, with every write on a majority of the voters before it is acknowledged.',
  flags: {
    'node-id': { ...named('ID'), required: true, summary: 'Id of this node, kept in its folder.' },
    'shard-id': { ...named('ID'), required: true, summary: 'The shard it belongs to.' },
    'zone-id': { ...named('ID'), required: true, summary: 'The zone of the node.' },
    'initial-voters': {
      ...named('ID,ID,…'),
      required: true,
      summary: 'The nodes that found the shard, the same list on each; a node not in it joins as a learner.',
    },
    'registry-addr': { ...named('URL'), required: true, summary: 'The registry: http://host:port.' },
    'resolver-addr': { ...named('URL'), required: true, summary: 'The resolver: http://host:port.' },
    seed: {
      ...named('ID,ID,…'),
      summary: 'Nodes to contact first; one that responds is enough. Default: the initial voters.',
    },
    'cert-path': { ...named('FILE'), summary: 'Certificate of this node for its peers, PEM.' },
    'key-path': { ...named('FILE'), summary: 'Its key.' },
    'ca-cert-path': { ...named('FILE'), summary: 'Certificate authority of the shard, PEM.' },
    'insecure-cluster': {
      type: 'boolean',
      summary: 'Plain TCP between nodes, without certificates: for development on one machine.',
    },
    'quic-listen-addr': { ...named('HOST'), default: '127.0.0.1', summary: 'Address of the listener for other nodes.' },
    'registry-token-file': { ...named('FILE'), summary: 'Token for the registry.' },
    'registry-ca': { ...named('FILE'), summary: 'Certificate authority of an https registry, PEM.' },
    'resolver-token-file': { ...named('FILE'), summary: 'Token for the resolver.' },
    'form-with-majority': {
      type: 'boolean',
      summary: 'Lets a strict majority of empty initial voters found an empty shard. Set it on each of them.',
    },
    rejoin: {
      type: 'boolean',
      summary: 'Sets the data of this node aside and rejoins as a new member, which gets its data from the others.',
    },
    ...COMMON_FLAGS,
  },
  settings: ENGINE_SCHEMA,
  run: async ({ flags, given, warnings }) => {
    const config = loadEngineConfig({ file: flags.config, given })
    const { shardId, zoneId, nodeId } = flags
    for (const [flag, id] of Object.entries({ 'node-id': nodeId, 'shard-id': shardId, 'zone-id': zoneId })) {
      requireId(flag, id)
    }
    const voters = idList('initial-voters', flags.initialVoters)
    const cluster: ClusterNodeOptions = {
      zoneId,
      initialVoters: voters,
      seeds: flags.seed === undefined ? voters : idList('seed', flags.seed),
      formWithMajority: flags.formWithMajority,
      host: flags.quicListenAddr,
      tls: clusterTls(flags.certPath, flags.keyPath, flags.caCertPath, flags.insecureCluster),
      registry: { url: flags.registryAddr, tokenFile: flags.registryTokenFile, caFile: flags.registryCa },
      resolver: { url: flags.resolverAddr, tokenFile: flags.resolverTokenFile },
    }
    const log = openLog(config, flags, warnings)
    if (voters.length % 2 === 0)
      log.warn({ voters }, `${voters.length} voters tolerate no more failures than ${voters.length - 1}`)
    if (flags.insecureCluster) log.warn({}, 'traffic between nodes is not encrypted (--insecure-cluster)')
    if (config.values.tlsAcceptAnyName)
      log.warn({}, 'names of certificates do not count: the key of one node can impersonate any (tls_accept_any_name)')
    // Checked before any file is opened or the node registers.
    if (cluster.tls) {
      const { cert, key, ca } = cluster.tls
      checkPeerTls(loadTls({ cert, key, clientCa: ca }), nodeId, requireNodeIdOf(config))
    }
    const { codecsOfRegistry } = await import('../cluster-node.ts')
    await runNode(log, flags, async () => ({
      ...commonOptions(config, flags, log),
      codecs: await codecsOfRegistry(cluster, { nodeId, shardId, zoneId }, config.values.dataDir, log),
      shardId,
      acceptLoss: false,
      rejoin: flags.rejoin,
      cluster,
    }))
    return undefined
  },
})

type CommonFlags = {
  readonly nodeId: string
  readonly shardId: string | undefined
  readonly authFile: string | undefined
  readonly tcpListenAddr: string
  readonly apiListenAddr: string
  readonly tcpCertPath: string | undefined
  readonly tcpKeyPath: string | undefined
  readonly tcpClientCaPath: string | undefined
  readonly apiCertPath: string | undefined
  readonly apiKeyPath: string | undefined
  readonly acceptDate: string | undefined
  readonly drainSecs: number
  readonly logFormat: (typeof LOG_FORMATS)[number]
}

function openLog(config: EngineConfig, flags: CommonFlags, warnings: readonly string[]): Log {
  const log = createLogger({
    level: config.values.logLevel,
    format: flags.logFormat,
    component: 'node',
    id: flags.nodeId,
    ...(flags.shardId === undefined ? {} : { shard: flags.shardId }),
  })
  for (const warning of warnings) log.warn({}, warning)
  return log
}

type Given = Omit<NodeOptions, 'onEnd'>

function commonOptions(
  config: EngineConfig,
  flags: CommonFlags,
  log: Log,
): Omit<Given, 'codecs' | 'shardId' | 'acceptLoss' | 'rejoin' | 'cluster'> {
  return {
    config,
    dataDir: config.values.dataDir,
    nodeId: flags.nodeId,
    version: VERSION,
    tcpHost: flags.tcpListenAddr,
    apiHost: flags.apiListenAddr,
    authFile: flags.authFile,
    tcpTls: tlsFiles('tcp', flags.tcpCertPath, flags.tcpKeyPath, flags.tcpClientCaPath),
    apiTls: tlsFiles('api', flags.apiCertPath, flags.apiKeyPath),
    acceptDay: acceptDay(flags.acceptDate),
    drainSeconds: flags.drainSecs,
    logFormat: flags.logFormat,
    clockOffsetMs: 0,
    log,
  }
}

async function runNode(log: Log, flags: CommonFlags, options: () => Promise<Given>): Promise<void> {
  let node: RunningNode | undefined
  await runProgram(
    {
      start: async (life) => {
        node = await startNode({
          ...(await options()),
          onEnd: (code) => life.stop({ code, reason: 'the node ends on its own' }),
        })
        process.stdout.write(
          `serving: tcp ${flags.tcpListenAddr}:${node.tcpPort}, http ${flags.apiListenAddr}:${node.apiPort}\n`,
        )
      },
      stop: async () => await node?.stop(),
      reload: () => node?.reload(),
    },
    { log, drainMs: (flags.drainSecs + 5) * 1000 },
  )
}

function clusterTls(
  cert: string | undefined,
  key: string | undefined,
  ca: string | undefined,
  isInsecure: boolean,
): ClusterNodeOptions['tls'] {
  if (isInsecure) {
    if (cert === undefined && key === undefined && ca === undefined) return undefined
    throw new VacancyError('usage_error', { reason: '--insecure-cluster excludes certificates' })
  }
  if (cert !== undefined && key !== undefined && ca !== undefined) return { cert, key, ca }
  throw new VacancyError('usage_error', {
    reason:
      '--cert-path, --key-path and --ca-cert-path are needed; `vacancy certs` creates them; --insecure-cluster works without',
  })
}

function requireId(flag: string, id: string): void {
  if (parseId(id) === undefined)
    throw new VacancyError('usage_error', { reason: `--${flag}: "${id}" is not an id (${ID_RULE})` })
}

function idList(flag: string, text: string): string[] {
  const ids = text.split(',').map((id) => id.trim())
  for (const id of ids) requireId(flag, id)
  const twice = ids.find((id, at) => ids.indexOf(id) !== at)
  if (twice !== undefined) throw new VacancyError('usage_error', { reason: `--${flag}: "${twice}" is listed twice` })
  return ids
}

function tlsFiles(
  what: string,
  cert: string | undefined,
  key: string | undefined,
  clientCa?: string,
): TlsFiles | undefined {
  if (cert !== undefined && key !== undefined) return { cert, key, clientCa }
  if (clientCa !== undefined) {
    throw new VacancyError('usage_error', { reason: `--${what}-client-ca-path needs --${what}-cert-path` })
  }
  if (cert === undefined && key === undefined) return undefined
  throw new VacancyError('usage_error', { reason: `--${what}-cert-path and --${what}-key-path require each other` })
}

function acceptDay(text: string | undefined): number {
  if (text === undefined) return 0
  const day = parseDay(text)
  if (day === undefined)
    throw new VacancyError('usage_error', { reason: `--accept-date: ${text} is not a date YYYY-MM-DD` })
  return day
}
