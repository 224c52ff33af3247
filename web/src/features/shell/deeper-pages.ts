/** Pages that the navigation leads to in two steps; apart from it, because the shell itself never needs them. */
import { routes } from '../../lib/routes.ts'
import type { PageLink } from './pages.ts'

/** Reached by the palette and from their sections. */
export const DEEPER_PAGES: readonly PageLink[] = [
  {
    href: routes.newImport(),
    label: 'New import',
    icon: 'upload',
    also: 'start upload csv',
    under: routes.newImport(),
  },
  { href: routes.services(), label: 'Registry: services', icon: 'registry', under: routes.services() },
  { href: routes.codecs(), label: 'Registry: codec list', icon: 'registry', also: 'features', under: routes.codecs() },
  { href: routes.resolver(), label: 'Registry: resolver', icon: 'registry', also: 'names', under: routes.resolver() },
  {
    href: routes.setting('profile'),
    label: 'Settings: profile',
    icon: 'person',
    also: 'password me',
    under: routes.setting('profile'),
  },
  {
    href: routes.setting('appearance'),
    label: 'Settings: appearance',
    icon: 'settings',
    also: 'theme dark light density keys',
    under: routes.setting('appearance'),
  },
  { href: routes.setting('tokens'), label: 'Settings: API tokens', icon: 'key', under: routes.setting('tokens') },
  {
    href: routes.setting('people'),
    label: 'Settings: people',
    icon: 'person',
    also: 'users roles',
    under: routes.setting('people'),
  },
  {
    href: routes.setting('environment'),
    label: 'Settings: environment',
    icon: 'settings',
    also: 'label production',
    under: routes.setting('environment'),
  },
  {
    href: routes.setting('about'),
    label: 'Settings: about',
    icon: 'info',
    also: 'version',
    under: routes.setting('about'),
  },
]
