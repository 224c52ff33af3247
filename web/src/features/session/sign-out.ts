import { call } from '../../lib/api.ts'
import { toast } from '../../ui/toast.tsx'

/** Ends the session and leaves for a whole new page: nothing of what was shown stays in memory. */
export function signOut(): void {
  call('DELETE /api/v1/session').then(
    () => location.assign('/sign-in'),
    (error: Error) => toast({ message: `Not signed out: ${error.message}`, level: 'crit' }),
  )
}
