import type { PersonRole, TokenRole } from '@vacancy/shared/contract'

/** What each role of a person may do, in words. */
export const ROLE_SAYS: Record<PersonRole, string> = {
  viewer: 'sees everything, changes nothing',
  operator: 'also writes in the playground, imports, shares saved queries',
  admin: 'also changes shards, installs snapshots, adds people and tokens',
}

export const TOKEN_SAYS: Record<TokenRole, string> = {
  monitoring: 'reads what a viewer reads',
  client: 'also runs queries',
  admin: 'does what an admin does',
}
