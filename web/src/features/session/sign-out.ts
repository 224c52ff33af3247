import { call } from '../../lib/api.ts'
import * as copy from '../../lib/copy.ts'
import { toast } from '../../ui/toast.tsx'

/** Ends the session and loads the sign-in page, so that nothing stays in memory. */
export function signOut(): void {
  call('DELETE /api/v1/session').then(
    () => location.assign('/sign-in'),
    (error: Error) => toast({ message: copy.session.signOutFailed(error.message), level: 'crit' }),
  )
}
