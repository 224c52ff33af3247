'use client'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import type { Me, Preferences } from '@vacancy/shared/contract'
import { useCallback } from 'react'
import { call } from '../../lib/api.ts'
import { showLook } from '../../lib/look.ts'
import { toast } from '../../ui/toast.tsx'
import { ME_KEY } from '../session/session-gate.tsx'

/** Shows new preferences at once and keeps them on the server; what it refuses is taken back. */
export function useSavePreferences(): (next: Preferences) => void {
  const queries = useQueryClient()
  const { mutate } = useMutation({
    mutationFn: (body: Preferences) => call('PUT /api/v1/me/preferences', { body }),
    onMutate: (next) => {
      const before = queries.getQueryData<Me>(ME_KEY)
      if (before) queries.setQueryData(ME_KEY, { ...before, preferences: next })
      showLook(next)
      return before
    },
    onError: (error, _next, before) => {
      if (before) {
        queries.setQueryData(ME_KEY, before)
        showLook(before.preferences)
      }
      toast({ says: `Not kept: ${error.message}`, level: 'crit' })
    },
  })
  return useCallback((next) => mutate(next), [mutate])
}
