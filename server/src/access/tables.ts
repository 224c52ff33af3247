/** Columns as both databases keep them: times are UTC milliseconds, truth is 0 or 1, JSON is text. */
import type { PersonRole, TokenRole } from '@vacancy/shared/contract'
import type { Kysely } from 'kysely'

export type AccessTables = AuditTables & {
  people: {
    id: string
    name: string
    /** The name in lower case: what is compared at sign-in. */
    name_key: string
    role: PersonRole
    /** PHC string of Argon2id; null until the person chose one. */
    password: string | null
    disabled: number
    preferences: string
    created_at: number
    last_seen_at: number | null
  }
  sessions: {
    /** SHA-256 of what the cookie holds, hexadecimal. */
    hash: string
    person_id: string
    signed_in_by: 'password' | 'link' | 'set-up'
    address: string
    created_at: number
    last_seen_at: number
  }
  /** Begun with an API token: they end with it, and may do what it may. */
  token_sessions: {
    /** SHA-256 of what the cookie holds, hexadecimal. */
    hash: string
    token_id: string
    address: string
    created_at: number
    last_seen_at: number
  }
  /** One-time codes: a row is deleted by its use. */
  sign_in_links: {
    hash: string
    /** Null: the code of the set-up, which makes the first admin. */
    person_id: string | null
    created_at: number
    expires_at: number
  }
  tokens: {
    id: string
    hash: string
    name: string
    role: TokenRole
    created_by: string
    created_at: number
    expires_at: number | null
    last_used_at: number | null
    last_used_from: string | null
    revoked_at: number | null
    /** Of the sessions that are begun with it. */
    preferences: string
  }
  settings: { name: string; value: string }
}

export type AuditTables = {
  audit: {
    seq: number
    at: number
    actor: string
    actor_kind: 'person' | 'token' | 'system' | 'nobody'
    address: string
    action: string
    target: string
    reason: string
    result: string
    detail: string
    operation: string | null
    request_id: string
    hash: string
  }
  /** One row: the end of the chain, and the place before its first entry that is still kept. */
  audit_chain: { id: number; seq: number; hash: string; kept_after: number; kept_hash: string }
}

/** Of people, sessions, tokens and settings, each change with its audit entry. */
export type AccessDatabase = Kysely<AccessTables>
export type AuditDatabase = Kysely<AuditTables>
