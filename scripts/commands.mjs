// The subcommands of `vacancy`. Plain JavaScript: runs on Node 20, before anything is installed.

/** Subcommand → the entry point of its workspace, and its purpose. */
export const COMMANDS = {
  run: ['@vacancy/engine/cli', 'starts a standalone node'],
  'build-snapshot': ['@vacancy/engine/cli', 'builds a snapshot from properties.csv and packages.csv'],
  'import-source': ['@vacancy/engine/cli', 'builds a snapshot from PostgreSQL, MySQL, Parquet or other CSV files'],
  'run-clustered': ['@vacancy/engine/cli', 'starts a member of a shard of several nodes'],
  inspect: ['@vacancy/engine/cli', 'shows the content of a data directory or snapshot file, and damage in it'],
  backup: ['@vacancy/engine/cli', 'backs up a running node or shard to a snapshot file'],
  export: ['@vacancy/engine/cli', 'exports the data directory of a stopped node to a snapshot file'],
  quarantine: ['@vacancy/engine/cli', 'lists, restores or removes quarantined data'],
  registry: ['@vacancy/fabric/cli', 'starts the registry of nodes, segments and the codec list'],
  resolver: ['@vacancy/fabric/cli', 'starts a resolver of node hosts, from a table or from patterns of names'],
  bridge: ['@vacancy/fabric/cli', 'starts a bridge, the way from routers to the nodes of a shard'],
  router: ['@vacancy/fabric/cli', 'starts a router, for clients (edge) or for a zone'],
  proxy: ['@vacancy/fabric/cli', 'starts the HTTP proxy: commands as JSON, sent to a node, a shard or a router'],
  'control-plane': ['@vacancy/server/cli', 'starts the control plane with its console, or prints a sign-in link'],
  queue: ['@vacancy/queue/cli', 'starts the job queue, submits jobs, shows topics and dead jobs'],
  cluster: ['@vacancy/cli/cli', 'shows the state of a shard, and changes its members and leader'],
  certs: ['@vacancy/engine/cli', 'creates the authority of a cluster and the certificates of its nodes'],
  quickstart: ['@vacancy/quickstart/cli', 'starts a platform of several shards on this machine, to try it'],
  sample: ['@vacancy/bench/cli', 'writes sample data as the CSV files that build-snapshot reads'],
  query: ['@vacancy/cli/cli', 'queries a running node and prints the result as a table'],
  health: ['@vacancy/cli/cli', 'tells by its exit code whether a running program is ready'],
  completion: ['@vacancy/cli/cli', 'prints the completions of a shell: bash, zsh or fish'],
}

/**
 * The tables of all subcommands, from which completions are made.
 *
 * @param load imports an entry point by its name
 */
export async function describeCommands(load) {
  const doors = new Set(Object.values(COMMANDS).map(([door]) => door))
  const programs = await Promise.all([...doors].map(load))
  const tables = await Promise.all(programs.map((program) => program.commands()))
  const summaries = Object.fromEntries(Object.entries(COMMANDS).map(([name, [, summary]]) => [name, summary]))
  return { summaries, commands: tables.flat() }
}
