/**
 * Runs a replacement: its two changes one after the other. The second is sent only when the nodes themselves show the
 * first, and the shard is otherwise as the plan left it; else the operation stops with what is true then.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { MemberChange, PlanRequest } from '@vacancy/shared/contract'
import { isUp } from './derive.ts'
import { type End, follow, type Half, type MembershipDeps, memberHalf, watchLate } from './membership-operations.ts'
import type { OperationType, Run } from './operation-types.ts'
import { planReplace } from './replace-plan.ts'

/** How long the nodes may take to show what the first change left: after a restart they are polled again first. */
const SETTLE_MS = 10_000
const POLL_MS = 200

export function replaceVoterType(deps: MembershipDeps): OperationType {
  return { plan: planReplace, run: (run) => runReplace(deps, run) }
}

async function runReplace(deps: MembershipDeps, run: Run): Promise<void> {
  const [first, second] = (run.plan.changes ?? []) as [MemberChange, MemberChange]
  const halves = [first, second].map((change, at) => halfOf(deps, run, change, at)) as [Half, Half]
  const requestedOf = ({ prefix }: Half) => run.operation().steps.find(({ id }) => id === `${prefix}requested`)
  for (const half of halves) {
    if (!requestedOf(half)) await run.step(`${half.prefix}requested`, { text: half.requested, state: 'waiting' })
  }
  const isSent = (half: Half) => requestedOf(half)?.state !== 'waiting'
  const wasSent = isSent(halves[1])
  if (!wasSent) {
    const done = await follow(deps, run, halves[0])
    if (done === undefined) return
    if (done.end !== 'done') return await endFirst(deps, run, halves[0], done, first, second)
    const why = await unlikePlan(deps, run, first, second)
    if (why === undefined) return
    if (why !== '') return await stop(run, first, second, why)
  }
  await endSecond(deps, run, halves[1], await follow(deps, run, halves[1], !wasSent), first, second)
}

function halfOf(deps: MembershipDeps, run: Run, { kind, node }: MemberChange, at: number): Half {
  return memberHalf(deps, run, kind, node, {
    prefix: at === 0 ? '' : `${kind}-`,
    requested: `${kind === 'promote' ? 'Promotion' : 'Demotion'} of ${node} requested`,
    // The term, too, is that of the plan: another leader has not seen what was checked.
    isBound: true,
  })
}

/**
 * Why the second change is not to be sent; '' once the nodes show the shard as the plan left it after the first.
 *
 * @returns undefined when the control plane stops
 */
async function unlikePlan(
  deps: MembershipDeps,
  run: Run,
  first: MemberChange,
  second: MemberChange,
): Promise<string | undefined> {
  const until = run.now() + SETTLE_MS
  for (;;) {
    if (run.signal.aborted) return undefined
    const why = difference(deps, run, first, second)
    if (why === '' || run.now() >= until) return why
    await sleep(POLL_MS, undefined, { signal: run.signal }).catch((error: unknown) => {
      if (!run.signal.aborted) throw error
    })
  }
}

function difference(deps: MembershipDeps, run: Run, first: MemberChange, second: MemberChange): string {
  const { leader, term } = run.plan.basis
  const observation = deps.observe(run.operation().shard)
  if (!observation) return 'no node of the shard is known'
  const { shard, observations } = observation
  if (shard.leader !== leader) return `${shard.leader ?? 'no node'} leads now, the plan was made for ${leader}`
  if (shard.term !== term) return `the term is ${shard.term} now, the plan was made for ${term}`
  const lead = observations.find(({ address }) => address.id === leader)
  const listed = [...(lead?.info?.value.members.voters ?? [])].sort()
  if (listed.join() !== first.voters.join())
    return `the voters are ${listed.join(', ')} now, the plan expects ${first.voters.join(', ')}`
  const up = observations.filter((each) => isUp(each) && second.voters.includes(each.address.id)).length
  if (up < second.majority)
    return `only ${up} of the ${second.voters.length} voters of the next step answer, ${second.majority} needed`
  return ''
}

const isNow = ({ kind, node }: MemberChange) => `${node} is ${kind === 'promote' ? 'a voter' : 'a learner'} now`
const isStill = ({ kind, node }: MemberChange) => `${node} is still ${kind === 'promote' ? 'a learner' : 'a voter'}`

/** Of a shard whose first change was made: the rest is a plan of its own. */
async function stop(run: Run, first: MemberChange, second: MemberChange, why: string): Promise<void> {
  const { shard } = run.operation()
  const rest: PlanRequest = { kind: second.kind, shard, node: second.node }
  await run.set({ rest })
  await run.end('stopped', `${isNow(first)}, ${isStill(second)}: ${why}. Plan the rest: ${second.kind} ${second.node}.`)
}

/** The first change was not made, or that is not known: nothing else was sent. */
async function endFirst(
  deps: MembershipDeps,
  run: Run,
  half: Half,
  { end, message }: End,
  first: MemberChange,
  second: MemberChange,
): Promise<void> {
  if (run.operation().state !== 'unconfirmed')
    await run.end(end, `${message}${message.endsWith('.') ? '' : '.'} Nothing else was sent: ${isStill(second)}.`)
  if (end !== 'unconfirmed') return
  const late = await watchLate(deps, run, half)
  if (late?.end === 'done') await stop(run, first, second, 'the first change took longer than usual')
}

async function endSecond(
  deps: MembershipDeps,
  run: Run,
  half: Half,
  outcome: End | undefined,
  first: MemberChange,
  second: MemberChange,
): Promise<void> {
  if (outcome === undefined) return
  const done = `${first.kind === 'promote' ? first.node : second.node} votes in place of ${first.kind === 'promote' ? second.node : first.node}`
  if (outcome.end === 'done') return await run.end('done', done)
  if (outcome.end !== 'unconfirmed') return await stop(run, first, second, outcome.message.replace(/\.$/, ''))
  if (run.operation().state !== 'unconfirmed')
    await run.end('unconfirmed', `${isNow(first)}. ${half.requested}: ${outcome.message}`)
  const late = await watchLate(deps, run, half)
  if (late?.end === 'done') await run.end('done', `${done}, later than usual`)
}
