'use client'
/** Write mode of a page: off until it is turned on, and off again after 15 minutes or with the tab. */
import { useEffect, useState } from 'react'

const WRITE_MODE_MS = 15 * 60_000

export function useWriteMode(): readonly [boolean, (on: boolean) => void] {
  const [until, setUntil] = useState<number>()
  useEffect(() => {
    if (until === undefined) return
    const timer = setTimeout(() => setUntil(undefined), until - Date.now())
    return () => clearTimeout(timer)
  }, [until])
  return [until !== undefined, (on) => setUntil(on ? Date.now() + WRITE_MODE_MS : undefined)]
}
