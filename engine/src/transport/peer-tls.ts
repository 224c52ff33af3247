/**
 * Identity of a peer by its certificate: exactly one URI among the alternative names, `urn:vacancy:node:<node id>`.
 * Host names do not matter then: a node keeps its id when it moves, and an id may contain characters that a host name
 * may not.
 *
 * A certificate without such a URI, as other authorities issue them, is valid for the nodes whose address it names.
 * Nodes may share one, and then its key can impersonate any of them. `tls_require_node_id` refuses such certificates.
 */

import { X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import { createSecureContext, type SecureContext, type SecureContextOptions } from 'node:tls'
import { parseId, VacancyError } from '@vacancy/shared'
import type { TlsMaterial } from '@vacancy/shared/node'

const NODE_URI = 'urn:vacancy:node:'

/** The URI in the certificate of a node. */
export function nodeUri(node: string): string {
  return `${NODE_URI}${node}`
}

/**
 * The node that a certificate names.
 *
 * @param names as Node prints them: `URI:urn:vacancy:node:a, DNS:"with, comma"`
 * @returns undefined when it names none, or several
 */
export function nodeNamedBy(names: string | undefined): string | undefined {
  const nodes: string[] = []
  // Names with a comma or a quote are printed as JSON strings. Text inside them is not a separate name.
  for (const [, value] of (names ?? '').matchAll(/(?:^|, )URI:("(?:[^"\\]|\\.)*"|[^,"]*)|"(?:[^"\\]|\\.)*"/g)) {
    if (value?.startsWith(NODE_URI)) nodes.push(value.slice(NODE_URI.length))
  }
  const [node] = nodes
  return nodes.length === 1 && node !== undefined ? parseId(node) : undefined
}

/** What a certificate names: a node by its id, hosts by their names, or nothing usable; `any` where that is enough. */
export type Named = { readonly node: string } | 'hosts' | 'none' | 'any'

/** Whether a certificate claims to be that of a node, or of several. */
export const namesANode = ({ subjectAltName }: X509Certificate): boolean => subjectAltName?.includes(NODE_URI) ?? false

/** The names of a certificate, and what it may not be used for, for messages. */
export function namesText(certificate: X509Certificate | undefined): string {
  if (certificate === undefined) return 'no names'
  const names = certificate.subjectAltName ?? certificate.subject.replaceAll('\n', ', ')
  return hasBothUses(certificate) || namesANode(certificate)
    ? names
    : `${names}, and lacks the extended key usages serverAuth and clientAuth`
}

export function namedBy(certificate: X509Certificate | undefined): Named {
  if (certificate === undefined) return 'none'
  const names = certificate.subjectAltName
  const node = nodeNamedBy(names)
  if (node !== undefined) return { node }
  // Several nodes, or an invalid id. A URI that only appears inside another name must not be trusted either.
  if (namesANode(certificate)) return 'none'
  return hasBothUses(certificate) ? 'hosts' : 'none'
}

const SERVER_AUTH = '1.3.6.1.5.5.7.3.1'
const CLIENT_AUTH = '1.3.6.1.5.5.7.3.2'

function hasBothUses({ keyUsage }: X509Certificate): boolean {
  // Node's `keyUsage` is the extended key usage. A certificate without one has none here.
  const uses = keyUsage ?? []
  return uses.includes(SERVER_AUTH) && uses.includes(CLIENT_AUTH)
}

/** Whether a certificate has the name or the address of a host. */
export function isGoodForHost(certificate: X509Certificate, host: string): boolean {
  const plain = host.replace(/^::ffff:(?=\d+\.)/i, '')
  return (isIP(plain) === 0 ? certificate.checkHost(plain) : certificate.checkIP(plain)) !== undefined
}

/**
 * Whether certificates of peers must name the node by its id.
 *
 * @param setting `tls_require_node_id`; undefined when unset: the own certificate decides
 */
export function requiresNodeId({ cert }: TlsMaterial, setting: boolean | 'any' | undefined): boolean {
  if (setting === 'any') return false
  return setting ?? nodeNamedBy(certificatesOf(cert)[0]?.subjectAltName) !== undefined
}

/**
 * Checks that a certificate names this node and was issued by the authority that its peers trust, before a listener or
 * a caller uses it.
 *
 * @param setting `tls_require_node_id`; undefined when it is not set, `any` with `tls_accept_any_name`
 * @throws VacancyError invalid_tls
 */
export function checkPeerTls(material: TlsMaterial, node: string, setting: boolean | 'any' | undefined): void {
  const { clientCa } = material
  if (clientCa === undefined) throw invalid('the certificate of the cluster authority is missing (--ca-cert-path)')
  const chain = certificatesOf(material.cert)
  const own = chain[0]
  const named = namedBy(own)
  if (typeof named === 'object') {
    if (named.node !== node) throw invalid(`the certificate is that of node ${named.node}, not of ${node}`)
  } else if (setting === true || own?.subjectAltName?.includes(NODE_URI)) {
    throw invalid(
      `the certificate of this node must name it once as URI ${nodeUri(node)}; \`vacancy certs node\` creates one`,
    )
  } else if (named === 'none' && setting !== 'any') {
    throw invalid(
      'the certificate of this node is not for both sides of a connection: it needs the extended key usages serverAuth' +
        ` and clientAuth, or the URI ${nodeUri(node)} and both; \`vacancy certs node\` creates one`,
    )
  }
  const last = chain.at(-1)
  if (!certificatesOf(clientCa).some((authority) => last?.checkIssued(authority) && last.verify(authority.publicKey))) {
    throw invalid('the certificate of this node was not issued by the cluster authority (--ca-cert-path)')
  }
}

const PEM_CERTIFICATE = /-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g

function certificatesOf(pem: string): X509Certificate[] {
  return (pem.match(PEM_CERTIFICATE) ?? []).map((block) => new X509Certificate(block))
}

function invalid(reason: string): VacancyError {
  return new VacancyError('invalid_tls', { reason })
}

/** TLS 1.3 only; only the cluster's own authority is trusted. */
export function peerContextOptions({ cert, key, clientCa }: TlsMaterial): SecureContextOptions {
  return { cert, key, minVersion: 'TLSv1.3', ...(clientCa === undefined ? {} : { ca: clientCa }) }
}

export function peerContext(material: TlsMaterial): SecureContext {
  return createSecureContext(peerContextOptions(material))
}
