// An example of a configuration of Prometheus for all programs, made by `npm run docs`: the ports are those of their tables.
import { ENGINE_SCHEMA } from '../engine/src/config.ts'
import { BRIDGE_FLAGS } from '../fabric/src/bridge/config.ts'
import { REGISTRY_FLAGS, RESOLVER_FLAGS } from '../fabric/src/config.ts'
import { PROXY_SCHEMA } from '../fabric/src/proxy/config.ts'
import { ROUTER_FLAGS } from '../fabric/src/router/config.ts'
import { SERVE_SCHEMA } from '../queue/src/config.ts'
import { CONTROL_SCHEMA } from '../server/src/config.ts'

/** Job → the port with `/metrics`, and hosts. */
export const JOBS = {
  'vacancy-node': [ENGINE_SCHEMA.api_port.default, 'n1', 'n2', 'n3'],
  'vacancy-registry': [REGISTRY_FLAGS.port.default, 'registry'],
  'vacancy-resolver': [RESOLVER_FLAGS.port.default, 'resolver'],
  'vacancy-bridge': [BRIDGE_FLAGS['api-port'].default, 'b1'],
  'vacancy-router': [ROUTER_FLAGS['api-port'].default, 'edge', 'zone-1'],
  'vacancy-proxy': [PROXY_SCHEMA.http_port.default, 'proxy'],
  'vacancy-queue': [SERVE_SCHEMA.listen_port.default, 'queue'],
  'vacancy-control-plane': [CONTROL_SCHEMA.listen_port.default, 'control-plane'],
}

/** The control plane makes its tokens itself. */
export const tokenOf = (job) => (job === 'vacancy-control-plane' ? job : 'vacancy-monitoring')

/** Text of the file by its path in the repository. */
export function scrapeFiles() {
  const jobs = Object.entries(JOBS).map(([job, [port, ...hosts]]) => {
    const targets = hosts.map((host) => `'${host}.example:${port}'`).join(', ')
    return `  - job_name: ${job}
    authorization: { credentials_file: /etc/prometheus/${tokenOf(job)}.token }
    static_configs: [{ targets: [${targets}] }]
`
  })
  return { 'deploy/observability/prometheus.yml': `${HEAD}${jobs.join('')}` }
}

const HEAD = `# Made by \`npm run docs\` from scripts/scrape.mjs: docs/operators.md#dashboards-and-alerts. Copy it, and put in your hosts.
# The names of the jobs begin with vacancy: alerts select by that.
global:
  # A node that found a digest to differ ends after 10 s.
  scrape_interval: 5s
  evaluation_interval: 15s

rule_files: [alerts.yml]

# Each file has a token with the role monitoring. Programs without an auth file ignore it.
scrape_configs:
`
