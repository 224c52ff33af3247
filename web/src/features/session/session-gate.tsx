'use client'
/** Renders the console once the session is known, and keeps the page when the session ends. */
import { type QueryClient, useQuery, useQueryClient } from '@tanstack/react-query'
import type { Me } from '@vacancy/shared/contract'
import { type ReactNode, Suspense, useEffect, useState } from 'react'
import { ApiProblem, call, lastRequestAt, onSessionEnded, setCsrf } from '../../lib/api.ts'
import { applyAppearance, parseAppearance } from '../../lib/appearance.ts'
import { setKeysOn } from '../../lib/keys.ts'
import { restartLive } from '../../lib/live.ts'
import { routes } from '../../lib/routes.ts'
import { serverNow } from '../../lib/server-time.ts'
import { MeContext } from '../../lib/session.ts'
import { late } from '../../ui/late.tsx'
import { ErrorState, Skeleton } from '../../ui/panel.tsx'

const StaySignedIn = late(async () => (await import('./stay-signed-in.tsx')).default)
const SignInAgain = late(async () => (await import('./sign-in-again.tsx')).default)

export const ME_KEY = ['me'] as const

/** Stores the signed-in person in the query cache. */
export function knowMe(queries: QueryClient, me: Me): void {
  // On the server there are many sessions at a time, and none of them writes.
  if (typeof window !== 'undefined') setCsrf(me.csrf)
  queries.setQueryData(ME_KEY, me)
}

/** The warning of an idle session is shown this long before it ends. */
const WARN_MS = 120_000
const CHECK_MS = 5_000

export function SessionGate({ children }: { readonly children: ReactNode }) {
  const queries = useQueryClient()
  const [isEnded, setEnded] = useState(false)
  const me = useQuery({
    queryKey: ME_KEY,
    queryFn: async ({ signal }) => {
      const answer = await call('GET /api/v1/me', { signal })
      setCsrf(answer.csrf)
      return answer
    },
    staleTime: Number.POSITIVE_INFINITY,
    refetchOnWindowFocus: false,
  })
  const isKnown = me.data !== undefined
  useEffect(
    () =>
      onSessionEnded(() => {
        if (isKnown) setEnded(true)
        else location.replace(routes.signIn(location.pathname + location.search))
      }),
    [isKnown],
  )
  const preferences = me.data?.preferences
  useEffect(() => {
    if (!preferences) return
    setKeysOn(preferences.keys)
    const shown = parseAppearance(
      `${document.documentElement.dataset['theme']}.${document.documentElement.dataset['density']}`,
    )
    if (shown.theme !== preferences.theme || shown.density !== preferences.density) applyAppearance(preferences)
  }, [preferences])

  if (!me.data) {
    // Not signed in: the browser is navigating to the sign-in page.
    const isLeaving = me.error instanceof ApiProblem && me.error.status === 401
    return (
      <main id="content" data-page="start" data-ready="false" className="mx-auto max-w-160 p-6">
        <title>Vacancy</title>
        <h1 className="sr-only">Vacancy</h1>
        {me.error && !isLeaving ? (
          <div className="rounded-panel border border-line bg-surface p-4">
            <ErrorState error={me.error} onRetry={me.refetch} busy={me.isFetching} />
          </div>
        ) : (
          <Skeleton rows={3} />
        )}
      </main>
    )
  }
  const onSignedIn = (next: Me) => {
    if (next.person.id !== me.data.person.id) return location.reload()
    knowMe(queries, next)
    setEnded(false)
    restartLive()
    return void queries.invalidateQueries()
  }
  return (
    <MeContext value={me.data}>
      {children}
      {isEnded ? (
        <Suspense fallback={null}>
          <SignInAgain me={me.data} onSignedIn={onSignedIn} />
        </Suspense>
      ) : (
        <IdleWatch me={me.data} />
      )}
    </MeContext>
  )
}

function IdleWatch({ me }: { me: Me }) {
  const [leftMs, setLeftMs] = useState<number>()
  const [askedAt] = useState(lastRequestAt)
  useEffect(() => {
    const timer = setInterval(() => {
      const rest = Date.parse(me.endsAt) + lastRequestAt() - askedAt - serverNow()
      setLeftMs(rest > 0 && rest < WARN_MS ? rest : undefined)
    }, CHECK_MS)
    return () => clearInterval(timer)
  }, [me.endsAt, askedAt])
  if (leftMs === undefined) return null
  return (
    <Suspense fallback={null}>
      <StaySignedIn leftMs={leftMs} onStay={() => setLeftMs(undefined)} />
    </Suspense>
  )
}
