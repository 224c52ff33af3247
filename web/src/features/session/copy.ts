/** Texts of signing in and of the end of a session. */

export const signIn = {
  title: 'Sign in',
  setUpTitle: 'Set up the console',
  windowTitle: (isSetUp: boolean) => `${isSetUp ? 'Set up' : 'Sign in'} · Vacancy`,
  name: 'Name',
  password: 'Password',
  submit: 'Sign in',
  submitIn: (seconds: number) => `Sign in (in ${seconds} s)`,
  wait: (seconds: number) => `Wait ${seconds} s`,
  usePassword: 'Use name and password instead',
  useToken: 'Use a console token instead',
  linkForm: 'Sign in by link',
  linkHint: 'You opened a sign-in link. It works once.',
  linkSubmit: 'Sign in with this link',
  singleSignOn: (label: string) => `Sign in with ${label}`,
  problem: 'Not signed in',
  /** By code, of those that `GET /api/v1/session/oidc/callback` sends. */
  problems: {
    'name-taken': 'Somebody else has your name here. Ask an admin.',
    'person-disabled': 'You may not sign in. Ask an admin.',
    'sso-expired': 'The sign-in was begun in another browser, or too long ago. Begin again.',
    'sso-failed': 'Single sign-on failed. Try again; the audit log has the reason.',
    'sso-name': 'The provider gives no name that may be used here. Ask an admin.',
    'sso-no-role': 'Your account has no role here. Ask an admin.',
    'too-many': 'The maximum of people is reached. Ask an admin.',
    'too-many-tries': 'Too many attempts. Wait a minute.',
  } as { readonly [code: string]: string },
  tokenForm: 'Sign in with a token',
  token: 'Console token',
  tokenName: 'token',
  tokenHint: 'An API token. You get its permissions, and the session ends when the token is revoked or expires.',
}

export const setUp = {
  form: 'Set up',
  lead: 'There are no accounts yet. The first person becomes an admin and adds the others.',
  code: 'Setup code',
  codeHint: 'The control plane printed it at start.',
  name: 'Your name',
  nameHint: 'Letters, digits and . _ @ -',
  passwordHint: (characters: number) => `At least ${characters} characters.`,
  submit: 'Create the first admin',
}

export const passwordInput = {
  password: 'password',
  show: (what: string) => `Show ${what}`,
  hide: (what: string) => `Hide ${what}`,
  capsLock: 'Caps lock is on',
}

export const ended = {
  title: 'Your session has ended',
  announcement: 'Your session has ended. Sign in again to continue.',
  hint: 'Sign in to continue. The page and everything you typed are kept.',
  singleSignOn: 'Sign in in a new tab',
  elsewhere: 'Signed in elsewhere',
  elsewhereHint: 'With a sign-in link or single sign-on, sign in in another tab, then continue here.',
  elsewhereSubmit: 'I signed in in another tab',
}

export const ending = {
  title: 'Your session ends soon',
  announcement: 'Your session ends in two minutes.',
  text: (seconds: number) => `You've been inactive. You'll be signed out in ${seconds} s.`,
  stay: 'Stay signed in',
}
