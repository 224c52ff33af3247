'use client'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import type { Me, PreferencesChange } from '@vacancy/shared/contract'
import { useCallback } from 'react'
import { call } from '../../lib/api.ts'
import { applyAppearance } from '../../lib/appearance.ts'
import * as copy from '../../lib/copy.ts'
import { toast } from '../../ui/toast.tsx'
import { ME_KEY } from '../session/session-gate.tsx'

/**
 * Applies changed preferences at once and saves them on the server; a rejected change is reverted. Omitted preferences
 * are kept, since another tab may have changed them.
 */
export function useSavePreferences(): (change: PreferencesChange) => void {
  const queries = useQueryClient()
  const { mutate } = useMutation({
    // In sequence, so that the last choice wins.
    scope: { id: 'preferences' },
    mutationFn: (body: PreferencesChange) => call('PUT /api/v1/me/preferences', { body }),
    onMutate: (change) => {
      const before = queries.getQueryData<Me>(ME_KEY)
      if (before) {
        const shards = { ...before.preferences.shards, ...change.shards }
        const queue = { ...before.preferences.queue, ...change.queue }
        const jobs = { ...before.preferences.jobs, ...change.jobs }
        const next = { ...before.preferences, ...change, shards, queue, jobs } as Me['preferences']
        queries.setQueryData(ME_KEY, { ...before, preferences: next })
        applyAppearance(next)
      }
      return before
    },
    onError: (error, _change, before) => {
      if (before) {
        queries.setQueryData(ME_KEY, before)
        applyAppearance(before.preferences)
      }
      toast({ message: copy.session.notSaved(error.message), level: 'crit' })
    },
  })
  return useCallback((change) => mutate(change), [mutate])
}
