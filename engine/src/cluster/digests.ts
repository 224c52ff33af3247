/**
 * Whether the members hold the same data (consensus.md §13). With its heartbeats each tells the digest of its state at
 * the last index at which one was taken. A leader logs a digest, for all to compare with theirs, only when a majority
 * of the voters has told the same one: a leader whose own state went wrong would otherwise end those that are right.
 * Who is contradicted by a majority ends itself. Where no majority says either, nothing is logged: nobody can tell.
 */
import { jointTally, tally } from '../raft/quorum.ts'
import type { DigestMark } from '../store/apply.ts'
import type { Digest } from '../store/store.ts'

/** What each member told last, oldest first. Two seldom stand at the same index, so a few are kept. */
export type DigestBook = Map<number, DigestMark[]>

const TOLD_MAX = 8

export function noteDigest(book: DigestBook, member: number, mark: DigestMark): void {
  const told = book.get(member)
  if (!told) book.set(member, [mark])
  else if (told.at(-1)?.index !== mark.index) {
    told.push(mark)
    if (told.length > TOLD_MAX) told.shift()
  }
}

/** As operators read it, in hexadecimal. */
export function digestText({ lo, hi }: Digest): string {
  return `${hi.toString(16)}-${lo.toString(16)}`
}

type Voters = { readonly voters: readonly number[]; readonly outgoing: readonly number[] }

/** How the voters, both halves of a joint configuration, stand to what `self` has at an index. */
export function judgeDigest(
  book: DigestBook,
  { voters, outgoing }: Voters,
  self: number,
  own: DigestMark,
): 'agreed' | 'contradicted' | 'open' {
  const agree = new Map([[self, true]])
  const differ = new Map([[self, false]])
  for (const [member, marks] of book) {
    const told = marks.find(({ index }) => index === own.index)
    if (!told || member === self) continue
    const isSame = told.lo === own.lo && told.hi === own.hi
    agree.set(member, isSame)
    differ.set(member, !isSame)
  }
  const won = (votes: ReadonlyMap<number, boolean>) =>
    jointTally(tally(voters, votes), tally(outgoing, votes)) === 'won'
  return won(agree) ? 'agreed' : won(differ) ? 'contradicted' : 'open'
}
