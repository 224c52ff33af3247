import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { CONTROL_SCHEMA, loadControlConfig } from './config.ts'

const folder = mkdtempSync(join(tmpdir(), 'vacancy-config-'))
const fileOf = (text: string): string => {
  const file = join(folder, `${Math.random()}.yml`)
  writeFileSync(file, text)
  return file
}
const env = (key: string, text: string) => new Map([[key, { text, at: `VACANCY_${key}`, from: 'env' as const }]])
const flag = (key: string, text: string) => new Map([[key, { text, at: `--${key}`, from: 'flag' as const }]])

test('the defaults suit one machine', () => {
  const { values } = loadControlConfig({ file: fileOf('') })

  expect(values).toMatchObject({
    listenHost: '127.0.0.1',
    listenPort: 8000,
    nodes: [],
    sessionIdleHours: 12,
    web: true,
  })
  for (const setting of Object.values(CONTROL_SCHEMA)) expect(setting.summary).toMatch(/\.$/)
})

test('lists are YAML sequences or comma-separated', () => {
  const file = fileOf('nodes:\n  - http://10.0.0.1:8080\n  - http://10.0.0.2:8080\ntrust_proxy: [10.0.0.0/8]\n')

  expect(loadControlConfig({ file }).values).toMatchObject({
    nodes: ['http://10.0.0.1:8080', 'http://10.0.0.2:8080'],
    trustProxy: ['10.0.0.0/8'],
  })
  const given = env('nodes', 'http://a:1, http://b:2')
  expect(loadControlConfig({ file, given }).values.nodes).toEqual(['http://a:1', 'http://b:2'])
})

test('a secret is read from the configuration file, the environment or a file of its own, never from the command line', () => {
  const secret = fileOf('s3cret\n')

  const ofFile = loadControlConfig({ file: fileOf('node_admin_token: abc\n') })
  expect(ofFile.values.nodeAdminToken).toBe('abc')
  expect(loadControlConfig({ file: fileOf(''), given: env('node_admin_token', 'abc') }).values.nodeAdminToken).toBe(
    'abc',
  )
  const named = loadControlConfig({ file: fileOf(''), given: flag('node_admin_token', `file:${secret}`) })
  expect(named.values.nodeAdminToken).toBe('s3cret')
  const spoken = () => loadControlConfig({ file: fileOf(''), given: flag('node_admin_token', 's3cret') })
  expect(spoken).toThrow(/can be read by every user of this machine; write --node_admin_token file:PATH/)
  expect(spoken).not.toThrow(/s3cret/)
})

test('DATABASE_URL is read, and VACANCY_CONTROL_PLANE_DATABASE_URL overrides it', () => {
  const databaseUrl = 'postgres://u:p@host/one'

  expect(loadControlConfig({ file: fileOf(''), databaseUrl }).values.databaseUrl).toBe(databaseUrl)
  const given = env('database_url', 'postgres://u:p@host/two')
  expect(loadControlConfig({ file: fileOf(''), databaseUrl, given }).values.databaseUrl).toMatch(/two$/)
})

test.each([
  ['base_url: vacancy.example.com', 'base_url: vacancy.example.com is not an address'],
  ['base_url: https://a.example/console', 'base_url: https://a.example/console is not an address'],
  ['registry: registry:8080', 'registry: registry:8080 is not an address'],
  ['nodes: [10.0.0.1:8080]', 'nodes: 10.0.0.1:8080 is not an address like http://host:port'],
  ['nodes: http://a:1', 'nodes: "http://a:1" is not a list of texts'],
  ['nodes: [1, 2]', 'nodes: [1,2] is not a list of texts'],
  ['allowed_hosts: ["a:80"]', 'allowed_hosts: a:80 is not a host name without port'],
  ['trust_proxy: [proxy]', 'trust_proxy: proxy is neither an address nor a network'],
  ['trust_proxy: [10.0.0.0/33]', 'trust_proxy: 10.0.0.0/33 is neither'],
  ['database_url: mysql://u:hidden@h/d', 'database_url: must begin with postgres://'],
  ['tls_cert: /etc/ssl/console.pem', 'tls_cert and tls_key must be set together'],
  [
    '{tls_cert: a.pem, tls_key: a.key, base_url: "http://a.example"}',
    'base_url: begins with http:// although tls_cert',
  ],
  ['environment: ""', 'environment: must be 1 to 24 characters'],
  ['listen_port: 70000', 'listen_port: 70000 is not a whole number from 0 to 65535'],
  ['listenport: 1', 'listenport: is not a known key; did you mean listen_port?'],
  ['node_client_token: file:/nowhere', '/nowhere: cannot be read'],
])('%s is refused: %s', (text, message) => {
  const load = () => loadControlConfig({ file: fileOf(`${text}\n`) })

  expect(load).toThrow(message)
  expect(load).not.toThrow('hidden')
})
