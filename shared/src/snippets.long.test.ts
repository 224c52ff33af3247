import { execFileSync } from 'node:child_process'
import vm from 'node:vm'
import { expect, test } from 'vitest'
import { curlOf, goOf, proxyCurlOf, typescriptOf, typescriptSetupOf } from './snippets.ts'
import { law } from './testing/law.ts'
import { anyRequest } from './testing/requests.ts'
import { COMMANDS } from './wire/commands.ts'

const NASTY = `it's "a" \\ $HOME \`id\` ; rm -rf / \n\u2028 </script> {{x}}`

test('the TypeScript snippet sends the same fields for any values', () => {
  law([anyRequest], ({ command, fields }) => {
    const code = typescriptOf(command, fields, ['127.0.0.1:7777'])
    const [, call] = /client\.send\(([\s\S]*)\)\n {2}console\.log/.exec(code) ?? []

    const [name, sent] = vm.runInNewContext(`[${call}]`) as [string, object]

    expect(name).toBe(command)
    expect(Object.entries(sent).map(([key, value]) => [key, Array.isArray(value) ? [...value] : value])).toEqual(
      Object.entries(fields)
        .filter(([, value]) => value !== undefined)
        .sort(byTable(command)),
    )
  })
})

function byTable(command: keyof typeof COMMANDS) {
  const order = COMMANDS[command].fields.map(({ name }) => name) as string[]
  return ([a]: [string, unknown], [b]: [string, unknown]) => order.indexOf(a) - order.indexOf(b)
}

test('a shell passes the body of the curl snippet unchanged', () => {
  const fields = { segment: NASTY }
  const code = curlOf('http://127.0.0.1:8090/', { shard: "s'1", command: 'SEARCHPROP', fields })
  const script = `curl() { for last; do :; done; printf %s "$last"; }\n${code}`

  const body = execFileSync('/bin/sh', ['-c', script], { env: {} }).toString()

  expect(JSON.parse(body)).toEqual({ shard: "s'1", command: 'SEARCHPROP', fields })
  expect(code).toContain('$VACANCY_TOKEN')
})

test('Go reads the body unchanged: its string uses only escapes of Go, and no lone surrogates', () => {
  const fields = { segment: `${NASTY}\u0000\ud83d` }
  const code = goOf('http://127.0.0.1:8090/', { shard: "s'1", command: 'SEARCHPROP', fields })
  const [, literal = ''] = /^const body = (".*")\n\nfunc/ms.exec(code) ?? []

  expect(JSON.parse(JSON.parse(literal))).toEqual({ shard: "s'1", command: 'SEARCHPROP', fields })
  expect(literal).not.toMatch(/(?<!\\)(?:\\\\)*\\(?!["\\bfnrt]|u(?![dD][89a-fA-F])[\da-f]{4})/)
  expect(code).toContain('const url = "http://127.0.0.1:8090/api/v1/query"')
  expect(code).toContain('os.Getenv("VACANCY_TOKEN")')
})

test('the TypeScript snippet connects to the nodes with the token of its variable, and its setup installs the client', () => {
  const code = typescriptOf('GETCODECS', {}, ["it's:1", 'b:2'])

  expect(code).toContain("const token = process.env['VACANCY_NODE_TOKEN']\n")
  expect(code).toContain("connect({ nodes: ['it\\'s:1', 'b:2'], ...(token ? { token } : {}) })\n")
  expect(code).toContain("client.send('GETCODECS', {})\n")
  expect(typescriptSetupOf('https://console.example//')).toBe(
    'npm init -y\nnpm install https://console.example/api/v1/client.tgz\nnode query.mjs',
  )
})

test.each([
  [
    { command: 'GETCODECS', fields: {} },
    { command: 'GETCODECS', fields: {} },
  ],
  [
    { shard: 's1', node: 'n1', command: 'DELPROP', fields: { propertyId: 'p' }, confirm: 'p' },
    { shard: 's1', node: 'n1', command: 'DELPROP', fields: { propertyId: 'p' }, write: true, confirm: 'p' },
  ],
] as const)('the body of %j has what the query API needs', (query, body) => {
  const [, text = ''] = /--data-raw '(.*)'$/.exec(curlOf('http://127.0.0.1:8090', query)) ?? []

  expect(JSON.parse(text)).toEqual(body)
})

test('a request for the proxy without a segment has none, and the fields of lines are renamed, too', () => {
  const line = { propertyId: 'p', roomType: 'r', arrival: '2026-12-24', nights: 1, rooms: 1 }
  const code = proxyCurlOf('http://127.0.0.1:8777', 'BOOKSTAY', { stayId: 's', maxTotal: 5n, lines: [line] })

  expect(code).toContain(
    `'{"command":"BOOKSTAY","body":{"stay_id":"s","max_total":"5","lines":[{"property_id":"p","room_type":"r","arrival":"2026-12-24","nights":1,"rooms":1}]}}'`,
  )
})

test('a request for the proxy has the names of its fields, and the segment beside the command', () => {
  const fields = { segment: 'paris', roomType: 'double', dates: ['2026-11-24'], rateFeatures: ['breakfast'] }

  const code = proxyCurlOf('http://127.0.0.1:8777/', 'SEARCHAVAIL', fields)

  expect(code).toContain('http://127.0.0.1:8777/api')
  expect(code).toContain('"segment":"paris","body":{"segment":"paris","room_type":"double"')
  expect(code).toContain('$VACANCY_PROXY_TOKEN')
})
