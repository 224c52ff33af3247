/** Texts of the settings pages. */
import type { PersonRole } from '@vacancy/shared/contract'

export const roles: Record<PersonRole, string> = {
  viewer: 'can view everything and change nothing',
  operator: 'can also write in the playground, import, and share saved queries',
  admin: 'can also change shards, install snapshots, and manage people and tokens',
}

export const settings = {
  title: 'Settings',
  tabs: {
    profile: 'Profile',
    appearance: 'Appearance',
    tokens: 'API tokens',
    people: 'People',
    environment: 'Environment',
    about: 'About',
  },
}

/** Where to go from a settings page. */
export const next = {
  tokens: { label: 'API tokens', hint: 'for scripts and Prometheus' },
  appearance: { label: 'Appearance', hint: 'theme, density and keys' },
  profile: { label: 'Profile', hint: 'your role and how you sign in' },
  playground: { label: 'Playground', hint: 'copies requests that use a token' },
  audit: { label: 'Audit', hint: 'what everyone changed' },
  people: { label: 'People', hint: 'who may change this environment' },
  topology: { label: 'Topology', hint: 'the components behind this control plane' },
}

export const profile = {
  signOut: 'Sign out',
  panel: 'Profile',
  name: 'Name',
  role: 'Role',
  roleText: (role: string, permissions: string) => `${role}: ${permissions}`,
  signedInWith: 'Signed in with',
  methods: {
    password: 'a password',
    link: 'a sign-in link',
    'set-up': 'the setup code',
    token: 'an API token',
    'single sign-on': 'single sign-on',
  },
  added: 'Added',
  sessionEnds: 'Session ends',
  sessionEnd: (time: string) => `${time}, extended by activity`,
  password: 'Password',
  changePassword: 'Change password',
  setPassword: 'Set password',
  currentPassword: 'Current password',
  newPassword: 'New password',
  passwordHint: (characters: number) => `At least ${characters} characters. Your other sessions will be signed out.`,
  passwordChanged: 'Password changed. Your other sessions were signed out.',
  wait: (seconds: number) => `Wait ${seconds} s`,
}

export const appearance = {
  panel: 'Display',
  theme: 'Theme',
  themes: { system: 'System', light: 'Light', dark: 'Dark', contrast: 'High contrast' },
  contrastHint: 'Black and white, light or dark as in the system.',
  density: 'Density',
  densities: { comfortable: 'Comfortable', compact: 'Compact', dense: 'Dense' },
  rowHeight: (pixels: number) => `${pixels} px rows`,
  keyboard: 'Keyboard',
  keys: 'Single-key shortcuts',
  keysHint: 'For example g s for shards and p to pause. They never fire while you type.',
}

export const environment = {
  panel: 'Environment',
  label: 'Label',
  labelHint: 'Shown on every page and in every plan. At most 24 characters.',
  kind: 'Kind',
  kinds: { development: 'Development', staging: 'Staging', production: 'Production' },
  kindHints: {
    development: 'Plans require no reason and no typed confirmation.',
    staging: 'Plans require the same confirmation as in production.',
    production: 'Warnings require a reason. Plans that lose data or redundancy require the shard ID.',
  },
  baseUrl: 'Base URL of copied commands',
  baseUrlHint: 'For example https://console.example.com. Leave empty to use the URL of the page.',
  save: 'Save environment',
  saved: 'Environment saved',
}

export const about = {
  panel: 'This control plane',
  copy: 'Copy',
  version: 'Version',
  started: 'Started',
  database: 'Database',
  databases: { sqlite: 'SQLite, in the data directory', postgresql: 'PostgreSQL' },
  registry: 'Registry',
  noRegistry: 'none: the configuration lists the nodes',
  resolver: 'Resolver',
  none: 'none',
  nodes: 'Nodes',
  api: 'API',
  apiReference: 'API reference',
  help: 'Help',
  helpKey: 'shows the keyboard shortcuts of a page.',
  auditLog: 'Audit log',
  auditHint: 'lists who changed what.',
}
