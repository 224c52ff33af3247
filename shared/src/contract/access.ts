/** Sign-in, people, tokens, audit and settings of the control plane (docs/design/control-plane.md#access). */

import { z } from 'zod'
import { TOPIC_PATTERN } from '../ids.ts'
import { type ControlRoute, count, noBody, PERSON_ROLES, pageQuery, TOKEN_ROLES, time } from './control.ts'

export const ACCESS_LIMITS = {
  nameMax: 64,
  passwordMin: 10,
  passwordMax: 256,
  reasonMin: 8,
  reasonMax: 500,
  peopleMax: 1_000,
  tokensMax: 1_000,
  tokenTopicsMax: 100,
} as const

/** User names, as typed at sign-in; compared in lower case. */
const userName = z.string().regex(/^[A-Za-z0-9._@-]{1,64}$/, 'must be 1 to 64 letters, digits or . _ @ -')
const password = z.string().min(ACCESS_LIMITS.passwordMin).max(ACCESS_LIMITS.passwordMax)
const personRole = z.enum(PERSON_ROLES)
const tokenRole = z.enum(TOKEN_ROLES)
/** One line of text entered by a person. */
const line = (max: number) =>
  z
    .string()
    .trim()
    .min(1)
    .max(max)
    .regex(/^[^\p{Cc}]*$/u, 'must be one line')

/** `development` requires less confirmation (docs/design/control-plane.md#plan). The label is shown on every page. */
export const environmentBody = z.object({
  label: line(24),
  kind: z.enum(['development', 'staging', 'production']),
})
export type Environment = z.infer<typeof environmentBody>

/** A person's display preferences of a table. They are sent whole with each first page, so they stay small. */
const TABLE_LIMITS = { columnsMax: 32, widthMin: 48, widthMax: 800, viewsMax: 20, filterMax: 300 } as const

const columnId = z.string().regex(/^[a-z][a-z0-9-]{0,31}$/)
/** In display order; null for the console's default. */
const shownColumns = z.array(columnId).min(1).max(TABLE_LIMITS.columnsMax).nullable()

/** A named filter, order and column set of one person. */
const savedView = z.object({
  name: line(ACCESS_LIMITS.nameMax),
  filter: z.string().max(TABLE_LIMITS.filterMax),
  /** As it appears in the URL of the page. */
  sort: z.string().max(64),
  columns: shownColumns,
})
export type SavedView = z.infer<typeof savedView>

const tableFields = z.object({
  columns: shownColumns,
  /** Pixels. */
  widths: z
    .record(columnId, z.int().min(TABLE_LIMITS.widthMin).max(TABLE_LIMITS.widthMax))
    .refine((widths) => Object.keys(widths).length <= TABLE_LIMITS.columnsMax, 'has too many columns'),
  views: z
    .array(savedView)
    .max(TABLE_LIMITS.viewsMax)
    .refine((views) => new Set(views.map(({ name }) => name)).size === views.length, 'two have the same name'),
})
const preferenceFields = z.object({
  theme: z.enum(['system', 'light', 'dark', 'contrast']),
  density: z.enum(['comfortable', 'compact', 'dense']),
  keys: z.boolean(),
  /** The last typed time ranges of charts, newest first. */
  ranges: z.array(z.string().max(64)).max(5),
})

export const preferences = z.object({
  theme: preferenceFields.shape.theme.default('system'),
  density: preferenceFields.shape.density.default('compact'),
  keys: preferenceFields.shape.keys.default(true),
  ranges: preferenceFields.shape.ranges.default([]),
  /** The table of shards. */
  shards: tableFields.default({ columns: null, widths: {}, views: [] }),
  /** The table of topics. */
  queue: tableFields.default({ columns: null, widths: {}, views: [] }),
  /** Lists of jobs: their views hold the query of the page in `filter`. */
  jobs: tableFields.default({ columns: null, widths: {}, views: [] }),
})
export type Preferences = z.infer<typeof preferences>

/** An omitted key is unchanged: another tab may have changed it meanwhile. */
const preferencesChange = preferenceFields
  .extend({ shards: tableFields.partial(), queue: tableFields.partial(), jobs: tableFields.partial() })
  .partial()
export type PreferencesChange = z.infer<typeof preferencesChange>

const personBody = z.object({
  id: z.string(),
  name: z.string(),
  role: personRole,
  createdAt: time,
  lastSeenAt: time.nullable(),
  disabled: z.boolean(),
  /** The provider of single sign-on decides about the role, at each sign-in. */
  singleSignOn: z.boolean(),
})
export type PersonView = z.infer<typeof personBody>

/**
 * `GET /me`: the signed-in principal, and everything the shell needs at once. `csrf` goes into `x-csrf` of every
 * change.
 */
const meBody = z.object({
  person: personBody,
  csrf: z.string(),
  /**
   * A person who signed in by a link may choose a password without giving the current one. A session signed in with a
   * token is shown as a `person` with the token's name and the role whose pages it may use. It has no password, and
   * it ends with the token.
   */
  signedInBy: z.enum(['password', 'link', 'set-up', 'token', 'single sign-on']),
  /** The session ends at this time unless a request extends it. */
  endsAt: time,
  environment: environmentBody,
  preferences,
  version: z.string(),
})
export type Me = z.infer<typeof meBody>

/** What the sign-in page needs before a person signs in. */
const signInState = z.object({
  /** No person exists yet: the one-time code in the server's log creates the first admin. */
  setUp: z.boolean(),
  /** What the button of single sign-on is called; null without it. */
  singleSignOn: z.string().nullable(),
  environment: environmentBody,
})

const tokenBody = z.object({
  id: z.string(),
  name: z.string(),
  role: tokenRole,
  /** Of a producer or consumer: the only topics it is valid for, each a name or the beginning of one with `*`. */
  topics: z.array(z.string()).nullable(),
  createdBy: z.string(),
  createdAt: time,
  expiresAt: time.nullable(),
  lastUsedAt: time.nullable(),
  lastUsedFrom: z.string().nullable(),
  revokedAt: time.nullable(),
})
export type TokenView = z.infer<typeof tokenBody>

const fileTokenBody = z.object({
  /** Empty where the file gives none. */
  name: z.string(),
  role: tokenRole,
  topics: z.array(z.string()).nullable(),
  expiresAt: time.nullable(),
})
export type FileTokenView = z.infer<typeof fileTokenBody>

const tokensBody = z.object({
  tokens: z.array(tokenBody),
  /** Tokens of the job queue that a file has; null without such a file. They are revoked by removing them there. */
  queueFile: z.object({ path: z.string(), tokens: z.array(fileTokenBody) }).nullable(),
})

const auditEntry = z.object({
  seq: count,
  at: time,
  /** Person or token; `system` for actions of the control plane itself. */
  actor: z.string(),
  /** Part of the hash chain, so existing values stay. */
  actorKind: z.enum(['person', 'token', 'system', 'nobody']),
  address: z.string(),
  /** The program that asked, as it names itself; '' where it did not. */
  userAgent: z.string(),
  action: z.string(),
  target: z.string(),
  reason: z.string(),
  /** `done`, `refused`, `failed`, or the end state of an operation. */
  result: z.string(),
  detail: z.string(),
  operation: z.string().nullable(),
  requestId: z.string(),
  /** SHA-256 of this entry and the hash of the previous one. */
  hash: z.string(),
})
export type AuditEntry = z.infer<typeof auditEntry>

const idParams = z.object({ id: z.string().max(64) })

const auditQuery = pageQuery.extend({
  actor: z.string().max(64).optional(),
  action: z.string().max(64).optional(),
  target: z.string().max(256).optional(),
  from: time.optional(),
  to: time.optional(),
})

export const ACCESS_ROUTES = {
  'GET /api/v1/sign-in': { access: 'open', summary: 'Data for the sign-in page.', response: signInState },
  'POST /api/v1/session': {
    access: 'open',
    summary: 'Signs in by name and password; sets the session cookie.',
    body: z.object({ name: userName, password: z.string().min(1).max(ACCESS_LIMITS.passwordMax) }),
    response: meBody,
  },
  'POST /api/v1/session/token': {
    access: 'open',
    summary:
      'Signs in with an API token: the session has the rights of the token, and ends when the token is revoked or expires.',
    body: z.object({ token: z.string().trim().min(1).max(128) }),
    response: meBody,
  },
  'POST /api/v1/session/link': {
    access: 'open',
    summary:
      'Signs in by the one-time code of a sign-in link. The link itself only opens a page; this call consumes it.',
    body: z.object({ code: z.string().min(16).max(128) }),
    response: meBody,
  },
  'GET /api/v1/session/oidc': {
    access: 'open',
    summary: 'Sends the browser to the provider of single sign-on; `next` is the page of the console to open after it.',
    query: z.object({ next: z.string().default('/') }),
    status: 303,
    response: noBody,
  },
  'GET /api/v1/session/oidc/callback': {
    access: 'open',
    summary: 'The provider sends the browser back here: signs in, or shows the reason on the sign-in page.',
    query: z.looseObject({}),
    status: 303,
    response: noBody,
  },
  'POST /api/v1/set-up': {
    access: 'open',
    summary: 'Creates the first admin with the one-time code that the server printed.',
    body: z.object({ code: z.string().min(16).max(128), name: userName, password }),
    status: 201,
    response: meBody,
  },
  'DELETE /api/v1/session': { access: 'session', summary: 'Signs out.', status: 204, response: noBody },
  'GET /api/v1/me': { access: 'session', summary: 'The signed-in principal.', response: meBody },
  'PUT /api/v1/me/password': {
    access: 'session',
    summary:
      'Changes your password and ends all your other sessions. After a sign-in by link, `current` is ignored. A session of a token has no password.',
    body: z.object({ current: z.string().max(ACCESS_LIMITS.passwordMax).default(''), next: password }),
    status: 204,
    response: noBody,
  },
  'PUT /api/v1/me/preferences': {
    access: 'session',
    summary:
      'Theme, density, keys, and the layout of the shard table: columns, widths, saved views. Omitted keys are unchanged.',
    body: preferencesChange,
    response: preferences,
  },
  'GET /api/v1/people': {
    access: 'admin',
    summary: 'All people who may sign in.',
    response: z.object({ people: z.array(personBody) }),
  },
  'POST /api/v1/people': {
    access: 'admin',
    summary: 'Adds a person. The response holds a one-time sign-in link, shown once.',
    body: z.object({ name: userName, role: personRole }),
    status: 201,
    response: z.object({ person: personBody, link: z.string() }),
  },
  'PUT /api/v1/people/{id}': {
    access: 'admin',
    summary: 'Changes the role, or whether the person may sign in. The last admin cannot be demoted or disabled.',
    params: idParams,
    body: z.object({ role: personRole.optional(), disabled: z.boolean().optional() }),
    response: personBody,
  },
  'POST /api/v1/people/{id}/link': {
    access: 'admin',
    summary: 'Creates a one-time sign-in link, for a person who forgot the password.',
    params: idParams,
    status: 201,
    response: z.object({ link: z.string() }),
  },
  'GET /api/v1/tokens': {
    access: 'admin',
    summary: 'API tokens, and those in the auth file of the job queue, without their values.',
    response: tokensBody,
  },
  'POST /api/v1/tokens': {
    access: 'admin',
    summary: 'Creates a token. Only this response holds its value.',
    body: z
      .object({
        name: line(ACCESS_LIMITS.nameMax),
        role: tokenRole,
        expiresAt: time.nullable().default(null),
        topics: z
          .array(z.string().regex(TOPIC_PATTERN, 'must be a topic name, or the beginning of one followed by *'))
          .min(1)
          .max(ACCESS_LIMITS.tokenTopicsMax)
          .nullable()
          .default(null),
      })
      .refine(({ role, topics }) => topics === null || role === 'producer' || role === 'consumer', {
        path: ['topics'],
        message: 'are for the roles producer and consumer',
      }),
    status: 201,
    response: z.object({ token: tokenBody, value: z.string() }),
  },
  'DELETE /api/v1/tokens/{id}': {
    access: 'admin',
    summary: 'Revokes a token immediately.',
    params: idParams,
    status: 204,
    response: noBody,
  },
  'GET /api/v1/audit': {
    access: 'viewer',
    summary: 'Changes and refusals, newest first.',
    query: auditQuery,
    response: z.object({ entries: z.array(auditEntry), next: z.string().nullable(), total: count }),
  },
  'GET /api/v1/audit/export': {
    access: 'viewer',
    summary: 'The audit log as JSON lines or CSV.',
    query: auditQuery.omit({ cursor: true, limit: true }).extend({ format: z.enum(['jsonl', 'csv']).default('jsonl') }),
    gives: 'bytes',
    response: z.unknown(),
  },
  'POST /api/v1/audit/verify': {
    access: 'viewer',
    summary: 'Verifies the hash chain, and names the first broken entry.',
    response: z.object({ entries: count, brokenAt: count.nullable() }),
  },
  'GET /api/v1/settings': {
    access: 'viewer',
    summary: 'Control-plane settings.',
    response: z.object({
      environment: environmentBody,
      /** Base address in copied commands; '' for the address of the page. */
      baseUrl: z.string(),
      version: z.string(),
      database: z.enum(['sqlite', 'postgresql']),
      registry: z.string().nullable(),
      resolver: z.string().nullable(),
      nodes: count,
      startedAt: time,
    }),
  },
  'PUT /api/v1/settings': {
    access: 'admin',
    summary: 'Environment label and base address.',
    body: z.object({
      environment: environmentBody,
      baseUrl: z.union([z.literal(''), z.url({ protocol: /^https?$/ }).max(256)]),
    }),
    status: 204,
    response: noBody,
  },
} as const satisfies { readonly [name: string]: ControlRoute }
