/** Theme and density, also kept in a cookie so that the first paint has them before the preferences arrive. */
import type { Preferences } from '@vacancy/shared/contract'

export type Appearance = Pick<Preferences, 'theme' | 'density'>

export const APPEARANCE_COOKIE = 'vacancy-look'
export const THEMES = ['system', 'light', 'dark', 'contrast'] as const satisfies readonly Appearance['theme'][]
const DENSITIES = ['comfortable', 'compact', 'dense'] as const satisfies readonly Appearance['density'][]

const COOKIE_SECONDS = 400 * 86_400

/** Parses `theme.density`; anything else is the system default. */
export function parseAppearance(value: string | undefined): Appearance {
  const [theme, density] = (value ?? '').split('.')
  return {
    theme: THEMES.find((known) => known === theme) ?? 'system',
    density: DENSITIES.find((known) => known === density) ?? 'compact',
  }
}

/** Applies theme and density to the page and stores them in the cookie for the next one. */
export function applyAppearance({ theme, density }: Appearance): void {
  document.documentElement.dataset['theme'] = theme
  document.documentElement.dataset['density'] = density
  // biome-ignore lint/suspicious/noDocumentCookie: the Cookie Store answers only over HTTPS, the console may run without.
  document.cookie = `${APPEARANCE_COOKIE}=${theme}.${density}; path=/; max-age=${COOKIE_SECONDS}; samesite=strict`
}
