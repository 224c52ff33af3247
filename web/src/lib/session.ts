'use client'
/** The signed-in person and their permissions. The server checks each call; this is for showing it beforehand. */
import type { Me, PersonRole } from '@vacancy/shared/contract'
import { createContext, useContext } from 'react'
import { useMoment } from './address.tsx'
import * as copy from './copy.ts'
import { useLiveStatus } from './live.ts'

export const MeContext = createContext<Me | undefined>(undefined)

/** The signed-in person. Nothing below the shell is rendered before it is known. */
export function useMe(): Me {
  const me = useContext(MeContext)
  if (!me) throw new Error('useMe is used outside of the shell')
  return me
}

const RANK: Record<PersonRole, number> = { viewer: 0, operator: 1, admin: 2 }

export function may(me: Me, role: PersonRole): boolean {
  return RANK[me.person.role] >= RANK[role]
}

/** Why an action that needs a role is not available now; undefined when it is. */
export function useWhyNot(role: PersonRole): string | undefined {
  const me = useMe()
  const { link, paused } = useLiveStatus()
  const moment = useMoment()
  if (!may(me, role)) return copy.session.needsRole(role)
  if (moment !== undefined) return copy.session.past
  if (link.state === 'offline') return copy.session.disconnected
  if (paused) return copy.session.paused
  return undefined
}
