/** Columns in both databases: times are UTC milliseconds, booleans are 0 or 1, JSON is text. */
import type { Me, PersonRole, TokenRole } from '@vacancy/shared/contract'
import type { Kysely } from 'kysely'

export type AccessTables = AuditTables & {
  people: {
    id: string
    name: string
    /** The name in lower case, compared at sign-in. */
    name_key: string
    role: PersonRole
    /** PHC string of Argon2id; null until the person chooses a password. */
    password: string | null
    disabled: number
    preferences: string
    created_at: number
    last_seen_at: number | null
    /** Who the person is for the provider of single sign-on: issuer and subject; null for people of this console. */
    subject: string | null
  }
  sessions: {
    /** SHA-256 of the cookie's value, hexadecimal. */
    hash: string
    person_id: string
    signed_in_by: Exclude<Me['signedInBy'], 'token'>
    address: string
    created_at: number
    last_seen_at: number
  }
  /** Sessions that began with an API token: they end with it and have its permissions. */
  token_sessions: {
    /** SHA-256 of the cookie's value, hexadecimal. */
    hash: string
    token_id: string
    address: string
    created_at: number
    last_seen_at: number
  }
  /** One-time codes: redeeming one deletes its row. */
  sign_in_links: {
    hash: string
    /** Null: the set-up code, which creates the first admin. */
    person_id: string | null
    created_at: number
    expires_at: number
  }
  tokens: {
    id: string
    hash: string
    name: string
    role: TokenRole
    /** JSON list of topic patterns; null: all topics. */
    topics: string | null
    created_by: string
    created_at: number
    expires_at: number | null
    last_used_at: number | null
    last_used_from: string | null
    revoked_at: number | null
    /** Of the sessions that begin with it. */
    preferences: string
  }
  settings: { name: string; value: string }
}

export type AuditTables = {
  audit: {
    seq: number
    at: number
    actor: string
    /** Part of the hash chain; `nobody` is an anonymous request. */
    actor_kind: 'person' | 'token' | 'system' | 'nobody'
    address: string
    /** Null in entries of the first versions. */
    user_agent: string | null
    action: string
    target: string
    reason: string
    result: string
    detail: string
    operation: string | null
    request_id: string
    hash: string
  }
  /** One row: the end of the chain, and the position before its first retained entry. */
  audit_chain: { id: number; seq: number; hash: string; kept_after: number; kept_hash: string }
}

/** People, sessions, tokens and settings; each change has its audit entry. */
export type AccessDatabase = Kysely<AccessTables>
export type AuditDatabase = Kysely<AuditTables>
