/** The store that the flags of `vacancy registry` name. */

import { readFileSync } from 'node:fs'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { VacancyError } from '@vacancy/shared'
import type { FlagValues, Log } from '@vacancy/shared/node'
import type { REGISTRY_FLAGS } from '../config.ts'
import type { EtcdOptions } from './etcd-client.ts'
import { etcdStore } from './etcd-store.ts'
import { fileStore } from './file-store.ts'
import { fileStorage } from './storage.ts'
import type { RegistryStore } from './store.ts'

/**
 * @param newName 16 random hexadecimal digits
 * @throws VacancyError usage_error
 */
export function storeOf(flags: FlagValues<typeof REGISTRY_FLAGS>, log: Log, newName: () => string): RegistryStore {
  if (flags.storage !== 'etcd') {
    const named = [flags.etcdEndpoints, flags.etcdUserFile, flags.etcdCa].some((value) => value !== undefined)
    if (named) throw usage('the flags --etcd-… need --storage etcd')
    const storage = fileStorage(flags.stateFile, log)
    return fileStore({ storage, bufferMs: flags.bufferMs, resetsState: flags.resetState })
  }
  const endpoints = (flags.etcdEndpoints ?? []).map(endpointOf)
  if (endpoints.length === 0) throw usage('--storage etcd needs --etcd-endpoints, such as http://127.0.0.1:2379')
  if (flags.etcdCa !== undefined) trust(flags.etcdCa)
  return etcdStore({
    endpoints,
    prefix: prefixOf(flags.etcdPrefix),
    user: flags.etcdUserFile === undefined ? undefined : userOf(flags.etcdUserFile),
    acceptsCodecChange: flags.acceptCodecChange,
    newName,
  })
}

function usage(reason: string): VacancyError {
  return new VacancyError('usage_error', { reason })
}

function endpointOf(written: string): string {
  const url = URL.parse(written.includes('://') ? written : `http://${written}`)
  if (url && /^https?:$/.test(url.protocol) && url.pathname === '/' && url.username === '' && url.search === '')
    return url.origin
  throw usage(`--etcd-endpoints: ${written} is not a URL such as http://127.0.0.1:2379`)
}

function prefixOf(written: string): string {
  if (!/^[\x21-\x7e]{1,200}$/.test(written))
    throw usage('--etcd-prefix: must be 1 to 200 printable ASCII characters without spaces')
  return written.endsWith('/') ? written : `${written}/`
}

function read(flag: string, file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw usage(`--${flag}: ${file} cannot be read: ${(error as Error).message}`)
  }
}

function userOf(file: string): EtcdOptions['user'] {
  const [, name, password] = /^([^:\r\n]+):([^\r\n]+)\r?\n?$/.exec(read('etcd-user-file', file)) ?? []
  if (name === undefined || password === undefined)
    throw usage(`--etcd-user-file: ${file} must hold one line NAME:PASSWORD`)
  return { name, password }
}

/** Also trusted: fetch has no setting for one call, and this process calls nothing but etcd. */
function trust(file: string): void {
  const pem = read('etcd-ca', file)
  const found = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g)
  if (found === null) throw usage(`--etcd-ca: ${file} holds no PEM certificate`)
  setDefaultCACertificates([...getCACertificates('default'), ...found])
}
