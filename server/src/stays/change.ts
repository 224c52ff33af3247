/** Confirms or releases a stay for a person, with audit entries before and after. */
import type { Clock } from '@vacancy/shared'
import { problem } from '@vacancy/shared/api/errors'
import { callerOf, ProblemError, type RouteRequest } from '@vacancy/shared/api/route'
import type { StayRecord } from '@vacancy/shared/contract'
import type { WriteAudit } from '../access/audit.ts'
import type { Reach } from '../nodes/ask.ts'
import { type Target, targetOf } from '../nodes/target.ts'
import { readStay, recordOf, sendStay, stayIdOf } from './stays.ts'

type Change = RouteRequest<'POST /api/v1/shards/{shard}/stays/{stay}/release'>
type Kind = 'confirm' | 'release'
const COMMAND = { confirm: 'CONFIRMSTAY', release: 'RELEASESTAY' } as const
/** States that a change is for. In others the shard has nothing to do, or refuses. */
const CHANGEABLE = { confirm: ['held'], release: ['held', 'booked'] } as const satisfies {
  readonly [kind in Kind]: readonly StayRecord['state'][]
}

type Parts = { readonly reach: Reach; readonly audit: WriteAudit; readonly clock: Clock }

export async function changeStay({ reach, audit }: Parts, kind: Kind, request: Change): Promise<StayRecord> {
  const { params, body } = request
  const target = targetOf(reach.cluster, { shard: params.shard })
  const id = stayIdOf(params.stay)
  const note = async (result: string, detail = '') =>
    audit({
      ...{ ...callerOf(request), action: `stay.${kind}`, target: `${target.shard}: ${id}`, result },
      ...{ reason: body.reason.trim(), detail },
    })
  let isSent = false
  let after: StayRecord
  try {
    if (body.confirm !== id) {
      throw problem('not-confirmed', { detail: `Send ${id} in "confirm".`, field: 'confirm', hint: CONFIRM_HINT })
    }
    const before = await readStay(reach, target, id)
    if (before.state !== body.seen || !isChangeable(kind, before.state)) {
      throw problem('stay-changed', {
        detail:
          before.state === body.seen
            ? `The stay ${id} is ${before.state}: there is nothing to ${kind}.`
            : `The stay ${id} was ${body.seen} and is ${before.state} now.`,
        more: { state: before.state },
      })
    }
    // Audited before it is sent, so that no change is missing in the log.
    await note('requested', `from ${before.state}, ${linesText(before)}`)
    isSent = true
    const { result, node } = await sendChange(reach, target, kind, before)
    after = recordOf(reach, target, node, id, result, { since: null, source: before.source })
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error
    await note(error.code === 'unknown-outcome' ? 'unconfirmed' : isSent ? 'failed' : 'refused', error.message)
    error.isAudited = true
    throw plainly(error, id)
  }
  await note('done')
  return after
}

/** A release names the booking that was shown: one that took its id meanwhile stays. */
async function sendChange(reach: Reach, target: Target, kind: Kind, { id, index }: StayRecord) {
  const { nodes } = target
  if (kind === 'confirm') return await sendStay(reach, target, nodes, COMMAND.confirm, { stayId: id })
  try {
    return await sendStay(reach, target, nodes, COMMAND.release, { stayId: id, bookedAt: BigInt(index) })
  } catch (error) {
    // Below feature level 6 the shard does not know the field, and did nothing.
    if (!(error instanceof ProblemError) || !/RELEASESTAY has no field/.test(error.message)) throw error
    return await sendStay(reach, target, nodes, COMMAND.release, { stayId: id })
  }
}

const CONFIRM_HINT = 'The id as the record shows it.'

function isChangeable(kind: Kind, state: StayRecord['state']): boolean {
  return (CHANGEABLE[kind] as readonly string[]).includes(state)
}

function linesText({ lines }: StayRecord): string {
  return lines
    .map(
      ({ property, room, arrival, nights, rooms }) =>
        `${property} ${room} ${arrival}, ${nights} nights, ${rooms} rooms`,
    )
    .join('; ')
}

/** The refusals of the shard in words; others as they are. */
function plainly(error: ProblemError, id: string): ProblemError {
  const code = REFUSALS[error.code]
  if (code === undefined) return error
  const plain = problem(code, { detail: `${TEXTS[code](id)} The shard replied: ${error.message}.`, cause: error })
  plain.isAudited = true
  return plain
}

const REFUSALS: { readonly [code: string]: keyof typeof TEXTS } = {
  'wire-not-found': 'stay-not-found',
  'wire-expired': 'stay-expired',
  'wire-conflict': 'stay-changed',
  'wire-sold-out': 'stay-sold-out',
}

const TEXTS = {
  'stay-not-found': (id: string) => `The shard no longer has the stay ${id}.`,
  'stay-expired': (id: string) => `The hold ${id} has passed its deadline, and its rooms went back on sale.`,
  'stay-changed': (id: string) => `The stay ${id} has ended meanwhile.`,
  'stay-sold-out': (id: string) => `A night of ${id} has too few rooms left.`,
}
