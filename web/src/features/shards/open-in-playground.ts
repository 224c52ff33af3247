/** The playground with a request for one shard that finds something there. Its code comes when it is asked for. */

import { call } from '../../lib/api.ts'
import { navigate } from '../../lib/navigate.ts'
import { ApiProblem } from '../../lib/problem.ts'
import { routes } from '../../lib/routes.ts'
import { toast } from '../../ui/toast.tsx'

export async function openInPlayground(shard: string): Promise<void> {
  const { encodeShare } = await import('../playground/share.ts')
  try {
    const { shard: asked } = await call('GET /api/v1/playground', { query: { shard } })
    // An empty shard has no search that finds something: the form is opened for it all the same.
    const { command, fields } = asked?.example ?? { command: 'SEARCHAVAIL' as const, fields: {} }
    navigate(routes.playground({ q: await encodeShare({ shard, node: '', command, fields }) }))
  } catch (error) {
    if (!(error instanceof ApiProblem)) throw error
    toast({ message: `The playground was not opened: ${error.message}`, level: 'crit' })
  }
}
