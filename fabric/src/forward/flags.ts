/** The flags that routers and bridges have in common (docs/design/fabric.md). */

import { ALLOW_ANONYMOUS, choice, type Flags, LOG_FORMATS, LOG_LEVELS, named, port, whole } from '@vacancy/shared/node'

/** Where registry and resolver are. */
export const UPWARD_FLAGS = {
  'registry-addr': {
    ...named('HOST:PORT,…'),
    required: true,
    summary: 'Registry; of several addresses the one that responds is kept. http:// or https:// may precede each.',
  },
  'resolver-addr': { ...named('HOST:PORT'), required: true, summary: 'Resolver of host names.' },
  'registry-token-file': { ...named('FILE'), summary: 'Token for the registry: the first line of the file.' },
  'registry-ca': { ...named('FILE'), summary: 'CA certificates for the registry, PEM.' },
  'resolver-token-file': { ...named('FILE'), summary: 'Token for the resolver: the first line of the file.' },
  'resolver-ca': { ...named('FILE'), summary: 'CA certificates for the resolver, PEM.' },
  'cache-dir': { ...named('DIR'), summary: 'Keeps the last known state there, for a start without the registry.' },
} as const satisfies Flags

/** Where a program listens without an address of its own. */
export const USUAL_HOST = 'by default all where callers need a token or certificate, else 127.0.0.1.'

/** The HTTP side. */
export const API_FLAGS = {
  'api-host': { ...named('HOST'), summary: `Address of the HTTP API; ${USUAL_HOST}` },
  'api-port': {
    ...port(9100),
    summary: 'Port of the HTTP API: /health, /ready, /metrics, /debug/slow; 0 = any free port, which is printed.',
  },
  'api-url': {
    ...named('URL'),
    summary: 'Address of the HTTP API as others reach it; reported to the registry, for the console.',
  },
  'slow-ms': { ...whole(100, 0, 600_000, 'ms'), summary: 'Requests that took longer are listed in /debug/slow.' },
} as const satisfies Flags

/** Limits for connections of clients and to hops. */
export const LIMIT_FLAGS = {
  'max-connections': {
    ...whole(10_000, 1, 1_000_000),
    summary: 'Client connections; further ones are closed at once.',
  },
  'max-inflight': { ...whole(50_000, 1, 1_000_000), summary: 'Requests in flight in total; further ones get 429.' },
  'max-frame-size': {
    ...whole(16_384, 64, 1_048_576, 'bytes'),
    summary: 'Largest request frame, header included; larger ones are refused.',
  },
  'max-buffer-size': {
    ...whole(262_144, 1_024, 16_777_216, 'bytes'),
    summary: 'Queued bytes of one connection to a hop beyond which it takes no more requests.',
  },
  'max-response-size': {
    ...whole(16_777_216, 1_024, 268_435_456, 'bytes'),
    summary: 'Largest reply; a larger one ends the connection that it came from.',
  },
  'frame-timeout-secs': { ...whole(20, 1, 3_600, 'seconds'), summary: 'From the first byte of a frame to its last.' },
  'idle-timeout-secs': {
    ...whole(90, 1, 86_400, 'seconds'),
    summary: 'A client connection without a byte for this time is closed; keepalives count.',
  },
} as const satisfies Flags

/** Encryption and login, both off by default. */
export const SECURITY_FLAGS = {
  'tls-cert': { ...named('FILE'), summary: 'Certificate of the listener, PEM; with --tls-key.' },
  'tls-key': { ...named('FILE'), summary: 'Private key of --tls-cert, PEM.' },
  'tls-client-ca': { ...named('FILE'), summary: 'CA certificates for required client certificates, PEM.' },
  'upstream-tls': { type: 'boolean', summary: 'Connections to hops use TLS.' },
  'upstream-ca': { ...named('FILE'), summary: 'CA certificates for the hops, PEM; default: those of the system.' },
  'upstream-cert': { ...named('FILE'), summary: 'Own certificate for hops, PEM; with --upstream-key.' },
  'upstream-key': { ...named('FILE'), summary: 'Private key of --upstream-cert, PEM.' },
  'upstream-server-name': {
    ...named('NAME'),
    summary: 'Name that the certificates of hops must have, instead of their host.',
  },
  'auth-file': { ...named('FILE'), summary: 'Tokens that clients may log in with; reloaded when it changes.' },
  'require-login': { type: 'boolean', summary: 'Requests before a LOGIN are refused; with --auth-file.' },
  'allow-anonymous': ALLOW_ANONYMOUS,
} as const satisfies Flags

/** The life of the process. */
export const PROCESS_FLAGS = {
  'trace-endpoint': {
    ...named('URL'),
    summary:
      'Collector of spans by OTLP over HTTP, such as http://collector:4318, also as OTEL_EXPORTER_OTLP_ENDPOINT; default: none are recorded.',
  },
  'drain-secs': { ...whole(10, 0, 600, 'seconds'), summary: 'Time to finish requests in flight on shutdown.' },
  'log-level': { ...choice(LOG_LEVELS, 'info'), summary: 'Lowest level that is logged.' },
  'log-format': { ...choice(LOG_FORMATS, 'json'), summary: 'Log lines as JSON or as text.' },
} as const satisfies Flags
