/** Every change of the tables, by number; a number that was released is never changed again. */
import type { Migration } from 'kysely/migration'
import { access } from './010-access.ts'
import { cluster } from './020-cluster.ts'
import { playground } from './030-playground.ts'
import { imports } from './040-imports.ts'
import { knownNodes } from './050-known-nodes.ts'
import { playgroundKept } from './060-playground-kept.ts'
import { leadership } from './070-leadership.ts'
import { tokenSessions } from './071-token-sessions.ts'
import { importsAndCodecs } from './080-imports-and-codecs.ts'
import { messages } from './090-messages.ts'
import { tokenTopics } from './100-token-topics.ts'
import { pictures } from './110-pictures.ts'
import { handovers } from './120-handovers.ts'
import { singleSignOn } from './140-single-sign-on.ts'
import { goldenSearches } from './150-golden-searches.ts'

export const MIGRATIONS: Record<string, Migration> = {
  '010-access': access,
  '020-cluster': cluster,
  '030-playground': playground,
  '040-imports': imports,
  '050-known-nodes': knownNodes,
  '060-playground-kept': playgroundKept,
  '070-leadership': leadership,
  '071-token-sessions': tokenSessions,
  '080-imports-and-codecs': importsAndCodecs,
  '090-messages': messages,
  '100-token-topics': tokenTopics,
  '110-pictures': pictures,
  '120-handovers': handovers,
  '140-single-sign-on': singleSignOn,
  '150-golden-searches': goldenSearches,
}
