/** Texts of people, tokens and values that are shown once. */
import type { TokenRole } from '@vacancy/shared/contract'

export const tokenRoles: Record<TokenRole, string> = {
  monitoring: 'can read what a viewer reads',
  client: 'can also run queries',
  producer: 'can submit jobs to the queue, nothing else',
  consumer: 'can take jobs from the queue, nothing else',
  admin: 'can do what an admin does',
}

export const people = {
  title: 'People',
  add: 'Add person',
  addNamed: (name: string) => `Add ${name || 'person'}`,
  denied: 'Needs the admin role to view and manage people.',
  link: 'Sign-in link',
  linkTitle: (name: string) => `Sign-in link for ${name}`,
  linkHint: (name: string) =>
    `Give it to ${name} over a secure channel. It works once. ${name} then sets a password in the profile.`,
  blocked: (name: string) => `${name} can no longer sign in`,
  roleChanged: (name: string, role: string) => `${name}: ${role}`,
  name: 'Name',
  nameHint: 'Letters, digits and . _ @ -',
  you: 'you',
  cannotSignIn: 'cannot sign in',
  singleSignOn: 'single sign-on',
  atProvider: 'Enters by single sign-on, which gives the role',
  role: 'Role',
  roleOf: (name: string) => `Role of ${name}`,
  lastSeen: 'Last seen',
  added: 'Added',
  actions: 'Actions',
  actionsFor: (name: string) => `Actions for ${name}`,
  newLink: 'New sign-in link',
  allow: 'Allow sign-in',
  block: 'Block sign-in',
  notYourself: 'You cannot block yourself; another admin can',
}

export const shownOnce = {
  done: 'Done',
  hint: 'Shown only once. It cannot be displayed again.',
  copy: (label: string) => `Copy ${label.toLowerCase()}`,
}
