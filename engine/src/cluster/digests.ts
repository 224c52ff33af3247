/**
 * Compares the data of the members (docs/design/consensus.md#apply). With its heartbeats each member reports the digest
 * of its state at the last marked index. A leader logs a digest for all to compare only when a majority of the voters
 * has reported the same one. Otherwise a leader whose own state is wrong would end the members that are right. A member
 * that a majority contradicts ends itself. Without a majority either way nothing is logged.
 */
import { jointTally, tally } from '../raft/quorum.ts'
import type { DigestMark } from '../store/apply-context.ts'

/** The latest reports of each member, oldest first. Members are seldom at the same index, so a few are kept. */
export type DigestBook = Map<number, DigestMark[]>

const MARKS_MAX = 8

export function noteDigest(book: DigestBook, member: number, mark: DigestMark): void {
  const marks = book.get(member)
  if (!marks) book.set(member, [mark])
  else if (marks.at(-1)?.index !== mark.index) {
    marks.push(mark)
    if (marks.length > MARKS_MAX) marks.shift()
  }
}

type Voters = { readonly voters: readonly number[]; readonly outgoing: readonly number[] }

/** How the voters, in both halves of a joint configuration, compare with the digest of `self` at an index. */
export function judgeDigest(
  book: DigestBook,
  { voters, outgoing }: Voters,
  self: number,
  own: DigestMark,
): 'agreed' | 'contradicted' | 'open' {
  const agree = new Map([[self, true]])
  const differ = new Map([[self, false]])
  for (const [member, marks] of book) {
    const mark = marks.find(({ index }) => index === own.index)
    if (!mark || member === self) continue
    const isSame = mark.lo === own.lo && mark.hi === own.hi
    agree.set(member, isSame)
    differ.set(member, !isSame)
  }
  const won = (votes: ReadonlyMap<number, boolean>) =>
    jointTally(tally(voters, votes), tally(outgoing, votes)) === 'won'
  return won(agree) ? 'agreed' : won(differ) ? 'contradicted' : 'open'
}
