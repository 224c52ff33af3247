'use client'
import { useRoute } from '../../lib/use-route.ts'

export const SETTINGS_KEY = ['settings'] as const

export const useSettings = () => useRoute('GET /api/v1/settings', {}, { group: SETTINGS_KEY })
