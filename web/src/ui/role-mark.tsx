import type { ViewRole } from '@vacancy/shared/contract'
import { Icon, type IconName } from '../icons/icon.tsx'

/** A role is a shape, never a colour: key for leader, filled dot for follower, dashed ring for learner. */
export const ROLE_ICONS: Record<ViewRole, IconName> = {
  leader: 'key',
  follower: 'dot',
  learner: 'ring',
  candidate: 'half',
  standalone: 'square',
  unknown: 'question',
}

type RoleMarkProps = { readonly role: ViewRole; readonly word?: boolean }

export function RoleMark({ role, word = false }: RoleMarkProps) {
  return (
    <span className="inline-flex items-center gap-1.5" data-role={role}>
      <Icon name={ROLE_ICONS[role]} size={14} />
      {word ? role : <span className="sr-only">{role}</span>}
    </span>
  )
}
