/** Every change of the tables, by number; a number that was released is never changed again. */
import type { Migration } from 'kysely/migration'
import { access } from './010-access.ts'
import { cluster } from './020-cluster.ts'
import { playground } from './030-playground.ts'
import { imports } from './040-imports.ts'
import { knownNodes } from './050-known-nodes.ts'

export const MIGRATIONS: Record<string, Migration> = {
  '010-access': access,
  '020-cluster': cluster,
  '030-playground': playground,
  '040-imports': imports,
  '050-known-nodes': knownNodes,
}
