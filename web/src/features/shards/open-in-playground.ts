/** Opens the playground with a request that finds something on the shard. Its code is loaded on demand. */

import { call } from '../../lib/api.ts'
import { navigate } from '../../lib/navigate.ts'
import { ApiProblem } from '../../lib/problem.ts'
import { routes } from '../../lib/routes.ts'
import { toast } from '../../ui/toast.tsx'
import * as copy from './shard-copy.ts'

export async function openInPlayground(shard: string): Promise<void> {
  const { encodeShare } = await import('../playground/share.ts')
  try {
    const { shard: target } = await call('GET /api/v1/playground', { query: { shard } })
    // An empty shard has no example: the form opens empty.
    const { command, fields } = target?.example ?? { command: 'SEARCHAVAIL' as const, fields: {} }
    navigate(routes.playground({ q: await encodeShare({ shard, node: '', command, fields }) }))
  } catch (error) {
    if (!(error instanceof ApiProblem)) throw error
    toast({ message: copy.shard.playgroundFailed(error.message), level: 'crit' })
  }
}
