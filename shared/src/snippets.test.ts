import { execFileSync } from 'node:child_process'
import vm from 'node:vm'
import { expect, test } from 'vitest'
import { curlOf, goOf, proxyCurlOf, typescriptOf } from './snippets.ts'
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

test('a request for the proxy has the names of its fields, and the segment beside the command', () => {
  const fields = { segment: 'paris', roomType: 'double', dates: ['2026-11-24'], rateFeatures: ['breakfast'] }

  const code = proxyCurlOf('http://127.0.0.1:8777/', 'SEARCHAVAIL', fields)

  expect(code).toContain('http://127.0.0.1:8777/api')
  expect(code).toContain('"segment":"paris","body":{"segment":"paris","room_type":"double"')
  expect(code).toContain('$VACANCY_PROXY_TOKEN')
})
