/** What restores have in common: the backup, and what a client meets that goes on with what it knew before. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { VacancyCallError, VacancyRequestError } from '@vacancy/client'
import { runVacancy } from '@vacancy/testkit/node'
import { ADMIN_TOKEN, type Shard, type ShardNode } from '@vacancy/testkit/shard'

const SERVES_MS = 240_000
const PAUSE_MS = 200
const FUTURE = 2 ** 52

/** @returns the outcome of the command, and the file to start from */
export async function backUpInto(folder: string, shard: Shard, node: ShardNode | undefined) {
  const tokenFile = join(shard.folder, 'admin.token')
  writeFileSync(tokenFile, ADMIN_TOKEN)
  const at = ['--node', `${node?.host}:${node?.apiPort}`, '--token-file', tokenFile, '--json', '--output-path', folder]
  return { ...(await runVacancy(['backup', ...at])), file: join(folder, 'seed.snapshot') }
}

/** The result of a call, or the code of its refusal. Repeats it until a node serves. */
export async function answerOf(call: () => Promise<string>): Promise<string> {
  for (const end = performance.now() + SERVES_MS; ; await wait(PAUSE_MS)) {
    try {
      return await call()
    } catch (error) {
      if (error instanceof VacancyRequestError) return error.code
      if (!(error instanceof VacancyCallError) || performance.now() > end) throw error
    }
  }
}

/**
 * What is wrong with the answers to a source that goes on with an index of the former life of the data, or invents one
 * (docs/design/consensus.md#indexes).
 *
 * @param set sends a value as of an index
 */
export async function wrongAnswers(set: (asOf: number) => Promise<unknown>, told: number): Promise<string[]> {
  const found: string[] = []
  for (const [asOf, wanted] of [
    [told, 'TOO_OLD'],
    [FUTURE, 'UNKNOWN_INDEX'],
  ] as const) {
    const code = await answerOf(() => set(asOf).then(() => 'SUCCESS'))
    if (code !== wanted) found.push(`restored: a value as of ${asOf} was answered with ${code}, not ${wanted}`)
  }
  return found
}
