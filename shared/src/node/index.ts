/**
 * Entry point of the Node-only modules: configuration, command lines, log, tokens, TLS, metrics, process life cycle.
 */

export { type CallerAddress, callerAddresses, isNetwork } from './caller-address.ts'
export {
  type Command,
  type CommandSpec,
  defineCommand,
  type Flag,
  type Flags,
  type FlagValues,
  flagRows,
  helpOf,
  named,
  parseCommand,
  runCommand,
  runCommands,
  VERSION,
  variableOf,
} from './cli.ts'
export { loadCodecFile, parseCodecFile } from './codec-file.ts'
export { commitOf } from './commit.ts'
export {
  type Config,
  type ConfigSchema,
  type ConfigValues,
  type ConfigView,
  camelCase,
  choice,
  configTable,
  configView,
  type Given,
  loadConfig,
  port,
  settingText,
  shortRangeOf,
  whole,
} from './config.ts'
export { followConnections } from './connections.ts'
export {
  CERTIFICATE_END_METRIC,
  certificateEnds,
  ENDING_MS,
  ENDS_REASON,
  endingText,
  endsReasons,
  nextTokenEnd,
  setCertificateEnds,
  TOKEN_END_METRIC,
  tokenEnds,
} from './ends.ts'
export { DELAY_SAMPLED_EVERY_MS, watchEventLoop } from './event-loop.ts'
export { collectSooner, followQueueSize } from './garbage.ts'
export { hostNote } from './host-note.ts'
export {
  type HttpCaller,
  type HttpRequest,
  type HttpResult,
  openHttpCaller,
  parseRegistryAddresses,
  type SendRequest,
} from './http-caller.ts'
export { http, https } from './http-modules.ts'
export { type HttpFailure, type HttpResponse, requestHttp } from './http-request.ts'
export {
  type HttpAnswer,
  type HttpApiOptions,
  type HttpMethod,
  type HttpQuery,
  type HttpRoute,
  json,
  jsonText,
  openHttpApi,
  text,
} from './http-routes.ts'
export {
  dropRest,
  HttpError,
  type HttpServer,
  LISTENER_LIMITS,
  limitsOf,
  listenAt,
  parseJsonBody,
  REFUSED_HEADS,
  type RefusedHead,
  refusedHead,
  refusedHeadIn,
  refusedHeadOf,
  requestPath,
  sendUnreadable,
  tlsOptionsOf,
} from './http-server.ts'
export {
  createLogger,
  LOG_FORMATS,
  LOG_LEVELS,
  type Log,
} from './log.ts'
export { ALLOW_ANONYMOUS, isLoopback, listenHost } from './loopback.ts'
export {
  counter,
  gauge,
  histogram,
  METRICS_CONTENT_TYPE,
  type MetricSpec,
  type Metrics,
  type MetricsTable,
  metricsTable,
  registerMetrics,
  setTotal,
} from './metrics.ts'
export { limitsTable } from './pages.ts'
export { postgresUrl, SSL_MODES, tlsFault } from './postgres-url.ts'
export {
  createReadiness,
  type Readiness,
  runProgram,
} from './process.ts'
export {
  closeResolverCache,
  createResolverCache,
  knownAddress,
  parseResolverUrl,
  RESOLVER_LIMITS,
  type Resolution,
  type ResolverCache,
  type ResolverCounters,
  type ResolverKey,
  resolveAddress,
} from './resolver-client.ts'
export { isSecretPlace, readSecret, refuseSecretFlags, secretAt, withDatabaseUrl } from './secrets.ts'
export type { SpanCounts } from './span-queue.ts'
export type { Span, Tracing } from './spans.ts'
export { endingWithUs, isRunning } from './starter.ts'
export { count, type Table, tableLines } from './table.ts'
export {
  loadTls,
  openTls,
  secureContextOf,
  type TlsFiles,
  type TlsMaterial,
  type TlsStore,
  validityFault,
} from './tls.ts'
export {
  endedText,
  findToken,
  hashToken,
  roleMay,
  TOKEN_FAILURES_MAX,
  type TokenHash,
  tokenFault,
} from './token-check.ts'
export { openTokenFile } from './token-file.ts'
export {
  AUTH_FILE_KEPT,
  bearerToken,
  createFailureLimiter,
  type FailureLimiter,
  isTokenText,
  openTokens,
  parseTokens,
  readExpiry,
  readHash,
  requireToken,
  type TokenRules,
  type TokenStore,
  unauthorized,
} from './tokens.ts'
export {
  beginCall,
  beginTrace,
  currentTrace,
  inTrace,
  openTracing,
  SPANS_METRIC,
  setSpans,
  spanCounts,
  TRACE_SCHEMA,
  type Trace,
  traceEndpointOf,
  traceFaults,
  withTraceEndpoint,
} from './tracing.ts'
export { changeOf, type Opened, writerOf } from './unfinished.ts'
export { readText, watchFiles } from './watch.ts'
export { readYamlKeys } from './yaml.ts'
