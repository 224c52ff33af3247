/** The path to open after sign-in, restricted to this console. */
export function nextPath(next: string | null, origin: string): string {
  if (!next?.startsWith('/')) return '/'
  const url = URL.parse(next, origin)
  if (url?.origin !== origin || url.pathname === '/sign-in') return '/'
  return url.pathname + url.search + url.hash
}
