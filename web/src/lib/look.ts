/** Theme and density, as the first paint needs them: in a cookie beside the preferences that the server keeps. */
import type { Preferences } from '@vacancy/shared/contract'

export type Look = Pick<Preferences, 'theme' | 'density'>

export const LOOK_COOKIE = 'vacancy-look'
const THEMES = ['system', 'light', 'dark', 'contrast'] as const satisfies readonly Look['theme'][]
const DENSITIES = ['comfortable', 'compact', 'dense'] as const satisfies readonly Look['density'][]

const LOOK_SECONDS = 400 * 86_400

/** Reads `theme.density`; anything else is what the system asks for. */
export function parseLook(value: string | undefined): Look {
  const [theme, density] = (value ?? '').split('.')
  return {
    theme: THEMES.find((known) => known === theme) ?? 'system',
    density: DENSITIES.find((known) => known === density) ?? 'compact',
  }
}

/** Puts a look on the page at once and into the cookie for the next one. */
export function showLook(look: Look): void {
  document.documentElement.dataset['theme'] = look.theme
  document.documentElement.dataset['density'] = look.density
  // biome-ignore lint/suspicious/noDocumentCookie: the Cookie Store answers only over HTTPS, the console may run without.
  document.cookie = `${LOOK_COOKIE}=${look.theme}.${look.density}; path=/; max-age=${LOOK_SECONDS}; samesite=strict`
}
