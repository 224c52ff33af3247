/** README and guides as a reader follows them: their commands run against what the pages start, on any date. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startProgram } from '@vacancy/testkit/program'
import { expect, test } from 'vitest'
import { commandsOf, ROOT, read } from './testing/blocks.ts'
import { folder, follow, startOn } from './testing/guide.ts'

const TEST_MS = 300_000

test.each(['2026-12-31', '2028-02-29', '2027-05-15'])(
  'the commands of the pages on applications and on the proxy work on %s',
  { timeout: TEST_MS },
  async (day) => {
    const ports = ['--tcp-port', '0', '--api-port', '0']
    const node = startOn(day, [
      join(ROOT, 'quickstart/src/start.ts'),
      '--dir',
      join(folder, day),
      '--packages',
      '300000',
      ...ports,
    ])
    const [, port = ''] = await node.printed(/TCP {2}127\.0\.0\.1:(\d+).*Ctrl-C/s)
    const address = { VACANCY_QUERY_PORT: port, VACANCY_PROXY_UPSTREAM_PORT: port }
    const [proxy = '', ...examples] = commandsOf('docs/proxy.md', 'Commands', 'Errors')
    const answers = await follow(day, [proxy, ...examples].join('\n'), address)
    expect(answers.match(/"status":"success"/g)?.length).toBe(examples.length - 1)
    expect(answers).toContain('"code":"UNDERFLOW"')
    const guide = [
      ...commandsOf('docs/integrators.md', 'Connect', 'Search'),
      ...commandsOf('docs/integrators.md', 'Search', 'Write'),
      ...commandsOf('docs/integrators.md', 'Write', 'Sell a stay'),
      ...commandsOf('docs/integrators.md', 'Sell a stay', 'A shard of several nodes'),
      ...(read('docs/integrators.md').match(/^npx vacancy query search .*--explain$/m) ?? []),
    ]
    expect(guide.length).toBeGreaterThan(5)
    const said = await follow(day, [proxy, 'sleep 2', ...guide].join('\n'), address)
    expect(said.match(/"state":"(held|booked|released)"/g)?.length).toBe(3)
    node.signal('SIGINT')
    await node.ended
  },
)

// Today: certificates are checked by the clock of the machine. The sample is tried on every day in bench/src/sample.test.ts.
test('the commands of the README work', { timeout: TEST_MS }, async () => {
  const day = new Date().toISOString().slice(0, 10)
  const shard = startProgram(
    [
      join(ROOT, 'quickstart/src/shard.ts'),
      ...['--no-console', '--no-sample', '--block', '61', '--dir', join(folder, `shard-${day}`)],
    ],
    { isBound: true },
  )
  await shard.printed(/Ctrl-C/)
  const own = (text: string) => text.replaceAll('127.0.1.', '127.0.61.')
  const page = read('README.md')
  writeFileSync(join(folder, 'search.mts'), own(/^```ts\n(.*?)^```/ms.exec(page)?.[1] ?? ''))
  const [, first = ''] = /From another\nterminal:\n\n```sh\n(.*?)```|^(npx vacancy query search .*)$/m.exec(page) ?? []
  const query = first || (/^npx vacancy query search .*$/m.exec(page)?.[0] ?? '')
  const [, http = ''] = /^```sh\n(npx vacancy proxy .*?)^```/ms.exec(page) ?? []
  expect(await follow(day, own([query, 'npx node search.mts', http].join('\n')), {})).toContain('"status":"success"')
  shard.signal('SIGINT')
  await shard.ended
})

test('the commands of the page on the fabric start it, and its next steps work', { timeout: TEST_MS }, async () => {
  const [start = '', next = ''] = commandsOf('docs/fabric.md', 'Start', 'Where does a request go')
  const [routes = ''] = commandsOf('docs/fabric.md', 'Where does a request go', 'Codes')
  const isReady = `until curl -s 127.0.4.1:9100/ready | grep -q '"ready":true'; do sleep 1; done`
  // Addresses of its own, so that it may run beside other tests.
  const script = [start, isReady, next, routes]
    .join('\n')
    .replace('vacancy resolver', 'vacancy resolver --host 127.0.0.1')
    .replace('vacancy proxy', 'vacancy proxy --listening-addr 127.0.0.1 --http-port 8777')
    .replaceAll('127.0.', '127.77.')
    .replaceAll(/^(vacancy .*|done) &$/gm, '$1 >> log 2>&1 &')
  const output = await follow(new Date().toISOString().slice(0, 10), `vacancy() { npx vacancy "$@"; }\n${script}`, {})
  expect(output).toContain('{"status":"success","properties":["hotel_1"]}')
  expect(output).toContain('"route":"hops"')
})
