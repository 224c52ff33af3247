'use client'
import { useMutation } from '@tanstack/react-query'
import { toast } from './toast.tsx'

/** A request that a button sends. A failure is shown as a toast. */
export function useRequest<T = void>(send: (given: T) => Promise<unknown>) {
  return useMutation({ mutationFn: send, onError: (error) => toast({ message: error.message, level: 'crit' }) })
}
