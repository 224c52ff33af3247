/**
 * The command `vacancy certs`: the authority of a cluster and a certificate for each of its nodes, by which peers
 * identify the node (transport/peer-tls.ts). Keys are P-256. An existing authority of the operator works as well: a
 * node's certificate must name the node as `urn:vacancy:node:<node id>`.
 *
 * Only this command loads the certificate library; a node never needs it.
 */

import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import { isIP } from 'node:net'
import { join } from 'node:path'
import { EXIT, ID_RULE, parseId, VacancyError } from '@vacancy/shared'
import { type Command, defineCommand, helpOf, named, runCommands, whole } from '@vacancy/shared/node'
import { errnoOf } from '../env.ts'
import { nodeUri } from '../transport/peer-tls.ts'

export const CA_CERT_FILE = 'ca.pem'
export const CA_KEY_FILE = 'ca.key'

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const
const AUTHORITY_DAYS = 3650
const NODE_DAYS = 365
const DAYS_MAX = 36_500
const HOSTS_MAX = 100
const DAY_MS = 86_400_000
/** Clocks of a cluster differ, so a certificate is valid from a little before its creation. */
const EARLY_MS = 3_600_000
const SERIAL_BYTES = 16

/** Certificate and key, PEM. */
export type Pair = { readonly cert: string; readonly key: string }

type Validity = { readonly nowMs: number; readonly days: number }

/** A new authority: it signs nodes, and no authorities below it. */
export async function createAuthority({ nowMs, days }: Validity): Promise<Pair> {
  const x509 = await loadLibrary()
  const keys = await createKeys()
  const serial = serialNumber()
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    // The serial number makes the name unique, so that two authorities are not confused.
    name: [{ CN: [`Vacancy cluster authority ${serial.slice(0, 8)}`] }],
    serialNumber: serial,
    ...periodOf(nowMs, nowMs + days * DAY_MS),
    keys,
    signingAlgorithm: ALGORITHM,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  })
  return { cert: `${certificate.toString('pem')}\n`, key: await exportKey(keys.privateKey) }
}

/**
 * A certificate for one node, both as server and as client. It never outlives its authority.
 *
 * @param hosts names and addresses for other listeners that use it; peers ignore them
 * @throws VacancyError invalid_tls: not an authority, or the key of another one
 */
export async function createNodeCertificate(
  authority: Pair,
  { node, hosts, nowMs, days }: Validity & { readonly node: string; readonly hosts: readonly string[] },
): Promise<Pair> {
  const x509 = await loadLibrary()
  const signer = await openAuthority(authority, nowMs)
  const keys = await createKeys()
  const issuer = new x509.X509Certificate(authority.cert)
  const certificate = await x509.X509CertificateGenerator.create({
    // For people only. A common name has at most 64 characters (RFC 5280, ub-common-name); ids may be longer.
    subject: [{ CN: [node.slice(0, 64)] }],
    issuer: issuer.subjectName,
    serialNumber: serialNumber(),
    ...periodOf(nowMs, Math.min(nowMs + days * DAY_MS, issuer.notAfter.getTime())),
    publicKey: keys.publicKey,
    signingKey: signer,
    signingAlgorithm: ALGORITHM,
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth, x509.ExtendedKeyUsage.clientAuth]),
      new x509.SubjectAlternativeNameExtension([
        { type: 'url', value: nodeUri(node) },
        ...hosts.map((host) => ({ type: isIP(host) === 0 ? ('dns' as const) : ('ip' as const), value: host })),
      ]),
      await x509.AuthorityKeyIdentifierExtension.create(issuer.publicKey),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  })
  return { cert: `${certificate.toString('pem')}\n`, key: await exportKey(keys.privateKey) }
}

/** The signing key, checked: every party that trusts the certificate must trust what the key signs. */
async function openAuthority({ cert, key }: Pair, nowMs: number): Promise<CryptoKey> {
  const [certificate, privateKey] = parsePair(cert, key)
  if (!certificate.ca) throw invalid(`${CA_CERT_FILE} is not a certificate of an authority`)
  if (!certificate.checkPrivateKey(privateKey)) throw invalid(`${CA_KEY_FILE} is not the key of ${CA_CERT_FILE}`)
  if (privateKey.asymmetricKeyDetails?.namedCurve !== 'prime256v1') throw invalid(`${CA_KEY_FILE} is not a P-256 key`)
  if (Date.parse(certificate.validTo) <= nowMs) {
    throw invalid(
      `${CA_CERT_FILE} expired at ${certificate.validTo}; create a new authority with \`vacancy certs init\``,
    )
  }
  const pkcs8 = privateKey.export({ type: 'pkcs8', format: 'der' })
  return await crypto.subtle.importKey('pkcs8', pkcs8, ALGORITHM, false, ['sign'])
}

function parsePair(cert: string, key: string): readonly [X509Certificate, KeyObject] {
  try {
    return [new X509Certificate(cert), createPrivateKey(key)]
  } catch (cause) {
    throw invalid(`${CA_CERT_FILE} or ${CA_KEY_FILE} holds something else: ${(cause as Error).message}`, cause)
  }
}

async function loadLibrary() {
  // The library looks up decorators in it, so it must load first.
  await import('reflect-metadata')
  return await import('@peculiar/x509')
}

async function createKeys(): Promise<CryptoKeyPair> {
  return (await crypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify'])) as CryptoKeyPair
}

async function exportKey(key: CryptoKey): Promise<string> {
  const pkcs8 = Buffer.from(await crypto.subtle.exportKey('pkcs8', key))
  return createPrivateKey({ key: pkcs8, format: 'der', type: 'pkcs8' }).export({
    type: 'pkcs8',
    format: 'pem',
  }) as string
}

/** 127 random bits: a serial number is positive. */
function serialNumber(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(SERIAL_BYTES))
  bytes[0] = (bytes[0] & 0x7f) | 0x40
  return Buffer.from(bytes).toString('hex')
}

const periodOf = (fromMs: number, toMs: number) => ({
  notBefore: new Date(fromMs - EARLY_MS),
  notAfter: new Date(toMs),
})

function invalid(reason: string, cause?: unknown): VacancyError {
  return new VacancyError('invalid_tls', { reason }, { cause })
}

// Commands

const COMMON_FLAGS = {
  out: { ...named('DIR'), required: true, summary: 'Folder for the files, created if absent.' },
  force: { type: 'boolean', summary: 'Replaces existing files.' },
} as const

const initCommand = defineCommand({
  name: 'vacancy certs init',
  component: 'CERTS_INIT',
  summary: `Creates the authority of a cluster: ${CA_CERT_FILE} for every node, and ${CA_KEY_FILE}, which stays with the operator.`,
  flags: {
    ...COMMON_FLAGS,
    days: { ...whole(AUTHORITY_DAYS, 1, DAYS_MAX, 'days'), summary: 'How long it is valid.' },
  },
  run: async ({ flags }) => {
    refuseToReplace(flags.out, [CA_CERT_FILE, CA_KEY_FILE], flags.force)
    const { cert, key } = await createAuthority({ nowMs: Date.now(), days: flags.days })
    writePair(flags.out, { [CA_CERT_FILE]: cert, [CA_KEY_FILE]: key }, flags.force)
    print([
      `${join(flags.out, CA_CERT_FILE)}: certificate of the authority, valid until ${endOf(cert)}; for --ca-cert-path of every node`,
      `${join(flags.out, CA_KEY_FILE)}: its key, which can create nodes of this cluster; never copy it to a node`,
    ])
    return EXIT.ok
  },
})

const nodeCommand = defineCommand({
  name: 'vacancy certs node',
  component: 'CERTS_NODE',
  summary: 'Creates the certificate of one node: <node id>.pem and <node id>.key.',
  flags: {
    ca: { ...named('DIR'), required: true, summary: `Folder with ${CA_CERT_FILE} and ${CA_KEY_FILE}.` },
    'node-id': { ...named('ID'), required: true, summary: 'The node; the certificate is valid for no other.' },
    host: {
      type: 'list',
      value: 'A,B',
      summary: 'Host names and addresses, for other listeners that use the certificate; peers look at the node id.',
    },
    ...COMMON_FLAGS,
    days: { ...whole(NODE_DAYS, 1, DAYS_MAX, 'days'), summary: 'How long it is valid.' },
  },
  run: async ({ flags }) => {
    const { nodeId: node, out, host: hosts = [] } = flags
    if (parseId(node) === undefined) throw usage(`--node-id: ${node} is not an id: ${ID_RULE}`)
    if (`${node}.pem` === CA_CERT_FILE) throw usage(`--node-id: ${node} would overwrite the files of the authority`)
    if (hosts.length > HOSTS_MAX) throw usage(`--host: at most ${HOSTS_MAX} names`)
    const invalidHost = hosts.find((host) => isIP(host) === 0 && !HOST_NAME.test(host))
    if (invalidHost !== undefined) throw usage(`--host: ${invalidHost} is neither a host name nor an address`)
    const [certFile, keyFile] = [`${node}.pem`, `${node}.key`]
    refuseToReplace(out, [certFile, keyFile], flags.force)
    const authority = { cert: read(join(flags.ca, CA_CERT_FILE)), key: read(join(flags.ca, CA_KEY_FILE)) }
    const pair = await createNodeCertificate(authority, {
      node,
      hosts,
      nowMs: Date.now(),
      days: flags.days,
    })
    writePair(out, { [certFile]: pair.cert, [keyFile]: pair.key }, flags.force)
    print([
      `${join(out, certFile)}: certificate of node ${node}, valid until ${endOf(pair.cert)}; for --cert-path`,
      `${join(out, keyFile)}: its key; for --key-path`,
    ])
    return EXIT.ok
  },
})

const HOST_NAME = /^(?=.{1,253}$)(?:\*\.)?[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,62})(?:\.[A-Za-z0-9_][A-Za-z0-9_-]{0,62})*$/

export const CERTS_COMMANDS: readonly Command[] = [initCommand, nodeCommand]

/** Runs `vacancy certs …`; sets the exit code. */
export async function certsMain(args: readonly string[]): Promise<void> {
  const [word] = args
  if (word === undefined || word === '--help') {
    print([CERTS_COMMANDS.map(helpOf).join('\n\n')])
    process.exitCode = word === undefined ? EXIT.usage : EXIT.ok
    return
  }
  await runCommands(CERTS_COMMANDS, args)
}

function refuseToReplace(folder: string, names: readonly string[], isForced: boolean): void {
  const there = names.find((name) => statSync(join(folder, name), { throwIfNoEntry: false }))
  if (there === undefined || isForced) return
  throw usage(`${join(folder, there)} already exists: give another --out, or --force to replace it`)
}

/** Both files or none: a certificate with another one's key starts no node. */
function writePair(folder: string, files: { readonly [name: string]: string }, isForced: boolean): void {
  try {
    mkdirSync(folder, { recursive: true })
    for (const [name, content] of Object.entries(files)) writeFile(join(folder, `${name}.new`), content)
    refuseToReplace(folder, Object.keys(files), isForced)
    for (const name of Object.keys(files)) renameSync(join(folder, `${name}.new`), join(folder, name))
  } catch (cause) {
    for (const name of Object.keys(files)) rmSync(join(folder, `${name}.new`), { force: true })
    if (errnoOf(cause) === '') throw cause
    throw new VacancyError('failure', { reason: `${folder} is not writable: ${(cause as Error).message}` }, { cause })
  }
}

/** A key is readable by its owner only, from its first byte on. */
function writeFile(path: string, content: string): void {
  rmSync(path, { force: true })
  const file = openSync(path, 'wx', path.endsWith('.key.new') ? 0o600 : 0o644)
  try {
    writeSync(file, content)
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (cause) {
    throw invalid(
      `${path} cannot be read: ${(cause as Error).message}; \`vacancy certs init\` creates an authority`,
      cause,
    )
  }
}

const endOf = (cert: string): string => new Date(new X509Certificate(cert).validTo).toISOString()

const usage = (reason: string): VacancyError => new VacancyError('usage_error', { reason })

function print(lines: readonly string[]): void {
  process.stdout.write(`${lines.join('\n')}\n`)
}
