/**
 * Entry point of the Node-only modules: configuration, command lines, log, tokens, TLS, metrics, process life cycle.
 */

export {
  type Command,
  type CommandSpec,
  defineCommand,
  type Flag,
  type Flags,
  type FlagValues,
  helpOf,
  type Parsed,
  parseCommand,
  runCommand,
  runCommands,
  VERSION,
} from './cli.ts'
export { loadCodecFile, parseCodecFile } from './codec-file.ts'
export { commitOf } from './commit.ts'
export {
  type Config,
  type ConfigSchema,
  type ConfigSources,
  type ConfigValues,
  camelCase,
  configTable,
  configView,
  type Given,
  loadConfig,
  MASK,
  type Origin,
  rangeOf,
  type Setting,
  type SettingValue,
} from './config.ts'
export { followConnections } from './connections.ts'
export { freePort } from './free-port.ts'
export {
  createLogger,
  LOG_FORMATS,
  LOG_LEVELS,
  type Log,
  type LogFormat,
  type LogLevel,
  type LogOptions,
} from './log.ts'
export {
  type HistogramReading,
  METRICS_CONTENT_TYPE,
  type MetricOf,
  type MetricSpec,
  type Metrics,
  type MetricsTable,
  metricsTable,
  registerMetrics,
  setTotal,
} from './metrics.ts'
export { pagesMain, staleAmong } from './pages.ts'
export {
  createReadiness,
  DRAIN_MS,
  exitCodeOf,
  type Life,
  type Program,
  type Readiness,
  type Reason,
  reportOf,
  runProgram,
  type Stop,
} from './process.ts'
export { endingWithUs, isRunning } from './starter.ts'
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
  checkToken,
  findToken,
  ROLES,
  type Role,
  roleMay,
  TOKEN_FAILURES_MAX,
  type TokenHash,
} from './token-check.ts'
export {
  bearerToken,
  createFailureLimiter,
  type FailureLimiter,
  openTokens,
  parseTokens,
  type TokenRules,
  type TokenStore,
} from './tokens.ts'
export { watchFiles } from './watch.ts'
export { readYamlKeys, readYamlList, type YamlEntry, type YamlKey } from './yaml.ts'
