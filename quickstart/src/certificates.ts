/**
 * Certificates and tokens of a shard: an authority and one certificate per node, created by `vacancy certs` at the
 * first start and renewed before they expire, and an auth file with its tokens.
 */

import { createHash, randomBytes, X509Certificate } from 'node:crypto'
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type ProcessGroup, runToEnd, VACANCY } from './launch.ts'
import type { PlatformFiles, TokenName } from './platform/files.ts'

/** A certificate that expires sooner is renewed at startup, because a quick start runs for long. */
const DAYS_LEFT_MIN = 30
const DAY_MS = 86_400_000
const TOKEN_BYTES = 24
const NODE_ROLES = ['admin', 'client'] as const
const QUEUE_ROLES = ['producer', 'consumer'] as const

/** @returns the number of created certificates */
export async function makeCertificates(
  group: ProcessGroup,
  { certs }: Pick<PlatformFiles, 'certs'>,
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

/** Tokens of the nodes and of the job queue, each in a file only the user can read, and auth files with their hashes. */
export function makeTokens(files: PlatformFiles): void {
  makeAuthFile(files.auth, NODE_ROLES, files, 'Roles: docs/operators.md.')
  makeAuthFile(files.queueAuth, QUEUE_ROLES, files, 'Roles: docs/queue.md.')
}

function makeAuthFile(
  auth: string,
  roles: readonly TokenName[],
  { tokenOf }: Pick<PlatformFiles, 'tokenOf'>,
  comment: string,
): void {
  if (existsSync(auth)) return
  const entries = roles.map((role) => {
    const token = randomBytes(TOKEN_BYTES).toString('base64url')
    writeFileSync(tokenOf(role), `${token}\n`, { mode: 0o600 })
    const hash = createHash('sha256').update(token).digest('hex')
    return `  - { token: "sha256:${hash}", role: ${role}, name: quickstart }\n`
  })
  const text = `# ${comment} The tokens are in separate files in this folder.\ntokens:\n${entries.join('')}`
  // Written last and atomically: while it is missing, both are created again.
  writeFileSync(`${auth}.tmp`, text, { mode: 0o600 })
  renameSync(`${auth}.tmp`, auth)
}
