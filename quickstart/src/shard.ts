/**
 * `npm start`: registry, resolver, three voters and a learner with the sample, control plane and console, on this machine;
 * stays up, reports changes, and restarts killed programs. `npm run start:shard` leaves the console out.
 */

import { relative, resolve } from 'node:path'
import { tableOf } from '@vacancy/cli/table'
import { connect, VacancyCallError } from '@vacancy/client'
import { formatDay } from '@vacancy/shared'
import { defineCommand, runCommand, tableLines, whole } from '@vacancy/shared/node'
import type { RequestFields } from '@vacancy/shared/wire'
import { type Component, LEARNER, nodesOf, SHARD, shardPlan } from './platform/plan.ts'
import { leaderNode, type Platform } from './platform/platform.ts'
import { urlOf } from './platform/programs.ts'
import { readinessOf } from './platform/ready.ts'
import { openLeader, startAndStay } from './platform/start.ts'
import { CONFIG, SAMPLE_FLAGS } from './sample-flags.ts'
import { say } from './say.ts'
import { cheapestOfWeekend, shardSearch } from './searches.ts'
import { makeSampleStays } from './stays-sample.ts'

const ANSWER_MS_MAX = 30_000
/** Each of four nodes on one machine holds all of them. */
const PACKAGES = 300_000
/** Address blocks that are tried. */
const BLOCKS_TRIED_MAX = 20

const FLAGS = {
  dir: { type: 'text', value: 'DIR', default: './quickstart-shard', summary: 'Data folder, created if absent.' },
  packages: {
    ...whole(PACKAGES, 1, 15_000_000),
    summary: 'Daily packages of a new sample; each of the four nodes holds all.',
  },
  ...SAMPLE_FLAGS,
  block: {
    ...whole(1, 0, 200),
    summary: 'The nodes use addresses from 127.0.N.1; if these are taken, the next N and other ports.',
  },
  'one-address': {
    type: 'boolean',
    summary: 'All on 127.0.0.1 with different ports; the default on machines without other loopback addresses.',
  },
  'console-port': {
    ...whole(8000, 0, 65_535),
    summary: 'Port of the console on 127.0.0.1; the next free one when it is taken, any when 0.',
  },
  'no-sample': {
    type: 'boolean',
    summary: 'No sample stays, and a job queue without sample topics, producers and workers.',
  },
  'no-console': { type: 'boolean', summary: 'The shard alone, without control plane and console.' },
  'no-restart': { type: 'boolean', summary: 'Ended programs are not restarted; the command to start them is printed.' },
} as const

const shardCommand = defineCommand({
  name: 'npm start --',
  component: 'START_SHARD',
  summary:
    'Starts three voters and a learner with sample data, registry, resolver, control plane and console, and stays up. A second start reuses the data.',
  flags: FLAGS,
  run: async ({ flags }) => {
    const { dir, packages, days, seed, block, oneAddress, consolePort, noSample, noConsole, noRestart } = flags
    await startAndStay({
      dir,
      sample: { packages, days, seed },
      usual: { packages: PACKAGES, days: FLAGS.days.default, seed: FLAGS.seed.default },
      config: CONFIG,
      planOf: (attempt, isOneAddress) => shardPlan({ block, attempt, isOneAddress: oneAddress || isOneAddress }),
      attempts: BLOCKS_TRIED_MAX,
      consolePort: noConsole ? undefined : consolePort,
      hasJobs: !noSample,
      restarts: !noRestart,
      follows: true,
      show: async (platform, today) => {
        await showNodes(platform, today)
        return await nextSteps(platform, noSample ? '' : await addStays(platform, today), today)
      },
    })
    return undefined
  },
})

/** Every node with its addresses, and the same search on each. */
async function showNodes({ plan }: Platform, today: number): Promise<void> {
  const search = shardSearch(today)
  const rows = await Promise.all(
    nodesOf(plan, SHARD).map(async (node) => {
      const { name, isLearner, main, api } = node
      const { isReady, text } = await readinessOf(node)
      const role = text === 'leads' ? 'leader' : isLearner ? 'learner' : 'voter'
      const found = isReady ? await foundBy(node, search.fields) : `not yet: ${text}`
      return [name, role, `${main.host}:${main.port}`, urlOf(api), found]
    }),
  )
  say(`\n${search.title}, on each node:\n`)
  const columns = ['node', 'role', 'TCP', 'HTTP', 'answers']
  for (const line of tableLines({ columns, rows, counted: '' })) say(`   ${line}`)
}

async function foundBy({ main }: Component, fields: RequestFields<'SEARCHAVAIL'>): Promise<string> {
  const client = await connect({ ...main, deadlineMs: ANSWER_MS_MAX, retry: false })
  try {
    return tableOf(await client.send('SEARCHAVAIL', fields)).counted
  } catch (error) {
    if (error instanceof VacancyCallError) return `${error.code} ${error.message}`
    throw error
  } finally {
    await client.close()
  }
}

/** @returns a property that has stays; '' for none */
async function addStays(platform: Platform, today: number): Promise<string> {
  const client = await openLeader(platform, SHARD)
  try {
    const { booked, held, property, refusal } = await makeSampleStays(client, today)
    const why = booked === 0 ? ` (${refusal})` : ''
    say(`\nStays of the sample: ${booked} booked, ${held} on hold for a day${why}.`)
    return property
  } catch (error) {
    // A leader that steps down just now costs the sample, not the start.
    if (!(error instanceof VacancyCallError)) throw error
    say(`\nThere are no sample stays: ${error.code} ${error.message}`)
    return ''
  } finally {
    await client.close()
  }
}

async function nextSteps(
  platform: Platform,
  staysOf: string,
  today: number,
): Promise<(readonly [name: string, text: string])[]> {
  const { plan, files, processes } = platform
  const nodes = nodesOf(plan, SHARD)
  const [voter, otherVoter, learner] = [nodes[0], nodes[1], nodes.at(-1)] as [Component, Component, Component]
  const leader = (await leaderNode(platform, SHARD)) ?? voter
  const target = leader.name === voter.name ? otherVoter : voter
  const tcp = ({ main }: Component) => `--host ${main.host} --port ${main.port}`
  const api = `--node ${learner.api.host}:${learner.api.port}`
  const token = `--token-file ${pathOf(files.tokenOf('admin'))}`
  const night = `propertyId=alp_000001 roomType=double date=${formatDay(today + 7)}`
  const console = plan.components.find(({ kind }) => kind === 'control-plane')
  const submit = `npx vacancy queue submit hotel-sync '{"property":"alp_000001"}'`
  return [
    ['Query', `${cheapestOfWeekend(today)} ${tcp(learner)}`],
    ['', `npx vacancy query segments ${tcp(learner)}`],
    ...(staysOf === ''
      ? []
      : [['Stays', `npx vacancy query send LISTSTAYS propertyId=${staysOf} ${tcp(learner)}`] as const]),
    ['Write', `npx vacancy query send SETROOMPKG ${night} availability=3 finalPrice=90 ${tcp(leader)}`],
    ['Look', `npx vacancy cluster info ${api}`],
    ['Transfer', `npx vacancy cluster transfer ${target.name} --wait ${api} ${token}`],
    ['Promote', `npx vacancy cluster promote ${LEARNER} --wait ${api} ${token}`],
    // The console serves the queue.
    ...(console
      ? [['Jobs', `${submit} --url ${urlOf(console.main)} --token-file ${pathOf(files.tokenOf('producer'))}`] as const]
      : []),
    [
      'Kill',
      `kill -9 ${processes.get(leader.name)?.program.pid()}   (${leader.name}, the leader; any single node may fail)`,
    ],
    ['Status', `npx vacancy quickstart status --dir ${files.dir}`],
    ['Files', `${resolve(files.dir)}: data, logs, csv`],
    ['', `the admin token is in ${pathOf(files.tokenOf('admin'))}; see docs/clusters.md for its other uses`],
    ['Stop', 'Ctrl-C. A second start continues with this data.'],
  ]
}

/** The shortest path from the current folder. */
function pathOf(file: string): string {
  const path = relative('.', file)
  return path.startsWith('..') ? resolve(file) : path
}

await runCommand(shardCommand, process.argv.slice(2))
