/**
 * Who a peer is, by its certificate: exactly one URI among the alternative names, `urn:vacancy:node:<node id>`. Host names
 * play no part: a node keeps its id when it moves, and an id may hold what a host name may not.
 */

import { X509Certificate } from 'node:crypto'
import { createSecureContext, type SecureContext, type SecureContextOptions } from 'node:tls'
import { parseId, VacancyError } from '@vacancy/shared'
import type { TlsMaterial } from '@vacancy/shared/node'

const NODE_URI = 'urn:vacancy:node:'

/** What stands in the certificate of a node. */
export function nodeUri(node: string): string {
  return `${NODE_URI}${node}`
}

/**
 * The node that a certificate is for.
 *
 * @param names as Node prints them: `URI:urn:vacancy:node:a, DNS:"with, comma"`
 * @returns undefined when it names none, or several
 */
export function nodeNamedBy(names: string | undefined): string | undefined {
  const nodes: string[] = []
  // Names that hold a comma or a quote are printed as JSON strings; what stands inside them is no name.
  for (const [, value] of (names ?? '').matchAll(/(?:^|, )URI:("(?:[^"\\]|\\.)*"|[^,"]*)|"(?:[^"\\]|\\.)*"/g)) {
    if (value?.startsWith(NODE_URI)) nodes.push(value.slice(NODE_URI.length))
  }
  const [node] = nodes
  return nodes.length === 1 && node !== undefined ? parseId(node) : undefined
}

/**
 * Checks before a listener or a caller uses it that a certificate is the node's own and that the authority, which
 * everybody else will ask about it, knows it.
 *
 * @throws VacancyError invalid_tls
 */
export function checkPeerTls(material: TlsMaterial, node: string): void {
  const { clientCa } = material
  if (clientCa === undefined) throw invalid('the certificate of the cluster authority is missing (--ca-cert-path)')
  const chain = certificatesOf(material.cert)
  const own = chain[0]
  const named = nodeNamedBy(own?.subjectAltName)
  if (named === undefined) {
    throw invalid(
      `the certificate of this node must name it once as URI ${nodeUri(node)}; \`vacancy certs node\` makes one`,
    )
  }
  if (named !== node) throw invalid(`the certificate is that of node ${named}, not of ${node}`)
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

/** TLS 1.3 and nothing below; only the cluster's own authority is believed. */
export function peerContextOptions({ cert, key, clientCa }: TlsMaterial): SecureContextOptions {
  return { cert, key, minVersion: 'TLSv1.3', ...(clientCa === undefined ? {} : { ca: clientCa }) }
}

export function peerContext(material: TlsMaterial): SecureContext {
  return createSecureContext(peerContextOptions(material))
}
