/** Texts of API tokens. */

export const tokens = {
  title: 'API tokens',
  create: 'Create token',
  createNamed: (name: string) => `Create token ${name}`,
  empty: 'No tokens yet. Programs send a token as bearer token with each API request.',
  denied: 'Needs the admin role to view and manage tokens.',
  cancel: 'Cancel',
  valueTitle: (name: string) => `Token ${name}`,
  value: 'Token',
  valueHint: 'Store it where the program reads its secrets. The control plane keeps only a hash.',
  table: 'Tokens',
  name: 'Name',
  nameHint: 'The program it is for. Anyone with its value can do what its role can.',
  role: 'Role',
  topics: 'Topics',
  topicsHint: 'Names, separated by commas; orders* stands for all that begin with orders. Empty: all topics.',
  lastUsed: 'Last used',
  expires: 'Expires',
  never: 'never',
  created: 'Created',
  by: (name: string) => `by ${name}`,
  actions: 'Actions',
  expiresIn: 'Expires in',
  days30: '30 days',
  days90: '90 days',
  year: '1 year',
  noExpiry: 'No expiry',
  revoked: 'revoked',
  expired: 'expired',
}

export const revoke = {
  dialog: 'Revoke…',
  title: (name: string) => `Revoke token ${name}`,
  confirm: (name: string) => `Revoke ${name}`,
  done: (name: string) => `${name} revoked`,
  effect: 'Programs that use it lose access immediately. This cannot be undone.',
  lastUsed: 'Last used',
  from: (address: string) => ` from ${address}`,
  neverUsed: 'Never used.',
}

export const file = {
  title: 'Tokens of the job queue in a file',
  table: 'Tokens in the file',
  hint: (path: string) =>
    `${path} has them besides the API tokens above. It is read again when it changes: remove an entry there to revoke its token.`,
  empty: (path: string) => `${path} has no tokens.`,
  unnamed: 'unnamed',
}
