'use client'
/** Who is signed in, and what that allows. The server checks each call anyway; this is for saying so beforehand. */
import type { Me, PersonRole } from '@vacancy/shared/contract'
import { createContext, useContext } from 'react'
import { useLiveStatus } from './live.ts'

export const MeContext = createContext<Me | undefined>(undefined)

/** Whoever looks at the page: nothing below the shell is drawn before it is known. */
export function useMe(): Me {
  const me = useContext(MeContext)
  if (!me) throw new Error('useMe is used outside of the shell')
  return me
}

const RANK: Record<PersonRole, number> = { viewer: 0, operator: 1, admin: 2 }

export function may(me: Me, role: PersonRole): boolean {
  return RANK[me.person.role] >= RANK[role]
}

/** Why something that needs a role cannot be done now, in words; undefined when it can. */
export function useWhyNot(role: PersonRole): string | undefined {
  const me = useMe()
  const { link, paused } = useLiveStatus()
  if (!may(me, role)) return `Needs the ${role} role`
  if (link.state === 'offline') return 'Disconnected from the control plane'
  if (paused) return 'Paused: resume first, what is shown may be old'
  return undefined
}
