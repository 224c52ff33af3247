/**
 * What the nodes of a shard need to trust each other and their operators: an authority and a certificate a node, made
 * by `vacancy certs` at the first start and renewed before they end; and an auth file with its tokens.
 */

import { createHash, randomBytes, X509Certificate } from 'node:crypto'
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type ProcessGroup, runToEnd, VACANCY } from './launch.ts'
import type { ShardLayout } from './layout.ts'

/** A certificate that expires sooner is renewed at startup, because a quick start runs for long. */
const DAYS_LEFT_MIN = 30
const DAY_MS = 86_400_000
const TOKEN_BYTES = 24
const ROLES = ['admin', 'client'] as const

/** @returns how many certificates were made */
export async function makeCertificates(
  group: ProcessGroup,
  { certs }: ShardLayout,
  nodes: readonly string[],
  nowMs: number,
): Promise<number> {
  const make = (...args: string[]) =>
    runToEnd(group, [VACANCY, 'certs', ...args, '--out', certs], 'vacancy certs', { isQuiet: true })
  const isNew = endOf(join(certs, 'ca.pem')) < nowMs + DAYS_LEFT_MIN * DAY_MS
  if (isNew) await make('init', '--force')
  const wanting = nodes.filter((node) => isNew || endOf(join(certs, `${node}.pem`)) < nowMs + DAYS_LEFT_MIN * DAY_MS)
  await Promise.all(wanting.map((node) => make('node', '--ca', certs, '--node-id', node, '--force')))
  return wanting.length
}

/** When a certificate expires; 0 without a certificate. */
function endOf(file: string): number {
  return existsSync(file) ? Date.parse(new X509Certificate(readFileSync(file)).validTo) : 0
}

/** Tokens for the roles, each in a file only the user can read, and the auth file with their hashes. */
export function makeTokens({ auth, tokenOf }: ShardLayout): void {
  if (existsSync(auth)) return
  const entries = ROLES.map((role) => {
    const token = randomBytes(TOKEN_BYTES).toString('base64url')
    writeFileSync(tokenOf(role), `${token}\n`, { mode: 0o600 })
    const hash = createHash('sha256').update(token).digest('hex')
    return `  - { token: "sha256:${hash}", role: ${role}, name: quickstart }\n`
  })
  const text = `# Who may do what: docs/operators.md. The tokens themselves are in the files beside.\ntokens:\n${entries.join('')}`
  // Written last and as a whole: while it is missing, both are created again.
  writeFileSync(`${auth}.tmp`, text, { mode: 0o600 })
  renameSync(`${auth}.tmp`, auth)
}
