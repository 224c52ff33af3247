'use client'
import { useQuery } from '@tanstack/react-query'
import { call } from '../../lib/api.ts'

export const SETTINGS_KEY = ['settings'] as const

export function useSettings() {
  return useQuery({ queryKey: SETTINGS_KEY, queryFn: ({ signal }) => call('GET /api/v1/settings', { signal }) })
}
