import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type Program, startProgram } from '@vacancy/testkit/program'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { SERVER } from '../testing/certificates.ts'
import { PROXY_FLAGS, PROXY_SCHEMA } from './config.ts'
import { openStandIn } from './testing/stand-in.ts'

const PROGRAM = path.join(import.meta.dirname, '../../../bin/vacancy.mjs')
let folder: string
const running: Program[] = []

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'vacancy-proxy-'))
})
afterEach(async () => {
  for (const program of running.splice(0)) if (program.isRunning()) await program.stop()
  rmSync(folder, { recursive: true, force: true })
})

const inFolder = (name: string) => path.join(folder, name)

function launch(args: readonly string[], env: NodeJS.ProcessEnv = {}): Program {
  const program = startProgram([PROGRAM, 'proxy', ...args], { cwd: folder, env })
  running.push(program)
  return program
}

test('--help names every flag and key', async () => {
  const program = launch(['--help'])

  expect(await program.ended).toBe(0)
  for (const name of [...Object.keys(PROXY_FLAGS), ...Object.keys(PROXY_SCHEMA)]) {
    expect(program.output()).toContain(`--${name.replaceAll('_', '-')}`)
  }
})

test.each([
  [['--mode', 'none'], 64, 'mode: "none" is not one of'],
  [['--htpp-port', '1'], 64, 'unknown flag --htpp-port; did you mean --http-port?'],
  [['--mode', 'standalone', '--upstream-addr', 'x', '--auth-enabled'], 64, 'auth.yml: cannot be read'],
  [['--mode', 'standalone', '--upstream-addr', 'x', '--https-enabled', 'true'], 64, 'cert.pem: cannot be read'],
])('%j ends with exit code %i', async (args, code, message) => {
  const program = launch(args)

  expect(await program.ended).toBe(code)
  expect(program.output()).toContain(message)
})

test('the program: file, variable and flag; SIGHUP reads the tokens again; a taken port is 69; SIGTERM ends with 0', async () => {
  const behind = await openStandIn('node')
  writeFileSync(inFolder('cert.pem'), SERVER.cert)
  writeFileSync(inFolder('key.pem'), SERVER.key)
  writeFileSync(inFolder('auth.yml'), 'full_access_tokens: [first]')
  writeFileSync(
    inFolder('proxy.yml'),
    'mode: standalone\nupstream_addr: 127.0.0.1\nlistening_addr: 127.0.0.1\nhttp_port: 1\nhttps_port: 0\n',
  )
  const env = { VACANCY_PROXY_UPSTREAM_PORT: String(behind.port) }
  const program = launch(['--http-port', '0', '--auth-enabled', '--https-enabled', 'true'], env)
  const [, port, secure] = await program.printed(/^serving: http 127\.0\.0\.1:(\d+), https 127\.0\.0\.1:(\d+)$/m)
  const status = async (token: string) => {
    const body = JSON.stringify({ command: 'GETCODECS' })
    const headers = { Authorization: `Bearer ${token}` }
    return (await fetch(`http://127.0.0.1:${port}/api`, { method: 'POST', headers, body })).status
  }

  expect(Number(secure)).toBeGreaterThan(0)
  await expect.poll(() => status('first')).toBe(200)
  expect(await status('second')).toBe(401)
  writeFileSync(inFolder('auth.yml'), 'full_access_tokens: [second]')
  program.signal('SIGHUP')
  await expect.poll(() => status('second')).toBe(200)
  expect(await status('first')).toBe(401)
  const other = launch(['--http-port', String(port)], env)
  expect(await other.ended).toBe(69)
  expect(await program.stop()).toBe(0)
  expect(program.output()).not.toContain('first')
  await behind.close()
})
